import CPluginHost
import PluginABI
import Synchronization

extension Calls {
    /// Opens a URL: calls the action that it addresses, with the parameters that it contains.
    func open(
        _ url: RawText, _ given: UnsafeBufferPointer<plugin_entry>, asksForObject: Bool, _ call: Call,
        _ thread: ThreadContext,
        _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        try open(url, given, asksForObject: asksForObject, call, thread, record, for: nil)
    }

    /// Opens a URL that should return the object of a page, for the program. The action gets the parameters that it
    /// declares; the page gets all of them.
    ///
    /// - Parameter isAdmitted: Whether the guard has already let the URL pass.
    func openPage(
        _ url: String, _ given: Parameters, isRemote: Bool, isAdmitted: Bool, parent: plugin_token
    ) async throws(PluginError) -> (result: Value, parameters: PageParameters) {
        var parameters = PageParameters()
        let pending = PendingCall(host: program.hostTable)
        pending.start { completion, data in
            let receiver = Receiver(completion, data)
            return inNextRecord(receiver) { (thread, record) throws(PluginError) in
                let seesProposal = thread.seesProposal
                thread.seesProposal = false
                defer { thread.seesProposal = seesProposal }
                let call = Call(
                    parent: parent != 0 ? parent : thread.currentCall, timeout: 0, isRemote: isRemote,
                    isAdmitted: isAdmitted, mode: .any, receiver: receiver, caller: .passUnretained(program))
                return try url.withRawText { (url) throws(PluginError) in
                    try given.lend { (given) throws(PluginError) in
                        let page = PageCall(given, self)
                        defer { parameters = page.parameters }
                        return try open(url, given, asksForObject: true, call, thread, record, for: page)
                    }
                }
            } ?? 0
        }
        return (try await pending.outcome(), parameters)
    }

    /// - Parameter page: Notes the parameters, if the URL should open a page.
    @inline(__always)
    private func open(
        _ url: RawText, _ given: UnsafeBufferPointer<plugin_entry>, asksForObject: Bool, _ call: Call,
        _ thread: ThreadContext,
        _ record: CallRecord, for page: PageCall?
    ) throws(PluginError) -> plugin_token {
        // Finding the route counts towards the caller's timeout.
        let end = call.timeout > 0 ? deadline(in: call.timeout, from: plugin_host_coarse_now()) : 0
        var (isAnnounced, areDropsLogged) = (call.isAdmitted, page != nil)
        while true {
            // The meaning of the URL and the endpoint must come from the same table. If that table is replaced, both
            // are looked up again.
            let table = registry.current(thread)
            let answer = try resolve(url, given, isRemote: call.isRemote, asksGuard: !call.isAdmitted, table) {
                (resolution) throws(PluginError) -> plugin_token? in
                if call.isRemote {
                    if !isAnnounced {
                        isAnnounced = true
                        postHostEvent("host.openURL", ["url": .string(resolution.url.string)])
                    }
                    if !asksForObject, let token = try showPage(of: resolution, given, call, thread, record) {
                        return token
                    }
                }
                let (target, action) = (resolution.target, resolution.action)
                let found = table.find(target, action)
                var call = call
                call.route = resolution.route
                if end != 0 { call.timeout = try Self.timeLeft(until: end, target, action) }
                let given = page?.given(for: found) ?? given
                return try URLArguments.lend(
                    of: resolution, to: found, besides: given, asksForObject: asksForObject
                ) { [call] (entries, dropped) throws(PluginError) -> plugin_token? in
                    page?.note(resolution.query, found, entries)
                    if dropped != 0, !areDropsLogged, let found {
                        areDropsLogged = true
                        logDrops(from: resolution.query, of: found.takeUnretainedValue())
                    }
                    guard let found else { return try self.call(target, action, entries, call, thread, record) }
                    let isThere = registry.read(thread) { present in
                        guard present === table else { return false }
                        occupy(record, found, call)
                        return true
                    }
                    guard isThere else { return nil }
                    if table.interception == nil, call.isPlain,
                        callFast(found, entries, call.receiver, thread, record)
                    {
                        return 0
                    }
                    let endpoint = found.takeUnretainedValue()
                    if endpoint.isBlocked.load(ordering: .relaxed), let barrier = try barrier(of: endpoint, for: call) {
                        return try wait(
                            for: barrier, endpoint, url: url, asksForObject: asksForObject, given, call, thread, record)
                    }
                    return try invoke(endpoint, entries, call, thread, record, through: table.interception)
                }
            }
            if let answer { return answer }
        }
    }

    /// Logs the names of the query items that are dropped because the action does not declare them.
    @inline(never)
    private func logDrops(from query: UnsafeBufferPointer<URLText.Item>, of endpoint: Endpoint) {
        var names: [String] = []
        var known: Set<String> = []
        for item in query where endpoint.parameters.position(of: plugin_string(item.name), near: 0) == nil {
            if known.insert(item.name.string).inserted { names.append(item.name.string) }
        }
        let first = names.prefix(Self.loggedDropsMax).map { "“\($0.shortened)”" }.joined(separator: ", ")
        let more = names.count > Self.loggedDropsMax ? " and \(names.count - Self.loggedDropsMax) more" : ""
        settings.log(
            LogEntry(
                level: .debug, call: endpoint.name,
                message: "Of the query of a URL, \(first)\(more) was dropped: \(endpoint.title) does not declare it."))
    }

