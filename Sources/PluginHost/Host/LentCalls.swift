package import PluginABI

extension PluginHost {
    /// Calls an action with parameters in memory of the caller, as a module in C does. Returns when the action has
    /// returned; an asynchronous action may reply later.
    ///
    /// - Parameters:
    ///   - entries: The parameters, which the action may use until this function returns.
    ///   - timeout: The timeout of an asynchronous action.
    ///   - completion: Called once with the outcome, on any thread, possibly before this function returns.
    ///   - data: For the completion.
    package func call(
        _ target: String, _ action: String, lending entries: UnsafeBufferPointer<plugin_entry>, timeout: Duration,
        _ completion: plugin_completion, _ data: UnsafeMutableRawPointer?
    ) {
        target.withPluginString { target in
            action.withPluginString { action in
                lend(
                    plugin_request_action(target, action, entries.baseAddress, UInt64(entries.count)), timeout,
                    completion, data)
            }
        }
    }

    /// Calls an action of an object with parameters in memory of the caller. Returns when the action has returned; an
    /// asynchronous action may reply later.
    ///
    /// - Parameters:
    ///   - entries: The parameters, which the action may use until this function returns.
    ///   - timeout: The timeout of an asynchronous action.
    ///   - completion: Called once with the outcome, on any thread, possibly before this function returns.
    ///   - data: For the completion.
    package func call(
        _ object: Object, _ action: String, lending entries: UnsafeBufferPointer<plugin_entry>, timeout: Duration,
        _ completion: plugin_completion, _ data: UnsafeMutableRawPointer?
    ) {
        action.withPluginString { action in
            lend(
                plugin_request_object(object.handle, action, entries.baseAddress, UInt64(entries.count)), timeout,
                completion, data)
        }
    }

    private func lend(
        _ request: plugin_request, _ timeout: Duration, _ completion: plugin_completion,
        _ data: UnsafeMutableRawPointer?
    ) {
        let table = core.program.hostTable!
        var request = request
        request.timeout = timeout.nanoseconds
        _ = table.pointee.call(table, 0, &request, completion, data)
    }

    /// Returns the address of the function of an action; `nil` if there is none, or if it is in another process.
    ///
    /// - Parameter action: `Target/action` or `Type#action`.
    package func function(of action: String) -> UnsafeRawPointer? {
        let table = core.registry.table
        let endpoint: Endpoint?
        if let end = action.firstIndex(of: "#") {
            let (type, name) = (String(action[..<end]), String(action[action.index(after: end)...]))
            endpoint = table.generations.lazy.compactMap { $0.types[type]?.actions[name] }.first
        } else if let end = action.firstIndex(of: "/") {
            endpoint = table.targets[String(action[..<end])]?.actions[String(action[action.index(after: end)...])]
        } else {
            endpoint = nil
        }
        guard let endpoint, endpoint.generation.module?.process == nil else { return nil }
        return unsafeBitCast(endpoint.invoke, to: UnsafeRawPointer.self)
    }

    /// Whether the module that serves under a name has an `activate`, by which it gets the host's functions. True for a
    /// module in a process of its own, whose functions stay there.
    package func hasActivate(_ module: String) -> Bool {
        let generation = core.registry.table.generations.first { $0.name == module }
        return generation?.module?.description.pointee.activate != nil
    }
}
