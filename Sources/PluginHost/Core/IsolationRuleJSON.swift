public import PluginABI
import PluginFile

extension IsolationRule {
    /// Creates a rule from its form in configuration files. All keys but `module` may be left out:
    ///
    ///     {"module": "Thumbnails", "folder": "/srv/plugins", "sandbox": "required",
    ///      "files": {"read": ["/srv/pictures"], "write": ["/srv/thumbnails"]},
    ///      "network": {"connect": [443], "listen": [8080]},
    ///      "memory": "256M", "cpuSeconds": 60, "descriptors": 64, "processes": 0, "environment": ["API_KEY"],
    ///      "callTimeout": 30, "hangGrace": 5}
    ///
    /// `network` may also be `"none"` or `"all"`; `memory` a number of bytes, or a number with `K`, `M` or `G`, or 0
    /// for no limit.
    ///
    /// - Throws: ``/PluginABI/PluginError/Code/invalidConfiguration``, naming the mistake.
    public init(_ value: Value) throws(PluginError) {
        let node = try RuleNode(
            value,
            [
                "module", "folder", "sandbox", "files", "network", "memory", "cpuSeconds", "descriptors", "processes",
                "environment", "callTimeout", "hangGrace",
            ])
        guard let module = try node.text("module") else { throw node.error("“module” is missing") }
        self.init(module, folder: try node.text("folder"))
        if let folder, !folder.utf8.starts(with: "/".utf8) {
            throw node.error("“folder” must be an absolute path, not “\(folder.shortened)”")
        }
        if let word = try node.text("sandbox") {
            guard let sandbox = Sandbox(rawValue: word) else {
                throw node.error("“sandbox” must be “required”, “possible” or “none”, not “\(word.shortened)”")
            }
            self.sandbox = sandbox
        }
        if let files = try node.object("files", ["read", "write"]) {
            (readablePaths, writablePaths) = (try files.paths("read"), try files.paths("write"))
        }
        network = try Self.network(node)
        if let bytes = try node.bytes("memory") { memoryLimit = bytes == 0 ? nil : bytes }
        if let seconds = try node.number("cpuSeconds", in: 1...1_000_000_000) { processorTime = .seconds(seconds) }
        if let count = try node.number("descriptors", in: 16...1_000_000) { descriptorLimit = count }
        if let count = try node.number("processes", in: 0...100_000) { processLimit = count }
        environment = try node.texts("environment")
        callTimeout = try node.time("callTimeout")
        hangGrace = try node.time("hangGrace")
    }

    private static func network(_ node: RuleNode) throws(PluginError) -> Network {
        guard let value = node["network"] else { return .none }
        switch value.string {
        case "none": return .none
        case "all": return .all
        default: break
        }
        guard value.map != nil, let ports = try node.object("network", ["connect", "listen"]) else {
            throw node.error(
                "“network” must be “none”, “all”, or an object with the ports to “connect” and to “listen”")
        }
        return .ports(connect: try ports.ports("connect"), listen: try ports.ports("listen"))
    }

    /// The form in configuration files, without the keys that have their default.
    package var json: String {
        let none = IsolationRule("*")
        var entries: [String] = ["\"module\": \(Value.string(module).json)"]
        func add(_ key: String, _ value: Value?) {
            if let value { entries.append("\"\(key)\": \(value.json)") }
        }
        func list(_ texts: [String]) -> Value? { texts.isEmpty ? nil : .list(texts.map(Value.string)) }
        func map(_ parts: [(String, Value?)]) -> Value? {
            let present = parts.compactMap { key, value in value.map { (key, $0) } }
            return present.isEmpty ? nil : .map(Dictionary(present) { first, _ in first })
        }
        add("folder", folder.map(Value.string))
        if sandbox != none.sandbox { add("sandbox", .string(sandbox.rawValue)) }
        add("files", map([("read", list(readablePaths)), ("write", list(writablePaths))]))
        switch network {
        case .none: break
        case .all: add("network", .string("all"))
        case .ports(let connect, let listen):
            let numbers = { (ports: [UInt16]) -> Value? in ports.isEmpty ? nil : .list(ports.map { .int(Int($0)) }) }
            add("network", map([("connect", numbers(connect)), ("listen", numbers(listen))]))
        }
        if memoryLimit != none.memoryLimit { add("memory", .int(memoryLimit ?? 0)) }
        add("cpuSeconds", processorTime.map { .int(Int($0.components.seconds)) })
        if descriptorLimit != none.descriptorLimit { add("descriptors", .int(descriptorLimit)) }
        if processLimit != 0 { add("processes", .int(processLimit)) }
        add("environment", list(environment))
        add("callTimeout", callTimeout.map { .double($0 / .seconds(1)) })
        add("hangGrace", hangGrace.map { .double($0 / .seconds(1)) })
        return "{\(entries.joined(separator: ", "))}"
    }
}

