import CPluginHost
import PluginABI
import Synchronization

extension Calls {
    /// Opens a URL: calls the action that it addresses, with the parameters that it contains.
    func open(
        _ url: RawText, _ given: UnsafeBufferPointer<plugin_entry>, asksForObject: Bool, method: UInt32, _ call: Call,
        _ thread: ThreadContext,
        _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        if call.isRemote {
            return try openRemotely(
                url, given, RemoteOpening(asksForObject: asksForObject, method: try .asked(method)), call, thread,
                record
            )
        }
        return try openLocally(url, given, asksForObject: asksForObject, method: method, call, thread, record, for: nil)
    }

    /// Opens a URL that should return the object of a page, for the program. The action gets the parameters that it
    /// declares; the page gets all of them.
    ///
    /// - Parameter admission: The decision of the guard, if it has already been asked.
    func openPage(
        _ url: String, _ given: Parameters, isRemote: Bool, admission: RemoteAdmission?, parent: plugin_token
    ) async throws(PluginError) -> (result: Value, parameters: PageParameters) {
        // For a remote caller, the guard is asked first.
        while !isRemote, let module = try known(by: url, isRemote: false) {
            try await startInTask(module, parent: parent)
        }
        let noted = NotedPage()
        let pending = PendingCall(host: program.hostTable)
        pending.start { completion, data in
            let receiver = Receiver(completion, data)
            return inNextRecord(receiver) { (thread, record) throws(PluginError) in
                let table = thread.table
                thread.table = .published
                defer { thread.table = table }
                let call = Call(
                    parent: parent != 0 ? parent : thread.currentCall, timeout: 0, isRemote: isRemote, mode: .any,
                    receiver: receiver, caller: .passUnretained(program))
                return try url.withRawText { (url) throws(PluginError) in
                    try given.lend { (given) throws(PluginError) in
                        guard isRemote else {
                            let page = PageCall(given, self)
                            defer { noted.parameters.withLock { $0 = page.parameters } }
                            return try openLocally(
                                url, given, asksForObject: true, method: 0, call, thread, record, for: page)
                        }
                        return try openRemotely(
                            url, given, RemoteOpening(page: noted, admission), call, thread, record)
                    }
                }
            } ?? 0
        }
        let result = try await pending.outcome()
        return (result, noted.parameters.withLock { $0 })
    }

    /// Returns entries by name. If a name occurs more than once, the first entry is used.
    func named(_ entries: UnsafeBufferPointer<plugin_entry>) -> [String: Value] {
        let host = program.hostTable!
        return Dictionary(entries.map { ($0.key.text, Value(copying: $0.value, host: host)) }) { first, _ in first }
    }

    /// Opens a URL for a caller in this process.
    ///
    /// - Parameter page: Notes the parameters, if the URL should open a page.
    @inline(__always)
    private func openLocally(
        _ url: RawText, _ given: UnsafeBufferPointer<plugin_entry>, asksForObject: Bool, method: UInt32, _ call: Call,
        _ thread: ThreadContext,
        _ record: CallRecord, for page: PageCall?
    ) throws(PluginError) -> plugin_token {
        // Finding the route counts towards the caller's timeout.
        let end = call.timeout > 0 ? deadline(in: call.timeout, from: plugin_host_coarse_now()) : 0
        var areDropsLogged = page != nil
        while true {
            // The meaning of the URL and the endpoint must come from the same table. If that table is replaced, both
            // are looked up again.
            let table = registry.current(thread)
            let answer = try resolve(url, method, table) { (resolution) throws(PluginError) -> plugin_token? in
                let (target, action) = (resolution.target, resolution.action)
                let found = table.find(target, action)
                var call = call
                call.route = resolution.route
                if end != 0 { call.timeout = try Self.timeLeft(until: end, resolution.url) }
                let given = page?.given(for: found) ?? given
                return try URLArguments.lend(
                    of: resolution, to: found, besides: given, asksForObject: asksForObject
                ) { [call] (entries, dropped) throws(PluginError) -> plugin_token? in
                    page?.note(resolution.query, found, entries)
                    if dropped != 0, !areDropsLogged, let found {
                        areDropsLogged = true
                        logDrops(from: resolution.query, of: found.takeUnretainedValue())
                    }
                    guard let found else {
                        if let module = known(for: resolution, in: table) {
                            return try start(
                                module, for: .url(url.string, asksForObject: asksForObject, method: method), given,
                                call,
                                thread, record)
                        }
                        return try callOther(resolution, entries, asksForObject: asksForObject, call, thread, record)
                    }
                    let isThere = registry.read(thread) { present in
                        guard present === table else { return false }
                        occupy(record, found, call)
                        return true
                    }
                    guard isThere else { return nil }
                    if table.interception == nil, call.isPlain,
                        callFast(found, entries, areTrusted: true, call.receiver, thread, record)
                    {
                        return 0
                    }
                    let endpoint = found.takeUnretainedValue()
                    if endpoint.isBlocked.load(ordering: .relaxed), let barrier = try barrier(of: endpoint, for: call) {
                        return try wait(
                            for: barrier, endpoint, .url(url.string, asksForObject: asksForObject, method: method),
                            given, call,
                            thread, record)
                    }
                    return try invoke(endpoint, entries, call, thread, record, through: table.interception)
                }
            }
            if let answer { return answer }
        }
    }

    /// Returns the registered module that a URL leads to; `nil` if it leads to something else.
    @inline(never)
    private func known(for resolution: URLResolution, in table: Table) -> LoadedModule? {
        if resolution.route?.takeUnretainedValue().closure != nil { return nil }
        return table.contents.known.module(answering: resolution.target, resolution.action)
    }

