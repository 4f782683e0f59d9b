import Dispatch
import PluginABI
import PluginFile
import Synchronization

// Calls that need a registered module, which is started for them.

extension Calls {
    /// Starts a module for a call. In mode `.synchronous`, blocks the thread until it has started and returns `nil`:
    /// the caller must repeat the lookup. In mode `.any`, stores the call until then.
    func start(
        _ module: LoadedModule, for address: @autoclosure () -> WaitingAddress,
        _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call, _ thread: ThreadContext, _ record: CallRecord
    ) throws(PluginError) -> plugin_token? {
        guard call.mode == .any else {
            let timeout: Duration? = call.timeout > 0 ? .nanoseconds(call.timeout) : nil
            try start(module, within: timeout, parent: call.parent, call.caller)
            return nil
        }
        let start = try begin(module, parent: call.parent, call.caller)
        // The module may have been started on this thread.
        if start.isOver { return try check(start, of: module, for: call) }
        return try keep(.start(start, module), address(), entries, call, thread, record)
    }

    /// Starts a module, and blocks the thread until the start has ended.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait. Default: ``HostConfiguration/hookTimeout``.
    ///   - parent: The call that needs the module.
    ///   - caller: The generation that makes the call.
    /// - Throws: The reason why the module does not serve, unless the table states it; `deadlineExceeded`,
    ///   `circularWait`, `overloaded`.
    func start(
        _ module: LoadedModule, within timeout: Duration? = nil, parent: plugin_token? = nil,
        _ caller: Unmanaged<Generation>? = nil
    ) throws(PluginError) {
        let parent = parent ?? ThreadContext.current?.currentCall ?? 0
        let start = try begin(module, parent: parent, caller)
        let timeout = timeout ?? settings.startTimeout
        guard try start.wait(within: timeout) else {
            throw PluginError(
                .deadlineExceeded,
                "\(module.name) did not start within \(timeout). It is still starting; the call was not made.")
        }
        try check(start, of: module, parent: parent, caller)
    }