/// An object in a rule of a configuration file.
private struct RuleNode {
    private let entries: [String: Value]
    /// The whole rule, for messages.
    private let rule: Value

    init(_ value: Value, _ known: [String], in rule: Value? = nil) throws(PluginError) {
        self.rule = rule ?? value
        entries = value.map ?? [:]
        guard value.map != nil else { throw error("an object is expected, not \(value.json.shortened)") }
        if let unknown = entries.keys.sorted().first(where: { !known.contains($0) }) {
            throw error("“\(unknown.shortened)” is not a known key.\(didYouMean(unknown, known))")
        }
    }

    subscript(key: String) -> Value? { entries[key] }

    func error(_ what: String) -> PluginError {
        let end = what.hasSuffix(".") || what.hasSuffix("?") ? "" : "."
        return PluginError(
            .invalidConfiguration, "In the rule for isolated modules \(rule.json.shortened): \(what)\(end)")
    }

    private func read<T>(_ key: String, _ what: String, _ body: (Value) -> T?) throws(PluginError) -> T? {
        guard let value = entries[key] else { return nil }
        guard let result = body(value) else { throw error("“\(key)” must be \(what), not \(value.json.shortened)") }
        return result
    }

    func text(_ key: String) throws(PluginError) -> String? {
        try read(key, "a text without zero bytes") { value in
            value.string.flatMap { $0.isEmpty || $0.utf8.contains(0) ? nil : $0 }
        }
    }

    func texts(_ key: String) throws(PluginError) -> [String] {
        try read(key, "a list of texts") { value in
            guard let list = value.list else { return nil }
            let texts = list.compactMap(\.string).filter { !$0.isEmpty && !$0.utf8.contains(0) }
            return texts.count == list.count ? texts : nil
        } ?? []
    }

    func paths(_ key: String) throws(PluginError) -> [String] {
        let paths = try texts(key)
        if let other = paths.first(where: { !$0.utf8.starts(with: "/".utf8) }) {
            throw error("“\(other.shortened)” is not an absolute path")
        }
        return paths
    }

    func ports(_ key: String) throws(PluginError) -> [UInt16] {
        try read(key, "a list of ports, 1 to 65535") { value in
            guard let list = value.list else { return nil }
            let ports = list.compactMap { $0.int.flatMap(UInt16.init(exactly:)) }.filter { $0 > 0 }
            return ports.count == list.count ? ports : nil
        } ?? []
    }

    func object(_ key: String, _ known: [String]) throws(PluginError) -> RuleNode? {
        guard let value = entries[key] else { return nil }
        return try RuleNode(value, known, in: rule)
    }

    func number(_ key: String, in range: ClosedRange<Int>) throws(PluginError) -> Int? {
        try read(key, "a whole number from \(range.lowerBound) to \(range.upperBound)") { value in
            value.int.flatMap { range.contains($0) ? $0 : nil }
        }
    }

    func time(_ key: String) throws(PluginError) -> Duration? {
        try read(key, "a positive number of seconds") { value in
            let seconds = value.double ?? value.int.map(Double.init)
            return seconds.flatMap { $0 > 0 && $0 < 1e9 ? Duration.seconds($0) : nil }
        }
    }

    /// Reads a number of bytes, which may be written with a unit: `256M`.
    func bytes(_ key: String) throws(PluginError) -> Int? {
        try read(key, "0, or at least 16M: a number of bytes, or one with K, M or G") { value in
            guard let bytes = value.int ?? value.string.flatMap(Self.bytes) else { return nil }
            return bytes == 0 || bytes >= 16 << 20 ? bytes : nil
        }
    }

    private static func bytes(_ text: String) -> Int? {
        let shifts: [Character: Int] = ["K": 10, "M": 20, "G": 30]
        guard let unit = text.last, let shift = shifts[unit], let number = Int(text.dropLast()), number >= 0 else {
            return nil
        }
        let (bytes, isTooLarge) = number.multipliedReportingOverflow(by: 1 << shift)
        return isTooLarge ? nil : bytes
    }
}
