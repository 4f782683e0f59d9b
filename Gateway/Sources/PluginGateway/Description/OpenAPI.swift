import Hummingbird
import PluginABI
import PluginHost

extension PluginGateway {
    /// `GET /openapi.json`: what the gateway serves at this moment.
    func openAPIResponse() -> Response {
        .text(OpenAPI(catalog.current, configuration).document.json, type: "application/json")
    }
}

/// A description by OpenAPI 3.1.
struct OpenAPI {
    private let catalog: Catalog.Contents
    private let configuration: GatewayConfiguration
    private var paths: [String: Value] = [:]
    private var schemas: [String: Value] = ["Problem": OpenAPI.problem]

    init(_ catalog: Catalog.Contents, _ configuration: GatewayConfiguration) {
        (self.catalog, self.configuration) = (catalog, configuration)
        addOperation()
        for module in catalog.modules {
            let types = SchemaTypes(module)
            for (name, schema) in types.schemas { schemas[name] = schema }
            for target in module.targets {
                // Other objects than cursors cannot leave the program.
                for action in target.actions
                where action.isRemote && !module.types.subtracting(module.cursors).contains(action.result) {
                    add(action, target, module, types)
                }
            }
        }
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
        return .map(entries)
    }

    // MARK: Actions

    private mutating func add(
        _ action: Catalog.Action, _ target: Catalog.Target, _ module: Catalog.Module, _ types: SchemaTypes
    ) {
        var operation: [String: Value] = [
            "operationId": .string("\(target.name).\(action.name)"), "tags": [.string(module.name)],
            "parameters": [Self.timeout], "responses": responses(action, types),
        ]
        if !action.summary.isEmpty { operation["summary"] = .string(action.summary) }
        if let body = body(action, types) { operation["requestBody"] = body }
        paths["/call/\(target.name)/\(action.name)"] = ["post": .map(operation)]
    }

    private func body(_ action: Catalog.Action, _ types: SchemaTypes) -> Value? {
        guard !action.parameters.isEmpty || action.hasRest else { return nil }
        let schemas = action.parameters.map { Self.schema($0, types) }
        let names = action.parameters.map(\.name)
        let required = action.parameters.filter(\.isRequired).map { Value.string($0.name) }
        let named: Value = [
            "type": "object", "properties": .map(Dictionary(zip(names, schemas)) { first, _ in first }),
            "required": .list(required), "additionalProperties": .bool(action.hasRest),
        ]
        let last = action.parameters.lastIndex(where: \.isRequired).map { $0 + 1 } ?? 0
        let rest: Value = action.hasRest ? ["type": "object"] : false
        let inOrder: Value = [
            "type": "array", "prefixItems": .list(schemas), "items": rest, "minItems": .int(last),
            "maxItems": .int(schemas.count + (action.hasRest ? 1 : 0)),
        ]
        let schema: Value = schemas.isEmpty ? named : ["anyOf": [named, inOrder]]
        var content: [String: Value] = ["application/json": ["schema": schema]]
        if action.bodyParameter != nil, required.count <= 1 { content["application/octet-stream"] = [:] }
        return ["required": .bool(!required.isEmpty), "content": .map(content)]
    }

    private static func schema(_ parameter: Catalog.Parameter, _ types: SchemaTypes) -> Value {
        let type = parameter.type
        // Null stands for a parameter that is left out.
        let isNullable = !parameter.isRequired && !type.hasSuffix("?") && type != "any"
        var schema = types.schema(isNullable ? type + "?" : type).map ?? [:]
        if !parameter.summary.isEmpty { schema["description"] = .string(parameter.summary) }
        if let fallback = parameter.fallback, !fallback.isNull { schema["default"] = fallback }
        return .map(schema)
    }

    private func responses(_ action: Catalog.Action, _ types: SchemaTypes) -> Value {
        let content: Value =
            switch action.result {
            case "bytes": ["application/octet-stream": [:]]
            case let name where types.isObject(name): ["application/jsonl": [:]]
            case "", "any":
                ["application/json": [:], "application/octet-stream": [:], "application/jsonl": [:]]
            case let name: ["application/json": ["schema": types.schema(name)]]
            }
        var all: [String: Value] = ["200": ["description": "The result", "content": content]]
        for (status, text) in Self.failures { all[status] = Self.failure(text) }
        return .map(all)
    }

    private static let failures = [
        "400": "The request or a parameter is not valid.", "401": "The token is missing or unknown.",
        "403": "The program refuses the call.", "404": "There is nothing at this path.",
        "406": "The result contains objects, which cannot leave the program.", "413": "The body is too large.",
        "415": "The body is of a type that is not accepted.",
        "422": "The module refuses the call, with a code of its own.",
        "429": "Too many calls of the module are in flight.",
        "500": "The module has failed.", "503": "The gateway cannot make the call at this moment.",
        "504": "The deadline has passed.", "default": "Any other failure.",
    ]

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

    private static let timeout: Value = [
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
