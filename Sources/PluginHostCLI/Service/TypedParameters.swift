internal import PluginABI
internal import PluginHost

extension HostService {
    /// Returns the parameters of a method, with those of its call converted to the types that the host declares for them.
    ///
    /// - Parameters:
    ///   - method: The parameters of the method `call` or `post`.
    ///   - words: The parameters of the call, as they were entered.
    /// - Throws: The errors of ``NamedValues/typed(_:)``.
    func typing(_ method: [String: Value], _ words: NamedValues) async throws(PluginError) -> [String: Value] {
        if words.isEmpty { return method }
        let address = method.filter { HostMethod.addressParameters.contains($0.key) }
        // If there is no such action, the call itself reports the error.
        let types = (try? await request("types", address))?.map ?? [:]
        let values = try words.typed(types.compactMapValues { $0.string.flatMap(Value.Kind.init) })
        var method = method
        // JSON has no bytes, so they are passed separately.
        method["parameters"] = .map(values.filter { $0.value.kind != .bytes })
        let bytes = values.filter { $0.value.kind == .bytes }
        if !bytes.isEmpty { method["bytes"] = .map(bytes.mapValues { .string($0.bytes?.base64 ?? "") }) }
        return method
    }
}
