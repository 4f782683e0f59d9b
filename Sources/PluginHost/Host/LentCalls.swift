package import PluginABI

extension PluginHost {
    /// Calls an action with parameters in memory of the caller, as a module in C does. Returns when the action has
    /// returned; an asynchronous action may reply later.
    ///
    /// - Parameters:
    ///   - entries: The parameters, which the action may use until this returns.
    ///   - timeout: The timeout of an asynchronous action.
    ///   - completion: Called once with the outcome, on any thread, maybe before this returns.
    ///   - data: For the completion.
    package func call(
        _ target: String, _ action: String, lending entries: UnsafeBufferPointer<plugin_entry>, timeout: Duration,
        _ completion: plugin_completion, _ data: UnsafeMutableRawPointer?
    ) {
        let table = core.program.hostTable!
        target.withPluginString { target in
            action.withPluginString { action in
                var request = plugin_request_action(target, action, entries.baseAddress, UInt64(entries.count))
                request.timeout = timeout.nanoseconds
                _ = table.pointee.call(table, 0, &request, completion, data)
            }
        }
    }

    /// Whether the module that serves under a name has an `activate`, by which it gets the host's functions. True for a
    /// module in a process of its own, whose functions stay there.
    package func hasActivate(_ module: String) -> Bool {
        let generation = core.registry.table.generations.first { $0.name == module }
        return generation?.module?.description.pointee.activate != nil
    }
}
