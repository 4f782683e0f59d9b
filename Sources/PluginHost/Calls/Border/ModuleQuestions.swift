import CPluginABI
import PluginABI

// What modules can ask the host about URLs and instances, as the program can.

extension HostTable {
    /// The extension of routes.
    nonisolated(unsafe) static let routes: UnsafePointer<plugin_routes> = {
        let routes = UnsafeMutablePointer<plugin_routes>.allocate(capacity: 1)
        routes.initialize(
            to: plugin_routes(
                size: UInt32(MemoryLayout<plugin_routes>.size), reserved: 0,
                can_open: { host, request in
                    guard let request else { return 0 }
                    let calls = HostTable.caller(host).takeUnretainedValue().calls
                    return HostTable.withWhole(request) { (try? calls.checkOpen($0.pointee)) != nil ? 1 : 0 }
                },
                build: { host, request, completion, data in
                    let receiver = Calls.Receiver(completion: completion ?? { _, _, _ in }, data: data)
                    let calls = HostTable.caller(host).takeUnretainedValue().calls
                    guard let request else {
                        return receiver.receive(
                            PluginError(.invalidValue, "A null pointer was passed as the request."))
                    }
                    receiver.receive { () throws(PluginError) in
                        let url = HostTable.withWhole(request) { request in
                            Result { () throws(PluginError) in try calls.url(request.pointee) }
                        }
                        return .string(try url.get())
                    }
                }))
        return UnsafePointer(routes)
    }()

    /// The extension of instances.
    nonisolated(unsafe) static let instances: UnsafePointer<plugin_instances> = {
        let instances = UnsafeMutablePointer<plugin_instances>.allocate(capacity: 1)
        instances.initialize(
            to: plugin_instances(size: UInt32(MemoryLayout<plugin_instances>.size), reserved: 0) {
                host, target, completion, data in
                let calls = HostTable.caller(host).takeUnretainedValue().calls
                Calls.Receiver(completion: completion ?? { _, _, _ in }, data: data).receive {
                    () throws(PluginError) in
                    try target.check("The name of the target")
                    return .bool(try calls.releaseInstance(of: target.text))
                }
            })
        return UnsafePointer(instances)
    }()
}

extension Calls.Receiver {
    /// Tells the outcome of `body`.
    fileprivate func receive(_ body: () throws(PluginError) -> Value) {
        do throws(PluginError) {
            try body().lend { value in withUnsafePointer(to: value) { completion(data, $0, nil) } }
        } catch {
            receive(error)
        }
    }
}

extension Calls {
    /// - Throws: what `open` would throw before it calls the action.
    fileprivate func checkOpen(_ request: plugin_request) throws(PluginError) {
        let given = try parameters(of: request, PLUGIN_ADDRESS_URL)
        let isRemote = request.flags & PLUGIN_REQUEST_REMOTE != 0
        try checkOpen(RawText(request.target), given, isRemote: isRemote, registry.table)
    }

    fileprivate func url(_ request: plugin_request) throws(PluginError) -> String {
        let given = try parameters(of: request, PLUGIN_ADDRESS_URL).map { entry in
            (entry.key.text, Value(copying: entry.value, host: program.hostTable))
        }
        return try url(for: request.target.text, Dictionary(given, uniquingKeysWith: { first, _ in first }))
    }

    /// What a module has given, checked.
    private func parameters(
        of request: plugin_request, _ address: UInt32
    ) throws(PluginError) -> UnsafeBufferPointer<plugin_entry> {
        var request = request
        request.address = address
        try request.checkValues()
        return request.entries
    }

    /// Builds the URL of a route.
    func url(for route: String, _ parameters: [String: Value]) throws(PluginError) -> String {
        let table = registry.table
        let named = table.routes.table.named(route)
        let pattern = if let named { named.pattern } else { try RoutePattern(route) }
        let known = named ?? table.routes.table.entry(like: pattern).flatMap { $0.pattern.text == route ? $0 : nil }
        let declared = known.flatMap { table.targets[$0.target]?.actions[$0.action]?.parameters.map(\.name) } ?? []
        let url = try pattern.url(with: parameters, declared: Set(declared), longest: settings.longestURL)
        if let known { try table.routes.table.checkOpens(known, url, longest: settings.longestURL) }
        return url
    }

    /// Drops the instance that the calls of a target share. Returns whether there was one.
    func releaseInstance(of target: String) throws(PluginError) -> Bool {
        let table = registry.table
        guard let entry = table.targets[target] else { throw table.missing(target, "release") }
        return entry.actions.values.first?.instances?.release() ?? false
    }
}
