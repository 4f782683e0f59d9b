import CDispatch
import FoundationEssentials
import Glibc
import PluginABI
import PluginFile

/// A file whose module was being started when a host died. It is not opened again until it changes or is released.
struct QuarantineEntry: Hashable, Sendable {
    /// The path of the original file.
    var file: String
    /// The digest of the content that was quarantined. Other content is not quarantined.
    var digest: UInt64
    /// The step of the start during which the host died.
    var step: Journal.Step
    var date: Date
    /// The reason, as text for the operator.
    var message: String
    /// Whether something else may have killed the host: this was its first death in that step, and no code of the file
    /// is known to have caused it. `nil` means no.
    var isSuspected: Bool?

    /// Returns whether both entries concern the same file with the same content.
    func hasContent(of other: QuarantineEntry) -> Bool { file.hasBytes(of: other.file) && digest == other.digest }

    /// Returns whether both entries concern the same step of the same file with the same content.
    func isAbout(_ other: QuarantineEntry) -> Bool { hasContent(of: other) && step == other.step }
}

extension QuarantineEntry {
    /// The entry as JSON.
    var record: Value {
        var entries: [String: Value] = [
            // A digest can be too large for the int of a value.
            "file": .string(file), "digest": .string(VersionStore.hex(digest)), "step": .string(step.rawValue),
            "date": .int(Int(date.timeIntervalSince1970)), "message": .string(message),
        ]
        if let isSuspected { entries["isSuspected"] = .bool(isSuspected) }
        return .map(entries)
    }

    /// Reads a value written by ``record``. Returns `nil` for any other value.
    init?(_ record: Value) {
        guard let file = record["file"]?.string,
            let digest = record["digest"]?.string.flatMap({ UInt64($0, radix: 16) }),
            let step = record["step"]?.string.flatMap(Journal.Step.init), let date = record["date"]?.int,
            let message = record["message"]?.string
        else { return nil }
        self.init(
            file: file, digest: digest, step: step, date: Date(timeIntervalSince1970: Double(date)), message: message,
            isSuspected: record["isSuspected"]?.bool)
    }
}

/// The file `quarantine.json` in the state folder, which all hosts of a user share.
struct Quarantine {
    let folder: String
    /// Whether to ignore files that users other than this user and root can write.
    var checksTrust = true

    /// The largest number of entries. The oldest are removed first.
    static let entriesMax = 1000

    private var file: String { "\(folder)/quarantine.json" }

    /// Returns the entries in the file; an empty array if it is missing or invalid, or another user can write it.
    func read() -> [QuarantineEntry] {
        guard (try? checkTrust(of: folder)) != nil, (try? checkTrust(of: file)) != nil,
            let data = FileManager.default.contents(atPath: file), data.count <= 1 << 24,
            let list = try? Value(jsonMessage: Array(data)).list
        else { return [] }
        return list.compactMap(QuarantineEntry.init)
    }

    /// Checks that no other user can write a file or folder of the journal.
    ///
    /// - Throws: `untrusted`.
    func checkTrust(of path: String) throws(PluginError) {
        var status = stat()
        guard checksTrust, lstat(path, &status) == 0 else { return }
        try Trust.check(status: status, path: path, above: nil)
    }

    /// Changes the list and replaces the file atomically, while no other host can change it. Returns the new list.
    ///
    /// - Throws: `unreadable` if the file cannot be written, or another host keeps it locked for more than five
    ///   seconds.
    func update(_ change: (inout [QuarantineEntry]) -> Void) throws(PluginError) -> [QuarantineEntry] {
        let lock = open("\(folder)/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard lock >= 0 else { throw failed(errno) }
        defer { close(lock) }
        var attempts = 0
        while flock(lock, LOCK_EX | LOCK_NB) != 0 {
            attempts += 1
            guard errno == EWOULDBLOCK || errno == EINTR, attempts < 500 else { throw failed(errno) }
            usleep(10_000)
        }
        var entries = read()
        let before = entries
        change(&entries)
        guard entries != before else { return entries }
        let new = "\(file).new"
        let output = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard output >= 0 else { throw failed(errno) }
        defer { close(output) }
        let text = Array(Value.list(entries.map(\.record)).json.utf8)
        guard text.withUnsafeBytes({ SourceFile.write($0, to: output) }), rename(new, file) == 0 else {
            throw failed(errno)
        }
        return entries
    }

    private func failed(_ code: Int32) -> PluginError {
        PluginError(.unreadable, "\(file) cannot be written: \(describe(errno: code)).")
    }
}
