internal import Foundation
internal import Glibc
internal import PluginABI

/// A file that was in progress when a host died. It is not opened again until it changes or is released.
struct QuarantineEntry: Hashable, Sendable, Codable {
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

    /// Whether both are about the same step with the same bytes.
    func isAbout(_ other: QuarantineEntry) -> Bool {
        file == other.file && digest == other.digest && step == other.step
    }
}

extension QuarantineEntry {
    /// The entry as one line of JSON, as ``Quarantine/decoder`` reads it. Not written by Foundation, whose encoder casts:
    /// each cast of a process that has just opened a library searches the conformances of all libraries.
    var line: String {
        var seconds = time_t(date.timeIntervalSince1970)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        let date = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 32) { text in
            strftime(text.baseAddress!, text.count, "%Y-%m-%dT%H:%M:%SZ", &parts)
            return String(cString: text.baseAddress!)
        }
        let members: Value = [
            "file": .string(file), "step": .string(step.rawValue), "date": .string(date),
            "message": .string(message),
        ]
        // A digest can be too large for the int of a value.
        return "\(members.json.dropLast()),\"digest\":\(digest)}"
    }
}

/// The file `quarantine.json` in the state folder, shared by all hosts of a user.
struct Quarantine {
    let folder: String

    private var file: String { "\(folder)/quarantine.json" }

    /// What the file says; nothing where it is missing or broken.
    func read() -> [QuarantineEntry] {
        guard let data = FileManager.default.contents(atPath: file), data.count <= 1 << 24 else { return [] }
        return (try? Self.decoder.decode([QuarantineEntry].self, from: data)) ?? []
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
        do {
            try Self.encoder.encode(entries).write(to: URL(fileURLWithPath: new))
        } catch {
            throw PluginError(.unreadable, "\(new) cannot be written: \(error.localizedDescription)")
        }
        guard rename(new, file) == 0 else { throw failed(errno) }
        return entries
    }

    private func failed(_ code: Int32) -> PluginError {
        PluginError(.unreadable, "\(file) cannot be written: \(describe(errno: code)).")
    }

    static var encoder: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .iso8601
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }

    static var decoder: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        return decoder
    }
}
