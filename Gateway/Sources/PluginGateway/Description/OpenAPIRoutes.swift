import PluginABI
import PluginHost

extension OpenAPI {
    /// Adds the routes of HTTP that lead to remote actions. Those whose pattern is not a path template of OpenAPI are
    /// only listed.
    mutating func addRoutes() {
        // Paths whose parameters differ only by their names count as one.
        var shapes = Dictionary(uniqueKeysWithValues: paths.keys.map { (Self.shape($0), "") })
        var others: [Value] = []
        for route in catalog.routes {
            let names = route.action.split(separator: "/").map(String.init)
            guard names.count == 2, let (module, action) = catalog.action(names[0], names[1]), canLeave(action, module),
                let types = types[module.name]
            else { continue }
            if route.template.paths.isEmpty { others.append(.string(route.pattern)) }
            for path in route.template.paths {
                let shape = Self.shape(path.text)
                guard shapes[shape, default: path.text] == path.text else { continue }
                shapes[shape] = path.text
                var item = paths[path.text]?.map ?? [:]
                // Of equal operations, the first is kept: routes for any host come before those for one host.
                for method in route.methods where item[method.rawValue.lowercased()] == nil {
                    item[method.rawValue.lowercased()] = operation(method, path, route, action, module, types)
                }
                paths[path.text] = .map(item)
            }
        }
        if !others.isEmpty { otherRoutes = .list(others) }
    }

    /// Returns the path without the names of its parameters.
    private static func shape(_ path: String) -> String {
        var (shape, isName) = ("", false)
        for character in path {
            if character == "}" { isName = false }
            if !isName { shape.append(character) }
            if character == "{" { isName = true }
        }
        return shape
    }

    /// Returns an operation of a route.
    private func operation(
        _ method: RouteMethod, _ path: RouteTemplate.Path, _ route: Catalog.Route, _ action: Catalog.Action,
        _ module: Catalog.Module, _ types: SchemaTypes
    ) -> Value {
        let hasBody = [.post, .put, .patch].contains(method)
        var parameters = [Self.timeout]
        var rest = action
        rest.parameters = []
        for parameter in action.parameters {
            let isGiven = route.defaults[parameter.name] != nil
            if path.names.contains(parameter.name) {
                parameters.append(Self.parameter(parameter, in: "path", isRequired: true, types))
            } else if hasBody {
                rest.parameters.append(isGiven ? parameter.optional(route.defaults[parameter.name]) : parameter)
            } else if types.isText(parameter.type) || parameter.isCallback {
                let declared = isGiven ? parameter.optional(route.defaults[parameter.name]) : parameter
                parameters.append(Self.parameter(declared, in: "query", isRequired: declared.isRequired, types))
            }
        }
        var operation = self.operation("\(method.rawValue.lowercased()) \(path.text)", action, module, types)
        operation["parameters"] = .list(parameters)
        if let host = route.template.host {
            let scheme = route.pattern.hasPrefix("http:") ? "http" : "https"
            operation["servers"] = [["url": .string("\(scheme)://\(host)\(configuration.prefix)")]]
        }
        if !route.summary.isEmpty { operation["summary"] = .string(route.summary) }
        // With parameters in the path, the body is described as an object only: in a list, all parameters are in order, and
        // those of the path would be given twice.
        if hasBody, let body = body(rest, types, hasOrder: path.names.isEmpty) { operation["requestBody"] = body }
        return .map(operation)
    }

    private static func parameter(
        _ parameter: Catalog.Parameter, in place: String, isRequired: Bool, _ types: SchemaTypes
    ) -> Value {
        var type = parameter.type
        if type.hasSuffix("?") { type.removeLast() }
        var schema = parameter.isCallback ? callback.map ?? [:] : types.schema(type).map ?? [:]
        if place == "path", type == "string" || type == "any" { schema = ["type": "string", "minLength": 1] }
        if type == "any" { schema["type"] = "string" }
        // The key is repeated for each element.
        if type.hasPrefix("list") {
            schema = ["type": "array", "items": ["type": "string"], "minItems": 1]
        } else if place == "query", type != "any", let fallback = parameter.fallback, !fallback.isNull {
            schema["default"] = fallback
        }
        var entries: [String: Value] = [
            "name": .string(parameter.name), "in": .string(place), "required": .bool(isRequired),
            "schema": .map(schema),
        ]
        if !parameter.summary.isEmpty { entries["description"] = .string(parameter.summary) }
        return .map(entries)
    }
}
