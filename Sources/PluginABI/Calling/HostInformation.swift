/// Information about the program that every module can read. It does not change while the host runs.
public struct HostInformation: Sendable, Equatable {
    /// The environment of the program: `production`, `test`, or a word that the program chooses.
    public let environment: String
    /// The arguments of the program, beginning with its name.
    public let arguments: [String]
    /// The time when the host was made, in seconds since 1970.
    public let launchTime: Double
    /// The program's own values.
    public let values: [String: Value]

    package init(environment: String, arguments: [String], launchTime: Double, values: [String: Value]) {
        (self.environment, self.arguments) = (environment, arguments)
        (self.launchTime, self.values) = (launchTime, values)
    }

    /// One of the program's own values; `nil` if there is none of that name.
    public subscript(name: String) -> Value? { values[name] }
}

extension HostContext {
    /// Information about the program.
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

    /// The form in which the information crosses the boundary.
    package var value: Value {
        [
            "environment": .string(environment), "arguments": .list(arguments.map { .string($0) }),
            "launchTime": .double(launchTime), "values": .map(values),
        ]
    }
}
