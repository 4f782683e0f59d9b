import Hummingbird
import PluginABI
import PluginHost

extension PluginGateway {
    /// `GET /openapi.json`: what the gateway serves at this moment.
    func openAPIResponse(_ catalog: Catalog.Contents) -> Response {
        .text(OpenAPI(catalog, configuration).document.json, type: "application/json")
    }
}

/// A description by OpenAPI 3.1.
struct OpenAPI {
    let catalog: Catalog.Contents
    let configuration: GatewayConfiguration
    var paths: [String: Value] = [:]
    /// The patterns of routes that are not path templates of OpenAPI.
    var otherRoutes: Value?
    /// The types of each module, by its name.
    private(set) var types: [String: SchemaTypes] = [:]
    private var schemas: [String: Value] = ["Problem": OpenAPI.problem]

    init(_ catalog: Catalog.Contents, _ configuration: GatewayConfiguration) {
        (self.catalog, self.configuration) = (catalog, configuration)
        addOperation()
        for module in catalog.modules {
            let types = SchemaTypes(module)
            self.types[module.name] = types
            for (name, schema) in types.schemas { schemas[name] = schema }
            for target in module.targets {
                for action in target.actions where action.isRemote && !action.isFallback && canLeave(action, module) {
                    add(action, target, module, types)
                }
            }
        }
        addRoutes()
    }

    /// Whether the results of an action can leave the program: of objects, only cursors can.
    func canLeave(_ action: Catalog.Action, _ module: Catalog.Module) -> Bool {
        let type = action.result.hasSuffix("?") ? String(action.result.dropLast()) : action.result
        return !module.types.subtracting(module.cursors).contains(type)
    }

    var document: Value {
        var entries: [String: Value] = [
            "openapi": "3.1.0",
            "info": [
                "title": "PluginHost gateway", "version": "1.0.0",
                "description":
                    "The actions of the modules that serve. It changes as modules are added, replaced or removed.",
            ],
            "paths": .map(paths),
        ]
        if !configuration.prefix.isEmpty { entries["servers"] = [["url": .string(configuration.prefix)]] }
        var components: [String: Value] = ["schemas": .map(schemas)]
        if case .tokens = configuration.access {
            components["securitySchemes"] = ["token": ["type": "http", "scheme": "bearer"]]
            entries["security"] = [["token": []]]
        }
        entries["components"] = .map(components)
        if let otherRoutes { entries["x-other-routes"] = otherRoutes }
        return .map(entries)
    }

    // MARK: Actions

    private mutating func add(
        _ action: Catalog.Action, _ target: Catalog.Target, _ module: Catalog.Module, _ types: SchemaTypes
    ) {
        var operation = self.operation("\(target.name).\(action.name)", action, module, types)
        operation["parameters"] = [Self.timeout]
        if let body = body(action, types, hasOrder: true) { operation["requestBody"] = body }
        paths["/call/\(target.name)/\(action.name)"] = ["post": .map(operation)]
    }

    /// Returns what all operations of an action have in common.
    func operation(
        _ id: String, _ action: Catalog.Action, _ module: Catalog.Module, _ types: SchemaTypes
    ) -> [String: Value] {
        var operation: [String: Value] = [
            "operationId": .string(id), "tags": [.string(module.name)], "responses": responses(action, types),
        ]
        if !action.summary.isEmpty { operation["summary"] = .string(action.summary) }
        if action.isIdempotent { operation["x-idempotent"] = true }
        return operation
    }

    /// - Parameter hasOrder: Whether the parameters can also be a list, in order.
    func body(_ action: Catalog.Action, _ types: SchemaTypes, hasOrder: Bool) -> Value? {
        guard !action.parameters.isEmpty || action.hasRest else { return nil }
        let schemas = action.parameters.map { Self.schema($0, types) }
        let names = action.parameters.map(\.name)
        let required = action.parameters.filter(\.isRequired).map { Value.string($0.name) }
        let named: Value = [
            "type": "object", "properties": .map(Dictionary(zip(names, schemas)) { first, _ in first }),
            "required": .list(required), "additionalProperties": .bool(action.hasRest),
        ]
        let last = action.parameters.lastIndex(where: \.isRequired).map { $0 + 1 } ?? 0
        let rest: Value = action.hasRest ? ["type": ["object", "null"]] : false
        let inOrder: Value = [
            "type": "array", "prefixItems": .list(schemas), "items": rest, "minItems": .int(last),
            "maxItems": .int(schemas.count + (action.hasRest ? 1 : 0)),
        ]
        let schema: Value = schemas.isEmpty || !hasOrder ? named : ["anyOf": [named, inOrder]]
        var content: [String: Value] = ["application/json": ["schema": schema]]
        if action.bodyParameter != nil, required.count <= 1 { content["application/octet-stream"] = [:] }
        return ["required": .bool(!required.isEmpty), "content": .map(content)]
    }

    /// The schema of the name by which a client gives a callback.
    static let callback: Value = [
        "type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_.-]{0,63}$",
        "not": ["enum": .list(CallbackMaker.ownNames.sorted().map(Value.string))],
        "description": "The name of the events in which the calls of the callback are sent",
    ]

