import PluginABI
import Synchronization

/// The last lines that a worker wrote to standard output, standard error and the log. They are kept in the memory of
/// the host, so they survive the process.
final class LastWords: Sendable {
    /// How many lines are kept, and how many bytes they may have in total, with control characters as escapes.
    static let linesMax = 20
    static let bytesMax = 4096
    /// The longest line; a longer one is cut off.
    private static let lineMax = 1000

    /// The maximum number of lines of a backtrace. Lines after that are kept as usual.
    private static let backtraceMax = 2000

    private struct State {
        var lines: [String] = []
        /// How many lines of a backtrace were left out; `nil` outside of one.
        var leftOut: Int?
    }

    private let state = Mutex(State())

    /// Returns whether a line states where the code of a process was when it crashed (``Isolation/reportsAddresses``).
    private static func isAddress(_ line: String) -> Bool {
        guard line.hasPrefix("address ") else { return line == "addresses end" }
        return line.utf8.dropFirst("address ".utf8.count).prefix { $0 != UInt8(ascii: " ") }.count == 16
    }

    /// Adds a line of output, unless it states where the code was. Of a backtrace by the Swift runtime, which has more
    /// than 20 lines, only the line with the crash is kept, so that the fatal error before it is not lost.
    func addOutput(_ line: String) {
        if Self.isAddress(line) { return }
        let isLeftOut = state.withLock { state in
            if line.hasPrefix("*** Signal "), line.contains(": Backtracing from ") { state.leftOut = 0 }
            guard let count = state.leftOut else { return false }
            let isLast = line.hasPrefix("Backtrace took ") || count == Self.backtraceMax
            state.leftOut = isLast ? nil : count + 1
            return !line.hasPrefix("*** Program crashed: ")
        }
        if !isLeftOut { add(line) }
    }

    /// Adds a line of output, or an entry of the log.
    func add(_ text: String) {
        guard !text.isEmpty else { return }
        let bytes = text.utf8
        let line =
            bytes.count <= Self.lineMax ? text : String(decoding: bytes.prefix(Self.lineMax), as: UTF8.self) + "…"
        state.withLock { state in
            if state.lines.count == Self.linesMax { state.lines.removeFirst() }
            state.lines.append(line)
        }
    }

    /// The lines, in the order in which they were written, with control characters as escapes.
    var lines: [String] {
        var left = Self.bytesMax
        let lines = state.withLock(\.lines).reversed().map(\.printable).prefix { line in
            left -= line.utf8.count
            return left >= 0
        }
        return lines.reversed()
    }
}

extension ModuleProcess {
    /// The reason why the process has ended, with its last words, as sentences; `nil` while it runs.
    var report: String? {
        guard let ending else { return nil }
        let lines = lastWords
        guard !lines.isEmpty else { return ending }
        return ending + " Its last words: " + lines.map { "“\($0)”" }.joined(separator: ", ") + "."
    }
}
