import HTTPTypes
import PluginABI
import PluginHost

extension OpenAPI {
    /// Adds the routes of HTTP that lead to remote actions. Those whose pattern is no path template of OpenAPI are only
    /// listed.
    mutating func addRoutes() {
        var shapes = Set(paths.keys.map(Self.shape))
        var others: [Value] = []
        for route in catalog.routes {
            let names = route.action.split(separator: "/").map(String.init)
            guard names.count == 2, let (module, action) = catalog.action(names[0], names[1]), canLeave(action, module)
            else { continue }
            let template = route.template
            if template.paths.isEmpty { others.append(.string(route.pattern)) }
            // The first of equal ones: routes of any host come before those of one.
            for path in template.paths where shapes.insert(Self.shape(path.text)).inserted {
                paths[path.text] = item(path, template.host, route, action, module)
            }
        }
        if !others.isEmpty { otherRoutes = .list(others) }
    }

    /// The path without the names of its parameters.
    private static func shape(_ path: String) -> String {
        var (shape, isName) = ("", false)
        for character in path {
            if character == "}" { isName = false }
            if !isName { shape.append(character) }
            if character == "{" { isName = true }
        }
        return shape
    }

    private func item(
        _ path: RouteTemplate.Path, _ host: String?, _ route: Catalog.Route, _ action: Catalog.Action,
        _ module: Catalog.Module
    ) -> Value {
        var item: [String: Value] = [:]
        if let host { item["servers"] = [["url": .string("https://\(host)\(configuration.prefix)")]] }
        let types = SchemaTypes(module)
        for method in route.methods where method != .head {
            let name = method.rawValue.lowercased()
            item[name] = operation(name, path, route, action, module, types)
        }
        return .map(item)
    }

    /// Returns an operation of a route.
    private func operation(
        _ method: String, _ path: RouteTemplate.Path, _ route: Catalog.Route, _ action: Catalog.Action,
        _ module: Catalog.Module, _ types: SchemaTypes
    ) -> Value {
        var parameters = [Self.timeout]
        var rest = action
        rest.parameters = []
        for parameter in action.parameters {
            let isGiven = route.defaults[parameter.name] != nil
            if path.names.contains(parameter.name) {
                parameters.append(Self.parameter(parameter, in: "path", isRequired: true, types))
            } else if method == "post" {
                rest.parameters.append(isGiven ? parameter.optional(route.defaults[parameter.name]) : parameter)
            } else if types.isText(parameter.type) || parameter.isCallback {
                let isRequired = parameter.isRequired && !isGiven
                parameters.append(Self.parameter(parameter, in: "query", isRequired: isRequired, types))
            }
        }
        var operation = self.operation("\(method) \(path.text)", action, module, types)
        operation["parameters"] = .list(parameters)
        if !route.summary.isEmpty { operation["summary"] = .string(route.summary) }
        // The body of a route is an object only: the order of parameters that the path leaves is nowhere declared.
        if method == "post", let body = body(rest, types, hasOrder: false) { operation["requestBody"] = body }
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
        // The key once for each element.
        if type.hasPrefix("list") { schema = ["type": "array", "items": ["type": "string"], "minItems": 1] }
        var entries: [String: Value] = [
            "name": .string(parameter.name), "in": .string(place), "required": .bool(isRequired),
            "schema": .map(schema),
        ]
        if !parameter.summary.isEmpty { entries["description"] = .string(parameter.summary) }
        return .map(entries)
    }
}
