internal import PluginABI
internal import PluginFile
internal import PluginHost

/// The named parameters of a request, each checked as it is read.
struct MethodParameters {
    private let fields: [String: Value]

    /// - Throws: `invalidParameters` if the parameters are not an object, or if an entry is not among `known`.
    init(_ parameters: Value?, known: [String]) throws(RPCError) {
        guard let fields = parameters.map(\.map) ?? [:] else {
            throw .invalidParameters("\"params\" must be an object with named entries.")
        }
        if let unknown = fields.keys.sorted().first(where: { !known.contains($0) }) {
            throw .invalidParameters("The method has no parameter '\(unknown.shortened)'.\(didYouMean(unknown, known))")
        }
        self.fields = fields
    }

    func text(_ name: String) throws(RPCError) -> String { try required(name, "a string", \.string) }
    func text(ifGiven name: String) throws(RPCError) -> String? { try optional(name, "a string", \.string) }
    func number(_ name: String) throws(RPCError) -> Int { try required(name, "a whole number", \.int) }
    func number(ifGiven name: String) throws(RPCError) -> Int? { try optional(name, "a whole number", \.int) }
    func map(_ name: String) throws(RPCError) -> [String: Value] { try optional(name, "an object", \.map) ?? [:] }
    func flag(_ name: String) throws(RPCError) -> Bool { try optional(name, "true or false", \.bool) ?? false }

    /// The parameters of a call: those of the entry `parameters`, and those of the entry `bytes`, which are base64 text.
    var values: [String: Value] {
        get throws(RPCError) {
            var values = try map("parameters")
            for (name, text) in try map("bytes") {
                guard let text = text.string, let bytes = Value(text: text, as: .bytes) else {
                    throw .invalidParameters("The parameter 'bytes' must be an object of base64 strings.")
                }
                values[name] = bytes
            }
            return values
        }
    }

    /// The HTTP method with which a URL is opened: GET if none is given.
    var method: RouteMethod {
        get throws(RPCError) {
            let names = RouteMethod.allCases.map(\.rawValue).joined(separator: ", ")
            return try optional("method", "one of \(names)") { $0.string.flatMap(RouteMethod.init(rawValue:)) } ?? .get
        }
    }

    var timeout: Duration? {
        get throws(RPCError) {
            try optional("timeout", "a positive number of seconds") { $0.double.flatMap(Duration.init(timeout:)) }
        }
    }

    private func optional<Result>(
        _ name: String, _ what: String, _ read: (Value) -> Result?
    ) throws(RPCError) -> Result? {
        fields[name] == nil ? nil : try required(name, what, read)
    }

    private func required<Result>(
        _ name: String, _ what: String, _ read: (Value) -> Result?
    ) throws(RPCError) -> Result {
        guard let result = fields[name].flatMap(read) else {
            throw .invalidParameters("The parameter '\(name)' must be \(what).")
        }
        return result
    }
}
