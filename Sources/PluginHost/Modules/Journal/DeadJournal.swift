import FoundationEssentials
import Glibc
import PluginABI

/// The content of the journal of a host that died.
struct DeadJournal {
    fileprivate struct Start {
        var entry: QuarantineEntry
        let size: Int
        var running: [Journal.Step] = []
    }

    /// How a module ended the host: by a fatal signal, or by `exit` or `_exit`.
    private enum End: String, CaseIterable {
        case fatal, exit
    }

    /// The modules that were being started, by the numbers of their files.
    private var starts: [Int: Start] = [:]
    private var end: (kind: End, number: Int)?

    /// The largest part of a journal that is read, in bytes.
    private static let limit = 64 << 20

    /// Reads a journal from its beginning. Invalid lines are ignored.
    init(_ descriptor: Int32) {
        lseek(descriptor, 0, SEEK_SET)
        var text: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        while text.count < Self.limit, case let count = read(descriptor, &chunk, chunk.count), count > 0 {
            text += chunk[..<count]
        }
        // The last line may have been cut off.
        for line in text.split(separator: UInt8(ascii: "\n")) {
            guard let line = String(validating: line, as: UTF8.self), let value = try? Value(json: line) else {
                continue
            }
            take(value)
        }
    }

    private mutating func take(_ line: Value) {
        for kind in End.allCases {
            // Only the first end counts; later ones are consequences of it.
            guard let number = line[kind.rawValue]?.int else { continue }
            if end == nil { end = (kind, number) }
            return
        }
        guard let number = line["number"]?.int else { return }
        if let step = line["step"]?.string.flatMap(Journal.Step.init) {
            if starts[number] == nil { starts[number] = Start(line, step) }
            starts[number]?.entry.step = step
            starts[number]?.running.append(step)
        } else if let step = line["over"]?.string.flatMap(Journal.Step.init) {
            if let index = starts[number]?.running.lastIndex(of: step) { starts[number]?.running.remove(at: index) }
        } else {
            starts[number] = nil
        }
    }

    /// The files that are blamed for the end of the host.
    var blamed: [QuarantineEntry] {
        if let end, end.number != 0 {
            // A module that had already been started may have ended the host.
            guard let culprit = starts[end.number] else { return [] }
            return [culprit.blamed(for: end.kind == .exit ? "ended by exit, _exit or quick_exit" : nil)]
        }
        return starts.sorted { $0.key < $1.key }.map(\.value).filter { !$0.running.isEmpty }.map { start in
            var entry = start.blamed(for: nil)
            entry.isSuspected = true
            return entry
        }
    }
}

extension DeadJournal.Start {
    fileprivate init?(_ line: Value, _ step: Journal.Step) {
        guard let file = line["file"]?.string, let digest = line["digest"]?.string.flatMap({ UInt64($0, radix: 16) })
        else { return nil }
        size = line["size"]?.int ?? 0
        entry = QuarantineEntry(
            file: file, digest: digest, step: step, date: Date(timeIntervalSince1970: Double(line["date"]?.int ?? 0)),
            message: "")
    }

    fileprivate func blamed(for end: String?) -> QuarantineEntry {
        var entry = entry
        entry.message =
            "The host \(end.map { "was \($0)" } ?? "died") during the \(entry.step.rawValue) of \(entry.file) "
            + "(\(size) bytes)."
        return entry
    }
}