    /// Starts a module without blocking the thread.
    ///
    /// - Throws: The errors of ``start(_:within:parent:_:)``.
    func startInTask(_ module: LoadedModule, parent: plugin_token) async throws(PluginError) {
        let start = try begin(module, parent: parent)
        let outcome: Result<Void, PluginError> = await withCheckedContinuation { continuation in
            do throws(PluginError) {
                try start.whenOver { continuation.resume(returning: .success(())) }
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
        try outcome.get()
        try check(start, of: module, parent: parent)
    }

    private func begin(
        _ module: LoadedModule, parent: plugin_token, _ caller: Unmanaged<Generation>? = nil
    ) throws(PluginError) -> StartRequest {
        let callers = Self.generations(callingFrom: parent, caller)
        let start = core.starter.start(module.name, for: callers)
        if let starting = callers.first(where: start.includes) {
            throw PluginError(
                .circularWait,
                "\(module.name) is starting, and waits for the start of \(starting.name), which made this "
                    + "call. Make the call in init or didStart, or declare what \(starting.name) requires.")
        }
        return start
    }

    /// Returns the modules that run a call and the calls that led to it, and the module that makes a call within it.
    static func generations(
        callingFrom token: plugin_token, _ caller: Unmanaged<Generation>? = nil
    ) -> [Generation] {
        CallChain(from: token).compactMap(\.endpoint?.generation) + (caller.map { [$0.takeUnretainedValue()] } ?? [])
    }

    /// - Throws: The reason why the module does not serve, if it is still registered in the table.
    /// - Returns: `nil`: the caller must repeat the lookup.
    func check(_ start: StartRequest, of module: LoadedModule, for call: Call) throws(PluginError) -> plugin_token? {
        try check(start, of: module, parent: call.parent, call.caller)
        return nil
    }

    /// - Throws: The error of ``check(_:of:for:)``.
    private func check(
        _ start: StartRequest, of module: LoadedModule, parent: plugin_token, _ caller: Unmanaged<Generation>? = nil
    ) throws(PluginError) {
        guard registry.table.contents.known.modules.contains(where: { $0 === module }),
            start.refuses(Self.generations(callingFrom: parent, caller))
        else { return }
        throw start.error
            ?? PluginError(.moduleUnavailable, "\(module.name) was started, but is not available to this caller yet.")
    }

    /// Starts the modules that offer a service or subscribe to an event, one after the other.
    ///
    /// - Returns: Whether there were any, so that the caller must repeat the lookup.
    func startAll(
        _ modules: [LoadedModule]?, within timeout: Int64 = 0, parent: plugin_token? = nil
    ) throws(PluginError) -> Bool {
        guard let modules else { return false }
        let end = timeout > 0 ? monotonicNow().adding(timeout) : 0
        for module in modules {
            let left = end == 0 ? nil : Duration.nanoseconds(max(0, end - monotonicNow()))
            try start(module, within: left, parent: parent)
        }
        return true
    }

    /// Returns the current table. If the module that a URL leads to is only registered, starts it first.
    func tableStarting(_ url: RawText, isRemote: Bool, method: RouteMethod) throws(PluginError) -> Table {
        while true {
            let table = registry.table
            guard !table.contents.known.isEmpty,
                let module = try known(by: url, in: table, isRemote: isRemote, method: method)
            else {
                return table
            }
            try start(module)
        }
    }

    /// Returns the current table. If the module that has a target is only registered, starts it first.
    func tableStarting(target: String) -> Table {
        let table = registry.table
        guard let module = table.contents.known.target(target)?.module, (try? start(module)) != nil else {
            return table
        }
        return registry.table
    }

    func known(by url: String, isRemote: Bool) throws(PluginError) -> LoadedModule? {
        let table = registry.table
        if table.contents.known.isEmpty { return nil }
        return try url.withRawText { (url) throws(PluginError) in
            try known(by: url, in: table, isRemote: isRemote, method: .get)
        }
    }

    /// Returns the registered module that a URL leads to; `nil` if it leads to something else.
    ///
    /// - Throws: `invalidURL`.
    func known(
        by text: RawText, in table: Table, isRemote: Bool, method: RouteMethod
    ) throws(PluginError) -> LoadedModule? {
        let known = table.contents.known
        if known.isEmpty || table.isStopped { return nil }
        defer { withExtendedLifetime(table) {} }
        return try URLText.readPath(text, longest: settings.longestURL, scheme: settings.firstScheme) {
            (url) throws(PluginError) -> LoadedModule? in
            func module(_ target: plugin_string, _ action: plugin_string) -> LoadedModule? {
                known.module(answering: target, action, isRemote: isRemote)
            }
            func isThere(_ target: plugin_string, _ action: plugin_string) -> Bool {
                guard !isRemote else { return table.remoteDestination(target, action) != nil }
                return table.find(target, action) != nil || table.find(target, plugin_string("notFound")) != nil
            }
            func module(of route: RouteEntry) -> LoadedModule? {
                guard route.closure == nil else { return nil }
                let address = route.destination.address
                return table.find(address.target, address.action) == nil ? module(address.target, address.action) : nil
            }
            var steps = 0
            let match = table.routes.table.match(url, method, counting: &steps) { route in
                !isRemote || table.remoteDestination(of: route) != nil || module(of: route) != nil
            }
            if let match { return module(of: match.entry.takeUnretainedValue()) }
            if let (target, action) = url.targetAndAction(settings.schemes) {
                if isThere(target, action) { return nil }
                if let found = module(target, action) { return found }
            }
            return table.routes.table.fallback(url, method).flatMap { module(of: $0.entry.takeUnretainedValue()) }
        }
    }

    /// Creates the endpoint that represents calls that wait for the start of a module.
    static func makeStartingCalls(_ program: Generation) -> Endpoint {
        makeWaitingCalls(program, "waiting for the start of a module")
    }
}
