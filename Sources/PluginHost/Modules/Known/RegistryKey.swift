import Glibc
import PluginABI
import PluginFile

/// The conditions that the entries of a ``RegistryCache`` depend on, besides the files. Hosts that differ in any of
/// these do not share their entries.
struct RegistryKey: Equatable, Sendable {
    /// The version of the host.
    var host = HostVersion.current
    /// The binary interface of the host: "1.0".
    var abi = "\(PLUGIN_ABI_MAJOR).\(PLUGIN_ABI_MINOR)"
    var architecture = Self.ownArchitecture
    /// The toolchain that built the host.
    var toolchain = Toolchain.current
    /// The effective user.
    var user = geteuid()
    /// The plugins folders, in order.
    var folders: [String]
    /// The settings of the host that decide whether a file fails, such as its scheme: one text each.
    var settings: [String] = []

    init(folders: [String], settings: [String] = []) { (self.folders, self.settings) = (folders, settings) }

    /// All parts, in an unambiguous form: no part contains a zero byte.
    var bytes: [UInt8] {
        let parts = [host, abi, architecture, toolchain, "\(user)", "\(folders.count)"] + folders + settings
        return Array(parts.map { Array($0.utf8) }.joined(separator: [0]))
    }

    /// The name of the file for this key. Two keys can have the same name, so the file contains the whole key.
    var fileName: String {
        let bytes = bytes
        var digest = FileDigest(size: bytes.count)
        bytes.withUnsafeBytes { digest.mix($0) }
        return "\(Self.filePrefix)\(VersionStore.hex(digest.value)).v\(RegistryLayout.version)"
    }

    /// The beginning of the names of all such files.
    static let filePrefix = "registry-"

    private static var ownArchitecture: String {
        #if arch(x86_64)
            "x86_64"
        #elseif arch(arm64)
            "aarch64"
        #elseif arch(riscv64)
            "riscv64"
        #else
            "other \(MemoryLayout<Int>.size * 8)"
        #endif
    }
}
