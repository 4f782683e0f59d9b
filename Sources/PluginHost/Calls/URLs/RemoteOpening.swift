import CPluginHost
import PluginABI
import Synchronization

/// The state of one opening by a remote caller, which is kept while the opening waits: the guard is asked once.
struct RemoteOpening: Sendable {
    let asksForObject: Bool
    let method: RouteMethod
    /// Notes the parameters, if the URL should open a page.
    let page: NotedPage?
    var decision = Decision.none
    /// Whether the event `host.openURL` was posted.
    var isAnnounced = false

    /// The decision of the guard.
    enum Decision: Sendable {
        case none
        /// Make this call. If modules change and the URL then leads elsewhere, that is another call.
        case pass(RemoteSubject)
        /// Open this URL instead, without asking the guard about it.
        case redirect(String)

        var isRedirect: Bool { if case .redirect = self { true } else { false } }
        /// Where the call leads that the guard has passed.
        var subject: RemoteSubject? { if case .pass(let subject) = self { subject } else { nil } }
    }

    init(asksForObject: Bool, method: RouteMethod, page: NotedPage? = nil) {
        (self.asksForObject, self.method, self.page) = (asksForObject, method, page)
    }

    /// Creates the opening of a page. If `admission` is given, the guard has already decided about the opening.
    init(page: NotedPage, _ admission: RemoteAdmission?) {
        self.init(asksForObject: true, method: admission?.method ?? .get, page: page)
        guard let admission else { return }
        (decision, isAnnounced) = (.pass(admission.subject), true)
    }
}

extension RemoteSubject {
    init(_ resolution: Calls.RemoteResolution) {
        guard case .found(let resolution, let destination) = resolution else {
            self.init(route: nil, endpoint: nil, names: nil, demands: [])
            return
        }
        let route = resolution.route?.takeUnretainedValue()
        let endpoint = route == nil ? destination.declaring : nil
        let names =
            route == nil && endpoint == nil ? "\(resolution.target.text)/\(resolution.action.text)" : nil
        self.init(route: route, endpoint: endpoint, names: names, demands: destination.demands)
    }
}

extension Calls {
    /// Opens a URL for a remote caller: finds what the URL leads to, considering only what is declared remote, then
    /// asks the guard, then makes the call.
    func openRemotely(
        _ url: RawText, _ given: UnsafeBufferPointer<plugin_entry>, _ opening: RemoteOpening, _ call: Call,
        _ thread: ThreadContext, _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        // Finding the route and asking the guard count towards the caller's timeout.
        let end = call.timeout > 0 ? deadline(in: call.timeout, from: plugin_host_coarse_now()) : 0
        var opening = opening
        while true {
            let table = registry.current(thread)
            let other: String? = if case .redirect(let other) = opening.decision { other } else { nil }
            let answer =
                if let other {
                    try other.withRawText { (other) throws(PluginError) in
                        try tryToOpen(other, insteadOf: url, given, &opening, end, call, thread, record, table)
                    }
                } else {
                    try tryToOpen(url, insteadOf: url, given, &opening, end, call, thread, record, table)
                }
            if let answer { return answer }
        }
    }

    /// Opens a URL. Returns `nil` if the table is replaced before the call, if the module that the URL leads to was
    /// only registered and has been started, or if the guard redirects to another URL.
    ///
    /// - Parameter original: The URL that the caller has opened.
    private func tryToOpen(
        _ url: RawText, insteadOf original: RawText, _ given: UnsafeBufferPointer<plugin_entry>,
        _ opening: inout RemoteOpening, _ end: Int64, _ call: Call, _ thread: ThreadContext, _ record: CallRecord,
        _ table: Table
    ) throws(PluginError) -> plugin_token? {
        var next = opening
        defer { opening = next }
        let page = opening.page.map { _ in PageCall(given, self) }
        return try reach(url, given, opening, for: page, in: table) {
            (url, query, found, entries, dropped) throws(PluginError) -> plugin_token? in
            var call = call
            if end != 0 { call.timeout = try Self.timeLeft(until: end, url.bytes) }
            let endpoint: Endpoint? =
                if case .found(_, let destination) = found { destination.declaring } else { nil }
            if let page {
                page.note(query, endpoint.map { .passUnretained($0) }, entries)
                next.page?.parameters.withLock { $0 = page.parameters }
            }
            switch try decide(url, found, entries, next, of: call.parent) {
            case .pass: break
            case .refuse(let message): throw PluginError(.refused, message)
            case .redirect(let other):
                next.decision = .redirect(other)
                return nil
            case .ask(let remoteCall, let decide):
                guard call.mode == .any else { throw .asynchronousGuard(url.text) }
                return try keep(
                    .decision(remoteCall, RemoteSubject(found), decide), .remoteURL(original.string, next), given, call,
                    thread, record)
            }
            guard case .found(let resolution, let destination) = found else {
                if case .nothing(let passedOver) = found {
                    try table.checkMethods(of: url, next.method)
                    noteNoRoute(url, table, passedOver)
                }
                throw .noRoute(url.text)
            }
            let subject = RemoteSubject(found)
            if case .redirect = next.decision {} else { next.decision = .pass(subject) }
            if let module = knownModule(of: resolution, destination, in: table) {
                return try start(module, for: .remoteURL(original.string, next), given, call, thread, record)
            }
            if !next.isAnnounced {
                next.isAnnounced = true
                if hasSubscribers("host.openURL") { postHostEvent("host.openURL", ["url": .string(url.text)]) }
            }
            if dropped != 0, page == nil, let endpoint { logDrops(from: query, of: endpoint) }
            call.route = resolution.route
            let admission = RemoteAdmission(method: next.method, subject: subject)
            if !next.asksForObject, let token = try showPage(of: resolution, admission, given, call, thread, record) {
                return token
            }
            return try reachedCall(destination, resolution, entries, original, given, next, call, thread, record, table)
        }
    }

