import CDispatch
import Foundation
import Glibc
import PluginABI
import PluginFile

/// A file that was in progress when a host died. It is not opened again until it changes or is released.
struct QuarantineEntry: Hashable, Sendable {
    /// The original file.
    var file: String
    /// Of its content then; another content ends the quarantine.
    var digest: UInt64
    /// What the host was doing with it.
    var step: Journal.Step
    var date: Date
    /// For people.
    var message: String
    /// Whether the host may have been killed by something else: it ended without a signal of the file's own, and for the
    /// first time. Nil for no.
    var isSuspected: Bool?

    /// Whether both are about the same file with the same bytes.
    func hasContent(of other: QuarantineEntry) -> Bool { file.hasBytes(of: other.file) && digest == other.digest }

    /// Whether both are about the same step with the same bytes.
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

    /// Reads what ``record`` wrote; nil for anything else.
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

/// The file `quarantine.json` in the state folder, shared by all hosts of a user.
struct Quarantine {
    let folder: String
    /// Whether to leave out what others than this user and root could have written.
    var checksTrust = true

    /// How many entries are kept at most; the oldest go first.
    static let entriesMax = 1000

    private var file: String { "\(folder)/quarantine.json" }

    /// What the file says; nothing where it is missing or broken, or another user could have written it.
    func read() -> [QuarantineEntry] {
        guard (try? checkTrust(of: folder)) != nil, (try? checkTrust(of: file)) != nil,
            let data = FileManager.default.contents(atPath: file), data.count <= 1 << 24,
            let list = try? Value(jsonMessage: Array(data)).list
        else { return [] }
        return list.compactMap(QuarantineEntry.init)
    }

    /// Checks who could have written a file or folder of the journal.
    ///
    /// - Throws: `untrusted`.
    func checkTrust(of path: String) throws(PluginError) {
        var status = stat()
        guard checksTrust, lstat(path, &status) == 0 else { return }
        try Trust.check(status: status, path: path, above: nil)
    }

    /// Changes the list and replaces the file at once, while no other host does so. Returns the new list.
    ///
    /// - Throws: `unreadable` if the file cannot be written, or another host holds it for more than five seconds.
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
