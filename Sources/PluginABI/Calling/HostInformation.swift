/// What the host tells every module about the program. A value: it does not change while the host runs.
public struct HostInformation: Sendable, Equatable {
    /// What the program runs as: `production`, `test`, or a word of its own.
    public let environment: String
    /// The arguments of the program, its name first.
    public let arguments: [String]
    /// When the host was made, in seconds since 1970.
    public let launchTime: Double
    /// The program's own values.
    public let values: [String: Value]

    package init(environment: String, arguments: [String], launchTime: Double, values: [String: Value]) {
        (self.environment, self.arguments) = (environment, arguments)
        (self.launchTime, self.values) = (launchTime, values)
    }

    /// One of the program's own values; nil if there is none of that name.
    public subscript(name: String) -> Value? { values[name] }
}

extension HostContext {
    /// What the host tells every module about the program.
    public var hostContext: HostInformation {
        guard let about else {
            return HostInformation(environment: "", arguments: [], launchTime: 0, values: [:])
        }
        return HostInformation(Value(copying: about.pointee.values, host: host))
    }
}

extension HostInformation {
    init(_ value: Value) {
        environment = value["environment"]?.string ?? ""
        arguments = (value["arguments"]?.list ?? []).compactMap(\.string)
        launchTime = value["launchTime"]?.double ?? 0
        values = value["values"]?.map ?? [:]
    }

    /// As it crosses the border.
    package var value: Value {
        [
            "environment": .string(environment), "arguments": .list(arguments.map { .string($0) }),
            "launchTime": .double(launchTime), "values": .map(values),
        ]
    }
}
