import Foundation

/// The folder of one round: the home of the programs that the round starts. Kept if there was a finding.
struct Folder {
    let path: String

    init(_ name: String) throws {
        path = NSTemporaryDirectory() + "/torture-\(getpid())-\(name)"
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o755])
    }

    func folder(_ name: String) throws -> String {
        try FileManager.default.createDirectory(
            atPath: "\(path)/\(name)", withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
        return "\(path)/\(name)"
    }

    func remove() { try? FileManager.default.removeItem(atPath: path) }
}

/// Puts a file at a path by a rename, with the mode that the host requires.
func put(_ bytes: [UInt8], at path: String) throws {
    let new = (path as NSString).deletingLastPathComponent + "/.new-" + (path as NSString).lastPathComponent
    unlink(new)
    guard FileManager.default.createFile(atPath: new, contents: Data(bytes), attributes: [.posixPermissions: 0o755]),
        rename(new, path) == 0
    else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
}

func read(_ path: String) throws -> [UInt8] { try [UInt8](Data(contentsOf: URL(filePath: path))) }

/// Checks repeatedly until a condition holds or the time is over. Returns whether it holds.
func eventually(within seconds: Double, _ holds: () throws -> Bool) rethrows -> Bool {
    let end = ContinuousClock.now + .seconds(seconds)
    while true {
        if try holds() { return true }
        if ContinuousClock.now >= end { return false }
        usleep(20_000)
    }
}
