import PluginABI

extension Calls {
    /// Calls an endpoint that was found without an address: a hook, or a handler of the program. The receiver receives
    /// the outcome exactly once, before this function returns or, for an asynchronous endpoint, later.
    ///
    /// - Parameters:
    ///   - enter: Occupies the record. Returns false if the endpoint must no longer be called.
    /// - Returns: False, without calling the receiver, if the endpoint must no longer be called.
    func call(
        _ endpoint: Endpoint, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call,
        instance: UnsafeMutableRawPointer? = nil, enter: (ThreadContext, CallRecord) -> Bool
    ) -> Bool {
        inNextRecord(call.receiver) { (thread, record) throws(PluginError) in
            guard enter(thread, record) else { return nil }
            return try invoke(endpoint, entries, call, thread, record, instance: instance)
        } != nil
    }
}