    /// Calls what a URL leads to if that is not an action: the closure of its route, or a fallback.
    @inline(never)
    private func callOther(
        _ resolution: URLResolution, _ entries: UnsafeBufferPointer<plugin_entry>, asksForObject: Bool, _ call: Call,
        _ thread: ThreadContext, _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        guard let closure = resolution.route?.takeUnretainedValue().closure else {
            return try self.call(resolution.target, resolution.action, entries, call, thread, record)
        }
        return try self.call(closure, of: resolution, entries, asksForObject: asksForObject, call, thread, record)
    }

    /// Calls the closure of a route.
    ///
    /// - Parameter entries: The parameters, without what the host says about the URL; see
    ///   ``URLArguments/ofClosure(_:_:asksForObject:)``.
    func call(
        _ closure: RouteClosure, of resolution: URLResolution, _ entries: UnsafeBufferPointer<plugin_entry>,
        asksForObject: Bool, _ call: Call, _ thread: ThreadContext, _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        let parameters = URLArguments.ofClosure(resolution, named(entries), asksForObject: asksForObject)
        return try Parameters(positional: [.map(parameters)]).lend { (entries) throws(PluginError) in
            try callObject(closure.callback.object.handle, "call", entries, call, thread, record)
        }
    }

    /// Logs the names of the query items that are dropped because the action does not declare them. A rest takes all
    /// but those that are reserved.
    @inline(never)
    func logDrops(from query: URLText.Query, of endpoint: Endpoint) {
        var names: [String] = []
        var known: Set<String> = []
        for item in query where endpoint.parameters.position(of: plugin_string(item.name), near: 0) == nil {
            if endpoint.hasRest, !plugin_string(item.name).isReserved { continue }
            if known.insert(item.name.string).inserted { names.append(item.name.string) }
        }
        guard !names.isEmpty else { return }
        let first = names.prefix(Self.loggedDropsMax).map { "“\($0.shortened)”" }.joined(separator: ", ")
        let more = names.count > Self.loggedDropsMax ? " and \(names.count - Self.loggedDropsMax) more" : ""
        settings.log(
            LogEntry(
                level: .debug, call: endpoint.name,
                message: "These query items of a URL were dropped, because \(endpoint.title) does not declare them: "
                    + "\(first)\(more)."))
    }

    /// The maximum number of dropped query items that are named in the log.
    private static var loggedDropsMax: Int { 4 }

    /// Returns the time that is left for opening a URL, in nanoseconds.
    ///
    /// - Throws: `deadlineExceeded` if no time is left; nothing may be called then.
    static func timeLeft(until end: Int64, _ url: RawText) throws(PluginError) -> Int64 {
        let left = end - monotonicNow()
        guard left > 0 else {
            throw PluginError(
                .deadlineExceeded,
                "The timeout for opening “\(url.string.shortened)” has passed. Its action was not called.")
        }
        return left
    }

    /// Finds what a URL leads to for a caller in this process, and lends it.
    ///
    /// - Throws: `invalidURL`, `hostStopped`.
    @inline(__always)
    func resolve<Result>(
        _ text: RawText, _ method: UInt32, _ table: Table, _ body: (URLResolution) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        defer { withExtendedLifetime(table) {} }  // The table owns what the URL leads to.
        return try URLText.readPath(text, longest: settings.longestURL, scheme: settings.firstScheme) {
            (url) throws(PluginError) in
            if table.isStopped { throw table.isStopped(url) }
            let routes = table.routes.table
            let match = method == 0 ? routes.match(url) : routes.match(url, try .asked(method))
            let query = try url.readQuery()  // Meanwhile the matched route is loaded from memory.
            return try body(
                try table.resolve(url, query, match, try .asked(method), schemes: settings.schemes))
        }
    }

    /// Checks whether opening a URL would reach an action: it resolves, its parameters are valid, and the guard passes
    /// it.
    ///
    /// - Parameter parent: The call on whose behalf the check is made; 0 for the one that runs on this thread, if any.
    /// - Throws: The error that `open` would throw before it calls the action.
    func checkOpen(
        _ url: String, _ parameters: Parameters, isRemote: Bool, method: UInt32 = 0, for parent: plugin_token = 0
    ) throws(PluginError) {
        try url.withRawText { (url) throws(PluginError) in
            let table = isRemote ? registry.table : try tableStarting(url, isRemote: false, method: try .asked(method))
            return try parameters.lend { (given) throws(PluginError) in
                try checkOpen(url, given, isRemote: isRemote, method: method, for: parent, table)
            }
        }
    }

    func checkOpen(
        _ url: RawText, _ given: UnsafeBufferPointer<plugin_entry>, isRemote: Bool, method: UInt32,
        for parent: plugin_token, _ table: Table
    ) throws(PluginError) {
        if isRemote {
            let parent = parent != 0 ? parent : ThreadContext.current?.currentCall ?? 0
            return try checkRemotely(url, given, try .asked(method), for: parent, in: table)
        }
        try resolve(url, method, table) { (resolution) throws(PluginError) in
            let destination = try destination(of: resolution, in: table)
            try destination.lendArguments(resolution, besides: given) { (entries, _) throws(PluginError) in
                _ = try self.parameters(entries, of: resolution, destination)
            }
        }
    }
}

extension Table {
    /// Returns the error for opening a URL after the host was shut down.
    func isStopped(_ url: URLText) -> PluginError {
        missing(url.writtenHost.string, url.segments.last?.string ?? "")
    }
}
