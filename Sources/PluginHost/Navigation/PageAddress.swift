import CPluginABI
import PluginABI

/// How a page is found: as any action.
enum PageAddress: Sendable {
    case url(String, CallOrigin)
    case action(String, String)

    /// For messages.
    var title: String {
        switch self {
        case .url(let url, _): "“\(url.shortened)”"
        case .action(let target, let action): "\(target)/\(action)"
        }
    }

    var url: String? { if case .url(let url, _) = self { url } else { nil } }

    /// Calls the action that makes the page.
    func call(_ parameters: [String: Value], in context: HostContext) async throws(PluginError) -> Value {
        switch self {
        case .url(let url, let origin):
            .object(try await context.object(for: url, Parameters(parameters), origin: origin))
        case .action(let target, let action): try await context.call(target, action, Parameters(parameters))
        }
    }

    /// All that the action gets: what is given, what stands in the URL, and the defaults.
    func parameters(with given: [String: Value], _ calls: Calls) throws(PluginError) -> [String: Value] {
        switch self {
        case .url(let url, let origin):
            try calls.parameters(ofOpening: url, given, isRemote: origin == .remote)
        case .action(let target, let action):
            given.merging(calls.defaults(of: calls.registry.table.targets[target]?.actions[action])) { a, _ in
                a
            }
        }
    }
}

extension Calls {
    fileprivate func parameters(
        ofOpening url: String, _ given: [String: Value], isRemote: Bool
    ) throws(PluginError) -> [String: Value] {
        let table = registry.table
        return try url.withRawText { (url) throws(PluginError) in
            try Parameters(given).withEntries { (entries, count) throws(PluginError) in
                let given = UnsafeBufferPointer(start: entries, count: count)
                return try resolve(url, given, isRemote: isRemote, table) { (resolution) throws(PluginError) in
                    let found = table.find(resolution.target, resolution.action)
                    return try URLArguments.lend(of: resolution, to: found, besides: given, asksForObject: true) {
                        (entries) throws(PluginError) in
                        let pairs = entries.map { ($0.key.text, Value(copying: $0.value, host: program.hostTable)) }
                        return Dictionary(pairs + defaults(of: found?.takeUnretainedValue()).map { ($0, $1) }) {
                            first, _ in first
                        }
                    }
                }
            }
        }
    }

    fileprivate func defaults(of endpoint: Endpoint?) -> [String: Value] {
        let pairs = (endpoint?.parameters.map(\.self) ?? []).map {
            ($0.name, Value(copying: $0.defaultValue, host: program.hostTable))
        }
        return Dictionary(pairs) { first, _ in first }.filter { !$0.value.isNull }
    }
}
