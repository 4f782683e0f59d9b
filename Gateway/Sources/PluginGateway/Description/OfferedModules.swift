import HTTPTypes
import Hummingbird
import PluginABI

extension PluginGateway {
    /// `GET /modules.json`: what other hosts can mount; see ``OfferedModules``. While the host is starting or ending,
    /// the response is an error, so that hosts which mount modules do not conclude that the modules are gone.
    func modulesResponse(_ request: ReceivedRequest) throws(Problem) -> Response {
        try checkReady()
        let offered = catalog.current.offered
        var headers: HTTPFields = [.eTag: offered.tag, .cacheControl: "no-cache"]
        let known = request.headers[values: .ifNoneMatch].joined(separator: ",").split(separator: ",")
        // A server on the way that compresses the text makes the tag weak: `W/"…"`.
        if known.contains(where: { [offered.tag, "W/" + offered.tag].contains(String($0.trimmingSpaces)) }) {
            return Response(status: .notModified, headers: headers)
        }
        headers[.contentType] = "application/json"
        return Response(status: .ok, headers: headers, body: ResponseBody(inPieces: ByteBuffer(string: offered.text)))
    }
}

/// The remote actions of the modules that serve, as their manifests declare them. OpenAPI cannot express
/// the kinds of parameters, which actions are asynchronous or idempotent, and which objects are cursors.
///
///     {"modules": [{"name": "B", "version": "1.0.0", "targets": […], "types": […], "values": […]}]}
///
/// Modules, targets, values and types that no remote action needs are left out. So is everything else of a manifest: of
/// the object types, only their names and the actions `next` remain.
struct OfferedModules: Sendable {
    /// The JSON.
    let text: String
    /// The header `ETag`: two texts with the same tag are equal.
    let tag: String

    /// - Parameter offers: What the modules offer.
    init(_ offers: [Value]) {
        text = Value.map(["modules": .list(offers)]).json
        var (first, second): (UInt64, UInt64) = (0xCBF2_9CE4_8422_2325, 0x9E37_79B9_7F4A_7C15)
        for byte in text.utf8 {
            first = (first ^ UInt64(byte)) &* 0x100_0000_01B3
            second = (second &+ UInt64(byte)) &* 0xD6E8_FEB8_6659_FD93
            second ^= second >> 29
        }
        tag = "\"\(String(first, radix: 36))-\(String(second, radix: 36))\""
    }

    /// Returns what a module offers; `nil` if nothing.
    static func offer(_ manifest: Value) -> Value? {
        let targets = (manifest["targets"]?.list ?? []).compactMap(target)
        guard !targets.isEmpty else { return nil }
        var offer = manifest.keeping(["name", "version", "summary"])
        offer["targets"] = .list(targets)
        let (values, types) = reachable(from: targets, in: manifest)
        if !values.isEmpty { offer["values"] = .list(values) }
        if !types.isEmpty { offer["types"] = .list(types) }
        return .map(offer)
    }

    /// Returns the declarations of values and object types that parameters and results of actions refer to.
    private static func reachable(from targets: [Value], in manifest: Value) -> (values: [Value], types: [Value]) {
        let types = (manifest["types"]?.list ?? []).map(type)
        let values = manifest["values"]?.list ?? []
        var declared: [String: Value] = [:]
        for value in values + types { if let name = value["name"]?.string { declared[name] = value } }
        var reached: Set<String> = []
        var pending = targets
        while let node = pending.popLast() {
            for name in names(in: node) where reached.insert(name).inserted {
                if let value = declared[name] { pending.append(value) }
            }
        }
        func isReached(_ value: Value) -> Bool { value["name"]?.string.map(reached.contains) ?? false }
        return (values.filter(isReached), types.filter(isReached))
    }

    /// Returns the names in the types of the parameters, results and fields of a target, a value or an object type.
    private static func names(in node: Value) -> [String] {
        let actions = node["actions"]?.list ?? []
        let parts = actions.flatMap { $0["parameters"]?.list ?? [] } + (node["fields"]?.list ?? [])
        let texts = actions.compactMap { $0["result"]?.string } + parts.compactMap { $0["type"]?.string }
        return texts.flatMap { $0.split { "<>?, ".contains($0) }.map(String.init) }
    }

    /// Returns what another host must know about an object type: whether it is a cursor, and the type of its elements.
    private static func type(_ type: Value) -> Value {
        let next = (type["actions"]?.list ?? []).filter { $0["name"] == "next" }
        let actions = next.map { Value.map($0.keeping(["name", "async", "result"])) }
        return .map(["name": type["name"] ?? "", "actions": .list(actions)])
    }

    /// Whether other hosts can call an action. Fallbacks have no name of their own.
    private static func isOffered(_ action: Value) -> Bool {
        action["remote"]?.bool == true && action["name"] != "notFound"
    }

    private static func target(_ target: Value) -> Value? {
        let actions = (target["actions"]?.list ?? []).filter(isOffered).map { action in
            Value.map(
                action.keeping([
                    "name", "summary", "async", "idempotent", "demands", "parameters", "rest", "result",
                ]))
        }
        guard !actions.isEmpty else { return nil }
        var offer = target.keeping(["name", "summary"])
        offer["actions"] = .list(actions)
        return .map(offer)
    }
}

extension Value {
    /// The entries with these names.
    fileprivate func keeping(_ names: [String]) -> [String: Value] {
        (map ?? [:]).filter { names.contains($0.key) }
    }
}