    /// The maximum number of dropped query items that are named in the log.
    private static var loggedDropsMax: Int { 4 }

    /// Returns the time that is left for opening a URL when its route has been found, in nanoseconds.
    ///
    /// - Throws: `deadlineExceeded` if none is left: the action is not called.
    private static func timeLeft(
        until end: Int64, _ target: plugin_string, _ action: plugin_string
    ) throws(PluginError) -> Int64 {
        let left = end - monotonicNow()
        guard left > 0 else {
            throw PluginError(
                .deadlineExceeded,
                "The timeout for opening the URL passed before its route was found. \(target.text.shortened)/"
                    + "\(action.text.shortened) was not called.")
        }
        return left
    }

    /// Asks the guard, finds what a URL leads to, and lends it.
    ///
    /// - Parameter asksGuard: Whether the guard is asked about a remote call.
    /// - Throws: `invalidURL`, `refused`, `hostStopped`.
    @inline(__always)
    func resolve<Result>(
        _ text: RawText, _ given: UnsafeBufferPointer<plugin_entry>, isRemote: Bool, asksGuard: Bool = true,
        _ table: Table, _ body: (URLResolution) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        defer { withExtendedLifetime(table) {} }  // The table owns what the URL leads to.
        return try URLText.readPath(text, longest: settings.longestURL, scheme: settings.firstScheme) {
            (url) throws(PluginError) in
            if table.isStopped { throw table.missing(url.writtenHost.string, url.segments.last?.string ?? "") }
            let match = table.routes.table.match(url)
            try url.takeQuery()  // Meanwhile the matched route is loaded from memory.
            if isRemote, asksGuard, let other = try askGuard(url, match, given, table) {
                return try URLText.read(other, longest: settings.longestURL, scheme: settings.firstScheme) {
                    (url) throws(PluginError) in
                    try body(try table.resolve(url, table.routes.table.match(url), schemes: settings.schemes))
                }
            }
            return try body(try table.resolve(url, match, schemes: settings.schemes))
        }
    }

    /// Asks the guard, and returns the URL that it wants to be opened instead, if any.
    ///
    /// - Throws: `refused`.
    private func askGuard(
        _ url: URLText, _ match: RouteMatch?, _ given: UnsafeBufferPointer<plugin_entry>, _ table: Table
    ) throws(PluginError) -> String? {
        guard let remoteGuard = core.remoteGuard.withLock({ $0 }) else { return nil }
        let found = try? table.resolve(url, match, schemes: settings.schemes)
        let program = program.hostTable!
        let parameters = Dictionary(
            given.map { ($0.key.text, Value(copying: $0.value, host: program)) }, uniquingKeysWith: { a, _ in a })
        let call = RemoteCall(
            url: url.text, scheme: url.scheme?.string, host: url.host?.string, target: found?.target.text,
            action: found?.action.text, parameters: parameters)
        switch remoteGuard(call) {
        case .pass: return nil
        case .refuse(let message): throw PluginError(.refused, message)
        case .redirect(let other): return other
        }
    }

    /// Checks whether opening a URL would reach an action: it resolves, its parameters are valid, and the guard passes
    /// it.
    ///
    /// - Throws: The error that `open` would throw before it calls the action.
    func checkOpen(_ url: String, _ parameters: Parameters, isRemote: Bool) throws(PluginError) {
        let table = registry.table
        try url.withRawText { (url) throws(PluginError) in
            try parameters.lend { (given) throws(PluginError) in
                try checkOpen(url, given, isRemote: isRemote, table)
            }
        }
    }

    func checkOpen(
        _ url: RawText, _ given: UnsafeBufferPointer<plugin_entry>, isRemote: Bool, _ table: Table
    ) throws(PluginError) {
        try resolve(url, given, isRemote: isRemote, table) { (resolution) throws(PluginError) in
            try check(resolution, given, isRemote: isRemote, table)
        }
    }

    private func check(
        _ resolution: URLResolution, _ given: UnsafeBufferPointer<plugin_entry>, isRemote: Bool, _ table: Table
    ) throws(PluginError) {
        guard let found = table.find(resolution.target, resolution.action) else {
            let action = resolution.action.text
            let fallback = try fallback(for: resolution.target.text, action, isRemote: isRemote, in: table)
            guard case .notFound(let notFound) = fallback else { return }
            return try Parameters(ofNotFound: action, [:]).lend { (entries) throws(PluginError) in
                try notFound.checkBinding(entries)
            }
        }
        let endpoint = found.takeUnretainedValue()
        if isRemote, !endpoint.isRemote { throw .notRemote(endpoint) }
        try URLArguments.lend(of: resolution, to: found, besides: given, asksForObject: false) {
            (entries, _) throws(PluginError) in try endpoint.checkBinding(entries)
        }
    }
}
extension Endpoint {
    /// - Throws: The errors of ``bind(_:to:)``.
    fileprivate func checkBinding(_ entries: UnsafeBufferPointer<plugin_entry>) throws(PluginError) {
        try withUnsafeTemporaryAllocation(of: plugin_value.self, capacity: argumentCount(for: entries)) {
            (arguments) throws(PluginError) in try bind(entries, to: arguments)?.deallocate()
        }
    }
}