    private static func schema(_ parameter: Catalog.Parameter, _ types: SchemaTypes) -> Value {
        if parameter.isCallback { return !parameter.acceptsNull ? callback : ["anyOf": [callback, ["type": "null"]]] }
        let type = parameter.type
        // Null stands for a parameter that is left out.
        let isNullable = parameter.acceptsNull && !type.hasSuffix("?") && type != "any"
        var schema = types.schema(isNullable ? type + "?" : type).map ?? [:]
        if !parameter.summary.isEmpty { schema["description"] = .string(parameter.summary) }
        if let fallback = parameter.fallback, !fallback.isNull { schema["default"] = fallback }
        return .map(schema)
    }

    private func responses(_ action: Catalog.Action, _ types: SchemaTypes) -> Value {
        var content: [String: Value] =
            switch action.result {
            case "bytes": ["application/octet-stream": [:]]
            case "bytes?": ["application/octet-stream": [:], "application/json": ["schema": ["type": "null"]]]
            case let name where types.isObject(name):
                name.hasSuffix("?")
                    ? ["application/jsonl": [:], "application/json": ["schema": ["type": "null"]]]
                    : ["application/jsonl": [:]]
            case "", "any":
                ["application/json": [:], "application/octet-stream": [:], "application/jsonl": [:]]
            case let name: ["application/json": ["schema": types.schema(name)]]
            }
        if action.hasCallback { content["text/event-stream"] = [:] }
        var all: [String: Value] = ["200": ["description": "The result", "content": .map(content)]]
        for (status, text) in Self.failures { all[status] = Self.failure(text) }
        if case .tokens = configuration.access {} else { all["401"] = nil }
        return .map(all)
    }

    /// The description of each status, with the codes of the gateway and the host that have it.
    private static let failures: [String: String] = {
        var codes: [String: [String]] = [:]
        for (code, status) in Problem.statuses { codes[String(status.code), default: []].append(code.rawValue) }
        let texts = [
            "400": "The request or a parameter is not valid.", "401": "The token is missing or unknown.",
            "403": "The program refuses the call.", "404": "There is nothing at this path.",
            "405": "The path does not have this method.", "406": "The client accepts none of the forms of the result.",
            "408": "The body did not arrive in time.", "409": "The call is in conflict with another one.",
            "410": "The generation that the object belongs to no longer serves.", "413": "The body is too large.",
            "414": "The path is too long.", "415": "The body is of a type that is not accepted.",
            "421": "The gateway does not serve this host.",
            "422": "The module refuses the call, with a code of its own.",
            "429": "Too many calls of the module are in flight.", "500": "The module has failed.",
            "502": "The process of the module has crashed.",
            "503": "The gateway cannot make the call at this moment.", "504": "The deadline has passed.",
            "default": "Any other failure.",
        ]
        return Dictionary(
            uniqueKeysWithValues: texts.map { status, text in
                let codes = (codes[status] ?? []).sorted().map { "`\($0)`" }.joined(separator: ", ")
                return (status, codes.isEmpty ? text : "\(text) Codes: \(codes).")
            })
    }()

    private static func failure(_ text: String) -> Value {
        [
            "description": .string(text),
            "content": ["application/problem+json": ["schema": ["$ref": "#/components/schemas/Problem"]]],
        ]
    }

    // MARK: The gateway's own paths

    private mutating func addOperation() {
        let own = [
            ("/healthz", "text/plain", "Whether the gateway answers"),
            ("/metrics", "text/plain", "The metrics, in the text format of Prometheus"),
            ("/events", "text/event-stream", "What happens to the modules, as server-sent events"),
            ("/openapi.json", "application/json", "This description"),
            ("/modules.json", "application/json", "The remote actions as manifests declare them, for other hosts"),
        ]
        for (path, type, summary) in own {
            paths[path] = ["get": Self.reading(path, type, summary)]
        }
        var ready = Self.reading("/readyz", "text/plain", "Whether the gateway accepts calls").map ?? [:]
        var answers = ready["responses"]?.map ?? [:]
        answers["503"] = ["description": "Not ready", "content": ["text/plain": [:]]]
        ready["responses"] = .map(answers)
        paths["/readyz"] = ["get": .map(ready)]
    }

    private static func reading(_ path: String, _ type: String, _ summary: String) -> Value {
        [
            "operationId": .string("gateway.\(path.dropFirst())"), "summary": .string(summary), "tags": ["gateway"],
            "responses": [
                "200": ["description": .string(summary), "content": .map([type: [:]])],
                "default": failure("The request failed."),
            ],
        ]
    }

    static let timeout: Value = [
        "name": "Timeout", "in": "header", "required": false,
        "description": "How long the call may take: seconds (2.5) or milliseconds (250ms).",
        "schema": ["type": "string", "pattern": "^(?=.{1,8}$)(?=.*[1-9])([0-9]+(\\.[0-9]+)?s?|[0-9]+ms)$"],
    ]

    private static let problem: Value = [
        "type": "object", "required": ["type", "title", "status", "code", "detail"],
        "properties": [
            "type": ["type": "string"], "title": ["type": "string"], "status": ["type": "integer"],
            "code": ["type": "string", "description": "The kind of error, for programs"],
            "detail": ["type": "string"], "module": ["type": "string", "description": "The module that failed"],
        ],
    ]
}
