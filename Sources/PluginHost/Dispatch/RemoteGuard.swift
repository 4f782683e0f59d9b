import CPluginABI
public import PluginABI
import Synchronization

/// A call that comes from another program, as the program's guard sees it before it is made.
public struct RemoteCall: Sendable {
    /// The URL as it was given.
    public let url: String
    /// In lower case; nil for a URL without one.
    public let scheme: String?
    /// In lower case; nil for a URL without one.
    public let host: String?
    /// What the URL leads to; nil where it leads nowhere.
    public let target: String?
    /// The action of the target that the URL leads to; nil where it leads nowhere.
    public let action: String?
    /// What rides along with the URL.
    public let parameters: [String: Value]
}

/// What a guard says of a remote call.
public enum RemoteDecision: Sendable {
    /// Let it be made. It still reaches remote actions only.
    case pass
    /// End it with ``/PluginABI/PluginError/Code/refused`` and this message.
    case refuse(String)
    /// Open this URL instead, as a remote call; the guard is not asked again.
    case redirect(String)
}

/// Decides about remote calls. Called on the thread of the call, also concurrently; must not have side effects, since
/// `canOpen` asks it, too.
public typealias RemoteGuard = @Sendable (RemoteCall) -> RemoteDecision

extension Dispatcher {
    /// Finds what a URL leads to, after the guard has been asked, and lends it.
    ///
    /// - Throws: `invalidURL`, `refused`, `hostStopped`.
    @inline(__always)
    func resolve<Result>(
        _ text: RawText, _ given: UnsafeBufferPointer<plugin_entry>, isRemote: Bool, _ table: Table,
        _ body: (URLResolution) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        defer { withExtendedLifetime(table) {} }  // What the URL leads to is its.
        return try URLText.readPath(text, longest: settings.longestURL) { (url) throws(PluginError) in
            if table.isStopped { throw table.missing(url.writtenHost.string, url.segments.last?.string ?? "") }
            let match = table.routes.table.match(url)
            try url.takeQuery()  // Meanwhile what was found comes from memory.
            if isRemote, let other = try askGuard(url, match, given, table) {
                return try URLText.read(other, longest: settings.longestURL) { (url) throws(PluginError) in
                    try body(try table.resolve(url, table.routes.table.match(url), schemes: settings.schemes))
                }
            }
            return try body(try table.resolve(url, match, schemes: settings.schemes))
        }
    }

    /// The URL that the guard wants opened instead.
    ///
    /// - Throws: `refused`.
    private func askGuard(
        _ url: URLText, _ match: RouteMatch?, _ given: UnsafeBufferPointer<plugin_entry>, _ table: Table
    ) throws(PluginError) -> String? {
        guard let remoteGuard = remoteGuard.withLock({ $0 }) else { return nil }
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

    /// Whether opening a URL would reach an action: it resolves, its parameters check, and the guard passes.
    ///
    /// - Throws: what `open` would throw before it calls the action.
    func checkOpen(_ url: String, _ parameters: Parameters, isRemote: Bool) throws(PluginError) {
        let table = registry.table
        try url.withRawText { (url) throws(PluginError) in
            try parameters.withEntries { (entries, count) throws(PluginError) in
                let given = UnsafeBufferPointer(start: entries, count: count)
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
            return try checkFallback(resolution.target.text, resolution.action.text, isRemote: isRemote, table)
        }
        let endpoint = found.takeUnretainedValue()
        if isRemote, !endpoint.isRemote { throw .notRemote(endpoint) }
        try URLArguments.lend(of: resolution, to: found, besides: given, asksForObject: false) {
            (entries) throws(PluginError) in try endpoint.checkBinding(entries)
        }
    }

    /// Whether something stands in for an action that is not there, as ``callFallback(_:_:_:_:_:_:in:)`` finds it.
    private func checkFallback(
        _ target: String, _ action: String, isRemote: Bool, _ table: Table
    ) throws(PluginError) {
        if let notFound = table.targets[target]?.actions["notFound"], !isRemote || notFound.isRemote {
            return try Parameters([("action", .string(action)), ("parameters", [:])]).withEntries {
                (entries, count) throws(PluginError) in
                try notFound.checkBinding(UnsafeBufferPointer(start: entries, count: count))
            }
        }
        guard table.targets[target] == nil, noTargetHandler.withLock({ $0 != nil }) else {
            throw table.missing(target, action)
        }
    }
}

extension Endpoint {
    /// - Throws: what ``bind(_:to:)`` throws.
    fileprivate func checkBinding(_ entries: UnsafeBufferPointer<plugin_entry>) throws(PluginError) {
        try withUnsafeTemporaryAllocation(of: plugin_value.self, capacity: parameters.count) {
            (arguments) throws(PluginError) in try bind(entries, to: arguments)
        }
    }
}
