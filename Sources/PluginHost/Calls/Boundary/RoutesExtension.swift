import PluginABI

extension HostTable {
    /// The extension for routes: lets modules ask the same questions about URLs as the program.
    nonisolated(unsafe) static let routes = UnsafePointer.immortal(
        plugin_routes(
            size: UInt32(MemoryLayout<plugin_routes>.size), reserved: 0,
            can_open: { host, parent, request in
                guard let request else { return 0 }
                return withWhole(request) { (try? calls(host).checkOpen($0.pointee, for: parent)) != nil ? 1 : 0 }
            },
            build: { host, request, completion, data in
                let receiver = Calls.Receiver(completion, data)
                guard let request else { return receiver.receive(noRequest) }
                withWhole(request) { request in
                    receiver.receive { () throws(PluginError) in .string(try calls(host).url(request.pointee)) }
                }
            }))
}

extension Calls {
    /// - Throws: The error that `open` would throw before it calls the action.
    fileprivate func checkOpen(_ request: plugin_request, for parent: plugin_token) throws(PluginError) {
        let given = try parameters(of: request, PLUGIN_ADDRESS_URL)
        let isRemote = request.flags & PLUGIN_REQUEST_REMOTE != 0
        try checkOpen(RawText(request.target), given, isRemote: isRemote, method: request.method, for: parent, registry.table)
    }

    fileprivate func url(_ request: plugin_request) throws(PluginError) -> String {
        let given = try parameters(of: request, PLUGIN_ADDRESS_URL).map { entry in
            (entry.key.text, Value(copying: entry.value, host: program.hostTable))
        }
        return try url(for: request.target.text, Dictionary(given, uniquingKeysWith: { first, _ in first }))
    }

    /// Returns the parameters that a module has passed, after checking them.
    private func parameters(
        of request: plugin_request, _ address: UInt32
    ) throws(PluginError) -> UnsafeBufferPointer<plugin_entry> {
        var request = request
        request.address = address
        try request.checkValues()
        return request.entries
    }
}
