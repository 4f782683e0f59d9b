import Foundation
import Glibc
import Synchronization

/// A folder that is removed with this object, or at the end of the process if the process can notice it.
public final class TemporaryFolder: Sendable {
    public let path: String

    /// All folders that exist.
    private static let present = Mutex<Set<String>>([])

    public init() {
        umask(0o022)  // The host refuses files that others can write.
        var template = Array((NSTemporaryDirectory() + "/pluginhost-bench.XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { fatalError("A temporary folder cannot be created.") }
        let path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        self.path = path
        _ = Self.present.withLock { $0.insert(path) }
    }

    /// Makes a folder in this one.
    public func folder(_ name: String) -> String {
        mkdir("\(path)/\(name)", 0o700)
        return "\(path)/\(name)"
    }

    deinit { Self.remove(path) }

    /// Removes all folders that are left, at the end of the program, which destroys no objects.
    public static func removeAll() { present.withLock { $0 }.forEach(remove) }

    private static func remove(_ path: String) {
        guard present.withLock({ $0.remove(path) }) != nil else { return }
        try? FileManager.default.removeItem(atPath: path)
    }
}