    /// Returns the registered module that must be started for a remote call; `nil` if none must be.
    func knownModule(
        of resolution: URLResolution, _ destination: URLHandler, in table: Table
    ) -> LoadedModule? {
        switch destination {
        case .action(let endpoint), .fallback(.notFound(let endpoint)):
            guard endpoint.generation.isProgram else { return nil }
        default: return nil
        }
        return table.contents.known.module(answering: resolution.target, resolution.action, isRemote: true)
    }

    /// Makes the call of what a URL leads to. Returns `nil` if the table has been replaced.
    private func reachedCall(
        _ destination: URLHandler, _ resolution: URLResolution, _ entries: UnsafeBufferPointer<plugin_entry>,
        _ original: RawText, _ given: UnsafeBufferPointer<plugin_entry>, _ opening: RemoteOpening, _ call: Call,
        _ thread: ThreadContext, _ record: CallRecord, _ table: Table
    ) throws(PluginError) -> plugin_token? {
        switch destination {
        case .action(let endpoint):
            let isThere = registry.read(thread) { present in
                guard present === table else { return false }
                occupy(record, .passUnretained(endpoint), call)
                return true
            }
            guard isThere else { return nil }
            if endpoint.isBlocked.load(ordering: .relaxed), let barrier = try barrier(of: endpoint, for: call) {
                return try wait(
                    for: barrier, endpoint, .remoteURL(original.string, opening), given, call, thread, record)
            }
            return try invoke(endpoint, entries, call, thread, record, through: table.interception)
        case .fallback(let fallback):
            return try self.call(
                fallback, for: resolution.target.text, resolution.action.text, entries, call, thread, record, in: table)
        case .closure(let closure):
            return try self.call(
                closure, of: resolution, entries, asksForObject: opening.asksForObject, call, thread, record)
        }
    }

    /// Checks whether opening a URL by a remote caller would reach something.
    ///
    /// - Throws: The error that `open` would throw.
    func checkRemotely(
        _ url: RawText, _ given: UnsafeBufferPointer<plugin_entry>, _ method: RouteMethod, for parent: plugin_token,
        in table: Table
    ) throws(PluginError) {
        var opening = RemoteOpening(asksForObject: false, method: method)
        var other: String?
        func check(_ url: RawText) throws(PluginError) {
            try reach(url, given, opening, in: table) { (url, _, found, entries, _) throws(PluginError) in
                switch try decide(url, found, entries, opening, of: parent) {
                case .pass:
                    if case .nothing = found {
                        try table.checkMethods(of: url, method)
                        throw .noRoute(url.text)
                    }
                case .ask: break
                case .refuse(let message): throw PluginError(.refused, message)
                case .redirect(let redirected): other = redirected
                }
            }
        }
        try check(url)
        guard let other else { return }
        opening.decision = .redirect(other)
        try other.withRawText { (other) throws(PluginError) in try check(other) }
    }

