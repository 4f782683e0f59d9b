public import Foundation
public import PluginABI

/// A temporary stand-in for the façade.
public final class PluginHost: Sendable {
    public struct Configuration: Sendable {
        public var folders: [String]
        public var trustsEveryone = false
        public var retriesQuarantined = false
        public var schemes: Set<String> = ["app"]
        public var watches = true
        public var asyncTimeout: Duration = .seconds(30)
        public var moduleConfiguration: [String: Value] = [:]
        public var log: @Sendable (LogEntry) -> Void = { _ in }
        public init(folders: [String]) { self.folders = folders }
    }
    public struct LogEntry: Sendable {
        public var level: LogLevel
        public var module: String?
        public var message: String
    }
    public enum LogLevel: Int, Sendable, Comparable {
        case debug, info, warning, error
        public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }
    public enum Origin: Sendable { case local, remote }

    let configuration: Configuration
    public init(_ configuration: Configuration) { self.configuration = configuration }
    public func start() throws(PluginError) {}
    public func shutdown() {}
    public var modules: [ModuleStatus] { [] }
    public var problems: [PluginError] {
        configuration.folders.filter { !FileManager.default.fileExists(atPath: $0) }
            .map { PluginError(.unreadable, "The plugins folder \($0) does not exist.") }
    }
    public var changes: AsyncStream<HostChange> { AsyncStream { _ in } }
    public func perform(
        _ target: String, _ action: String, _ parameters: Parameters = [:], timeout: Duration? = nil
    ) throws(PluginError) -> Value {
        throw PluginError(.unknownTarget, "There is no target \(target).")
    }
    public func call(
        _ target: String, _ action: String, _ parameters: Parameters = [:], timeout: Duration? = nil
    ) async throws(PluginError) -> Value { try perform(target, action, parameters) }
    public func open(
        _ url: String, _ parameters: Parameters = [:], origin: Origin = .local, timeout: Duration? = nil
    ) async throws(PluginError) -> Value {
        throw PluginError(.invalidURL, "\(url) is no URL.")
    }
    public static func inspect(file: String, trustsEveryone: Bool) throws(PluginError) -> ModuleReport {
        print("printed by the module")
        if file.hasSuffix("good.so") { return ModuleReport(json: ["file": .string(file), "manifest": ["name": "Good"]]) }
        if file.hasSuffix("crash.so") { abort() }
        if file.hasSuffix("hang.so") { while true { sleep(100) } }
        throw PluginError(.invalidFile, "\(file) is no shared object.")
    }
    public static func installFatalSignalReport() {}
}

public struct ModuleStatus: Sendable {
    public var name: String?
    public var version: String?
    public var state: String
    public var file: String
    public var generation: Int?
    public var targets: [String]
    public var error: PluginError?
    public var since: Date
}

public enum HostChange: Sendable, CustomStringConvertible {
    case added(ModuleStatus), failed(ModuleStatus), changedOnDisk(ModuleStatus, String), superseded(ModuleStatus)
    case problem(PluginError)
    public var description: String { "change" }
}

public struct ModuleReport: Sendable { public var json: Value }

public struct Parameters: Sendable, ExpressibleByDictionaryLiteral {
    var entries: [(String, Value)]
    public init(_ entries: [(String, Value)]) { self.entries = entries }
    public init(_ entries: [String: Value]) { self.entries = entries.map { ($0, $1) } }
    public init(dictionaryLiteral elements: (String, Value)...) { entries = elements }
}

extension Value {
    public init(json: String) throws(PluginError) {
        struct Node: Decodable {
            var value: Value
            init(from decoder: any Decoder) throws {
                if let object = try? decoder.singleValueContainer().decode([String: Node].self) {
                    value = .map(object.mapValues(\.value))
                } else if let list = try? decoder.singleValueContainer().decode([Node].self) {
                    value = .list(list.map(\.value))
                } else {
                    let container = try decoder.singleValueContainer()
                    if container.decodeNil() {
                        value = .null
                    } else if let bool = try? container.decode(Bool.self) {
                        value = .bool(bool)
                    } else if let int = try? container.decode(Int.self) {
                        value = .int(int)
                    } else if let double = try? container.decode(Double.self) {
                        value = .double(double)
                    } else {
                        value = .string(try container.decode(String.self))
                    }
                }
            }
        }
        do { self = try JSONDecoder().decode(Node.self, from: Data(json.utf8)).value } catch {
            throw PluginError(.invalidValue, "This is no JSON.")
        }
    }
}
