import Foundation
import Glibc
import Synchronization

/// A folder that lives as long as this object, and not longer than the process as far as that can see its end.
public final class TemporaryFolder: Sendable {
    public let path: String

    /// All that there are.
    private static let present = Mutex<Set<String>>([])

    public init() {
        umask(0o022)  // The host refuses what others can write.
        var template = Array((NSTemporaryDirectory() + "/pluginhost-bench.XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { fatalError("A temporary folder cannot be created.") }
        let path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        self.path = path
        _ = Self.present.withLock { $0.insert(path) }
    }

    /// A folder in it.
    public func folder(_ name: String) -> String {
        mkdir("\(path)/\(name)", 0o700)
        return "\(path)/\(name)"
    }

    deinit { Self.remove(path) }

    /// Removes all that are left. For the end of the program, which destroys nothing.
    public static func removeAll() { present.withLock { $0 }.forEach(remove) }

    private static func remove(_ path: String) {
        guard present.withLock({ $0.remove(path) }) != nil else { return }
        try? FileManager.default.removeItem(atPath: path)
    }
}
