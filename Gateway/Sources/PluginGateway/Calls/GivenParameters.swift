import PluginABI

/// The parameters that a client gives for a call, besides those in the URL.
enum GivenParameters: Sendable {
    case named([String: Value])
    case inOrder([Value])

    /// Whether a parameter is a callback. JSON has no other objects.
    var hasCallback: Bool {
        switch self {
        case .named(let entries): entries.values.contains(where: \.isObject)
        case .inOrder(let values): values.contains(where: \.isObject)
        }
    }

    var parameters: CallParameters {
        switch self {
        case .named(let entries): CallParameters(entries)
        case .inOrder(let values): CallParameters(positional: values)
        }
    }

    /// Returns these parameters, with callbacks for those whose events the query names: `?then=progress`.
    func adding(
        callbacksIn query: String, of action: Catalog.KnownAction?, _ maker: CallbackMaker?
    ) throws(Problem) -> GivenParameters {
        guard case .named(var entries) = self, let parameters = action?.action.callbacks, !parameters.isEmpty
        else { return self }
        // If the query repeats a name, the last one counts. Callbacks in the body have precedence.
        for part in query.dropFirst().split(separator: "&").reversed() {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, let parameter = parameters.first(where: { $0.name == pair[0] }),
                entries[parameter.name]?.isObject != true
            else { continue }
            entries[parameter.name] = try parameter.decoding(.string(String(pair[1])), maker)
        }
        return .named(entries)
    }
}

extension Value {
    fileprivate var isObject: Bool { object != nil }
}
