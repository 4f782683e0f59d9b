import PluginABI

extension HostTable {
    /// The extension of bound actions.
    nonisolated(unsafe) static let bound = UnsafePointer.immortal(
        plugin_bound(
            size: UInt32(MemoryLayout<plugin_bound>.size), reserved: 0,
            bind: { host, target, action in
                guard (try? target.check("")) != nil, (try? action.check("")) != nil else { return 0 }
                return caller(host).takeUnretainedValue().core.boundActions.bind(target.text, action.text)
            },
            perform: { performBound($0, $1, $2, $3, $4, $5, $6) }))

    /// A separate function, because the compiler would merge such a small closure into the wrapper that it generates
    /// for C, and it does not inline C functions there.
    @inline(never)
    private static func performBound(
        _ host: UnsafePointer<plugin_host>?, _ number: plugin_bound_action, _ arguments: UnsafePointer<plugin_value>?,
        _ count: UInt32, _ result: UnsafeMutablePointer<plugin_value>?, _ completion: plugin_completion?,
        _ data: UnsafeMutableRawPointer?
    ) -> Int32 {
        let receiver = Calls.Receiver(completion, data)
        @inline(__always) func call(_ caller: Generation) -> Bool? {
            guard let result, arguments != nil || count == 0 else { return nil }
            return caller.calls.callBound(
                number, UnsafeBufferPointer(start: arguments, count: Int(count)), from: caller, into: result,
                or: receiver)
        }
        if let isThere = caller(host)._withUnsafeGuaranteedRef(call) { return isThere ? 1 : 0 }
        performRequest(host, number, arguments, count, receiver)
        return 0
    }

    /// Performs a bound action like any other call.
    @inline(never)
    private static func performRequest(
        _ host: UnsafePointer<plugin_host>?, _ number: plugin_bound_action, _ arguments: UnsafePointer<plugin_value>?,
        _ count: UInt32, _ receiver: Calls.Receiver
    ) {
        var request = plugin_request()
        request.size = UInt32(MemoryLayout<plugin_request>.size)
        request.address = PLUGIN_ADDRESS_BOUND
        request.object = number
        request.parameter_count = UInt64(count)
        // If the arguments are invalid, the pointer to the parameters in the request is null. Such a request from a
        // module is refused; the program never makes one.
        guard let arguments, count <= plugin_request.parametersMax else {
            return perform(host, 0, &request, receiver.completion, receiver.data)
        }
        withUnsafeTemporaryAllocation(of: plugin_entry.self, capacity: Int(count)) { entries in
            for index in entries.indices {
                entries.initializeElement(at: index, to: plugin_entry(key: plugin_string(), value: arguments[index]))
            }
            request.parameters = UnsafePointer(entries.baseAddress)
            perform(host, 0, &request, receiver.completion, receiver.data)
        }
    }
}