    /// Finds what a URL leads to for a remote caller, and lends it, with the entries of the call.
    ///
    /// - Throws: `invalidURL`, `hostStopped`.
    private func reach<Result>(
        _ text: RawText, _ given: UnsafeBufferPointer<plugin_entry>, _ opening: RemoteOpening,
        for page: PageCall? = nil, in table: Table,
        _ body: (
            URLText, URLText.Query, RemoteResolution, UnsafeBufferPointer<plugin_entry>, _ dropped: Int
        ) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        defer { withExtendedLifetime(table) {} }  // The table owns what the URL leads to.
        return try URLText.readPath(text, longest: settings.longestURL, scheme: settings.firstScheme) {
            (url) throws(PluginError) in
            if table.isStopped { throw table.isStopped(url) }
            let query = try url.readQuery()
            let found = resolveRemotely(url, query, opening.method, in: table)
            guard case .found(let resolution, let destination) = found else {
                return try body(url, query, found, given, 0)
            }
            let given = page?.given(for: destination.declaring.map { .passUnretained($0) }) ?? given
            return try destination.lendArguments(resolution, besides: given, asksForObject: opening.asksForObject) {
                (entries, dropped) throws(PluginError) in try body(url, query, found, entries, dropped)
            }
        }
    }

    private func noteNoRoute(_ url: URLText, _ table: Table, _ passedOver: RouteEntry?) {
        let reason = table.reasonForNoRoute(url, schemes: settings.schemes, passing: passedOver)
        settings.log(
            LogEntry(
                level: .info,
                message: "Another program opened “\(url.text.shortened)”, which leads to nothing for it. \(reason)"))
    }
}

// MARK: - The guard

extension Calls {
    /// The next step of a remote call.
    private enum Verdict {
        case pass
        case refuse(String)
        case redirect(String)
        case ask(RemoteCall, AsynchronousRemoteGuard)
    }

    /// Checks the parameters of a remote call, and asks the guard, unless it has already decided.
    ///
    /// - Throws: The error of the parameters.
    private func decide(
        _ url: URLText, _ found: RemoteResolution, _ entries: UnsafeBufferPointer<plugin_entry>,
        _ opening: RemoteOpening, of parent: plugin_token
    ) throws(PluginError) -> Verdict {
        if let known = opening.decision.subject, known == RemoteSubject(found) {
            try check(entries, found)
            return .pass
        }
        guard let forms = core.remoteGuard.withLock({ $0 }), !opening.decision.isRedirect else {
            try check(entries, found)
            if opening.decision.isRedirect { return .pass }
            guard case .found(_, let destination) = found, !destination.demands.isEmpty else { return .pass }
            return .refuse(Self.noGuard(url, destination.demands))
        }
        var parameters: [String: Value] = [:]
        var demands: [String] = []
        var names: (target: String, action: String)?
        var route: String?
        switch found {
        case .found(let resolution, let destination):
            parameters = try self.parameters(
                entries, of: resolution, destination, asksForObject: opening.asksForObject)
            demands = destination.demands
            if resolution.target.count > 0 { names = (resolution.target.text, resolution.action.text) }
            route = resolution.route?.takeUnretainedValue().pattern.text
        case .nothing:
            parameters = named(entries)
            names = url.targetAndAction(settings.schemes).map { ($0.text, $1.text) }
        }
        let call = RemoteCall(
            url: url.text, scheme: url.scheme?.string, host: url.host?.string, target: names?.target,
            action: names?.action, route: route, parameters: parameters, demands: demands,
            callContext: CallContexts.context(of: parent))
        switch forms.check(call) {
        case .pass: return .pass
        case .refuse(let message): return .refuse(message)
        case .redirect(let other): return .redirect(other)
        case .ask:
            guard let decide = forms.decide else {
                return .refuse(
                    "The program's guard wants to decide about “\(url.text.shortened)” asynchronously, but has no "
                        + "asynchronous form (onRemoteCall(_:asking:)).")
            }
            return .ask(call, decide)
        }
    }

    /// - Throws: The errors of ``Endpoint/bind(_:to:)``.
    private func check(
        _ entries: UnsafeBufferPointer<plugin_entry>, _ found: RemoteResolution
    ) throws(PluginError) {
        guard case .found(let resolution, let destination) = found else { return }
        try check(entries, of: resolution, destination)
    }

    private static func noGuard(_ url: URLText, _ demands: [String]) -> String {
        "“\(url.text.shortened)” demands \(demands.joined(separator: ", ")) of other programs, and this program has no "
            + "guard that could check it (onRemoteCall)."
    }
}

extension PluginError {
    fileprivate static func asynchronousGuard(_ url: String) -> PluginError {
        PluginError(
            .asynchronousGuard,
            "The program's guard can decide about “\(url.shortened)” only asynchronously: open it with await, or with "
                + "call from a module.")
    }
}
