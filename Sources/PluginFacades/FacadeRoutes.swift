import PluginABI
import PluginFile
import PluginHost

/// The part of a façade that builds and opens URLs.
struct FacadeRoutes {
    private let access: String
    private let types: FacadeTypes
    private let routes: [Route]

    private struct Route {
        let declared: ModuleManifest.Route
        let name: String
        let parameters: [(label: String, parameter: ModuleManifest.Parameter)]
    }

    /// Makes the part for the routes of a manifest; `nil` if no URL can be built for any route.
    ///
    /// - Parameter groups: The groups of each route's pattern; `nil` for a pattern for which no URL can be built.
    init?(_ manifest: ModuleManifest, _ groups: [[PatternGroup]?], access: String, types: FacadeTypes) {
        (self.access, self.types) = (access, types)
        let buildable = zip(manifest.routes, groups).compactMap { route, groups in groups.map { (route, $0) } }
        guard !buildable.isEmpty else { return nil }
        var names = SwiftNames(reserved: ["url", "open"])
        let cases = names.take(buildable.map { $0.0.name ?? $0.0.action })
        routes = zip(buildable, cases).map { declared, name in
            let (route, groups) = declared
            let action = manifest.targets.first { $0.name == route.target }?.actions
                .first { $0.name == route.action }
            let parameters = Self.parameters(of: route, groups, action)
            var labels = SwiftNames()
            let words = labels.take(parameters.map(\.name)).map(SwiftNames.escaped)
            return Route(
                declared: route, name: SwiftNames.escaped(name), parameters: Array(zip(words, parameters)))
        }
    }

    /// Returns the groups of the pattern in order, followed by the parameters that can be in the query.
    private static func parameters(
        of route: ModuleManifest.Route, _ groups: [PatternGroup], _ action: ModuleManifest.Action?
    ) -> [ModuleManifest.Parameter] {
        let declared = action?.parameters ?? []
        var parameters: [ModuleManifest.Parameter] = []
        for group in groups {
            var parameter =
                declared.first { $0.name == group.name } ?? ModuleManifest.Parameter(name: group.name, type: .string)
            if !canStandInURL(parameter.type) { (parameter.type, parameter.declaredType) = (.string, .kind(.string)) }
            parameter.isRequired = group.isRequired
            parameters.append(parameter)
        }
        for parameter in declared where !parameters.contains(where: { $0.name == parameter.name }) {
            guard canStandInURL(parameter.type), !reserved.contains(parameter.name) else { continue }
            var parameter = parameter
            parameter.isRequired = parameter.isRequired && route.defaults[parameter.name] == nil
            parameters.append(parameter)
        }
        return parameters
    }

    private static func canStandInURL(_ type: Value.Kind) -> Bool { ![.list, .map, .object, .null].contains(type) }

    /// The parameters that the host adds.
    private static let reserved: Set<String> = ["_url", "_pattern", "_object"]

    func write(to source: inout SwiftSource) {
        source.declare(
            "\(access)enum Routes: Sendable, Hashable",
            "The URLs of the module, each with the parameters of its pattern and of its action."
        ) { source in
            for route in routes {
                let target = "`\(route.declared.pattern)`, to `\(route.declared.target)/\(route.declared.action)`"
                source.declare(
                    "case \(route.name)\(payload(of: route))", route.declared.summary,
                    parameters: route.parameters.map { ($0.label, $0.parameter.summary) }, notes: [target])
            }
            source.declare(
                "\(access)func url(_ caller: any Caller) throws(PluginError) -> String", "Builds the URL.",
                notes: ["- Throws: `mistypedParameter` for a value that does not fit."]
            ) { source in
                source.line("switch self {")
                for route in routes { write(route, to: &source) }
                source.line("}")
            }
            source.declare(
                "\(access)func open(_ caller: any Caller, _ parameters: Parameters = [:], timeout: Duration? = nil) "
                    + "async throws(PluginError) -> Value",
                "Opens the URL.",
                parameters: [
                    ("caller", "The caller that opens the URL."),
                    ("parameters", "Values that override those of the URL, also of types that a URL cannot carry."),
                    ("timeout", "How long the call may take. Default: the host's timeout for asynchronous actions."),
                ], isDiscardable: true
            ) { source in
                source.line("try await caller.open(url(caller), parameters, origin: .local, timeout: timeout)")
            }
        }
    }

    private func payload(of route: Route) -> String {
        guard !route.parameters.isEmpty else { return "" }
        let list = route.parameters.map { label, parameter in
            "\(label): \(types.swiftType(parameter.declaredType))" + (parameter.isRequired ? "" : "? = nil")
        }
        return "(\(list.joined(separator: ", ")))"
    }

    private func write(_ route: Route, to source: inout SwiftSource) {
        let values = route.parameters.indices.map { "value\($0)" }
        let binding = values.isEmpty ? "" : "(\(values.map { "let \($0)" }.joined(separator: ", ")))"
        source.line("case .\(route.name)\(binding):")
        let entries = zip(values, route.parameters).map { value, entry in
            let name = SwiftSource.literal(entry.parameter.name)
            let type = entry.parameter.type
            // A missing value is written as null.
            if !entry.parameter.declaredType.isPlain { return "\(name): \(value).written()" }
            if entry.parameter.isRequired { return "\(name): \(type.wrapped(value))" }
            // A missing value is passed as null.
            return "\(name): \(type == .any ? value : "\(value).map(Value.\(type.rawValue))") ?? .null"
        }
        let map = SwiftSource.dictionary(Array(entries))
        source.line("    return try caller.url(for: \(SwiftSource.literal(route.declared.pattern)), \(map))")
    }
}
