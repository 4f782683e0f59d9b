import CPluginHost
import PluginABI
import Synchronization

/// A record of where a host spends its time: reading folders, loading files, hooks of modules, events, and marks that
/// modules and the program add.
public struct HostProfile: Sendable {
    /// The entries in the order in which they ended.
    public let entries: [Entry]
    /// The number of entries beyond those that a host keeps.
    public let dropped: Int

    /// A piece of work and the time it took.
    public struct Entry: Sendable {
        /// The kind of work.
        public let phase: Phase
        /// The folder, the file, the hook, the event or the mark.
        public let name: String
        /// The module whose hook or mark it is; `nil` for everything else, and for marks of the program.
        public let module: String?
        /// The time from the creation of the host to the beginning of the work.
        public let start: Duration
        /// The duration; for an asynchronous hook or event, until its end; zero for a mark of a moment.
        public let duration: Duration
    }

    /// A kind of work.
    public enum Phase: String, Sendable, CaseIterable {
        /// Reading a folder.
        case discovery
        /// Copying a file, opening it, and checking its description.
        case loading
        /// A hook of a module.
        case hook
        /// An event, with all its subscribers.
        case event
        /// A mark of a module or of the program.
        case mark
    }

    /// The profile in the Trace Event Format of Chrome, which `chrome://tracing` and Perfetto open.
    public var chromeTrace: String {
        var rows: [(title: String, end: Duration)] = []
        var events: [Value] = []
        for entry in entries.sorted(by: { $0.start < $1.start }) {
            let title = entry.module ?? entry.phase.rawValue
            let isMoment = entry.phase == .mark && entry.duration == .zero
            // Bars in one row must not overlap. Moments have no length.
            let row = rows.firstIndex { $0.title == title && (isMoment || $0.end <= entry.start) } ?? rows.endIndex
            if row == rows.endIndex {
                rows.append((title, .zero))
                events.append([
                    "ph": "M", "name": "thread_name", "pid": 1, "tid": .int(row + 1), "args": ["name": .string(title)],
                ])
            }
            var event: [String: Value] = [
                "name": .string(entry.name), "cat": .string(entry.phase.rawValue), "pid": 1, "tid": .int(row + 1),
                "ts": .double(entry.start / .microseconds(1)),
                "args": entry.module.map { ["module": .string($0)] } ?? [:],
            ]
            if isMoment {
                (event["ph"], event["s"]) = ("i", "t")  // An instant event of its row.
            } else {
                rows[row].end = entry.start + entry.duration
                (event["ph"], event["dur"]) = ("X", .double(entry.duration / .microseconds(1)))
            }
            events.append(.map(event))
        }
        return Value.map(["traceEvents": .list(events), "displayTimeUnit": "ms"]).json
    }
}

/// Collects a profile.
final class Profiler: Sendable {
    private static let limit = 100_000
    private let begin = monotonicNow()
    private let entries = Mutex<[HostProfile.Entry]>([])
    /// The number of marks of each module, and of the program under the empty name.
    private let marks = Mutex<[String: Int]>([:])
    /// Whether the limit of entries is reached.
    private let isFull = Atomic(false)
    /// The tally of dropped entries, counted by each thread; `dropped` counts those without a thread context.
    private let droppedTally = ThreadContext.nextTally()
    private let dropped = Atomic(0)

    var profile: HostProfile {
        entries.withLock { entries in
            let tally = Int(plugin_host_tally_sum(droppedTally).calls)
            return HostProfile(entries: entries, dropped: tally + dropped.load(ordering: .relaxed))
        }
    }

    /// Returns the current time, for ``note(_:_:module:from:to:)``; `nil`, counted as dropped, if there is no room for
    /// more entries.
    @inline(__always)
    func started(_ thread: ThreadContext?) -> Int64? {
        guard isFull.load(ordering: .relaxed) else { return monotonicNow() }
        if let thread { thread.count(droppedTally) } else { dropped.add(1, ordering: .relaxed) }
        return nil
    }

    /// Records work that lasted from one time of CLOCK_MONOTONIC to another.
    func note(
        _ phase: HostProfile.Phase, _ name: String, module: String? = nil, from start: Int64,
        to end: Int64 = monotonicNow()
    ) {
        entries.withLock { entries in
            if entries.count < Self.limit {
                return entries.append(
                    HostProfile.Entry(
                        phase: phase, name: name, module: module, start: .nanoseconds(start - begin),
                        duration: .nanoseconds(end - start)))
            }
            dropped.add(1, ordering: .relaxed)
            isFull.store(true, ordering: .relaxed)
        }
    }

    /// Records a mark: work that has just ended, or a moment.
    ///
    /// - Parameters:
    ///   - name: The name, of which the first `PLUGIN_MARK_NAME_MAX_BYTES` bytes are kept.
    ///   - module: The module that sets it; `nil` for the program.
    ///   - duration: How long the work took, in nanoseconds; limited to the time since the host was created.
    func mark(_ name: plugin_string, module: String?, lasting duration: Int64) {
        let end = monotonicNow()
        let hasRoom = marks.withLock { marks in
            let count = marks[module ?? "", default: 0]
            guard count < Int(PLUGIN_MARKS_MAX) else { return false }
            marks[module ?? ""] = count + 1
            return true
        }
        guard hasRoom else {
            dropped.add(1, ordering: .relaxed)
            return
        }
        let name = name.beginning(Int(PLUGIN_MARK_NAME_MAX_BYTES))
        note(.mark, name, module: module, from: end - min(max(duration, 0), end - begin), to: end)
    }

    /// Runs `body` and records how long it took.
    func measure<Result, Failure: Error>(
        _ phase: HostProfile.Phase, _ name: String, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let start = monotonicNow()
        defer { note(phase, name, from: start) }
        return try body()
    }
}

extension plugin_string {
    /// The first bytes of the text, with an ellipsis if there are more.
    fileprivate func beginning(_ limit: Int) -> String {
        guard count > limit, let bytes else { return text }
        var end = limit
        // A scalar is not cut: the bytes that continue it begin with the bits 10.
        while end > 0, UInt8(bitPattern: bytes[end]) & 0xC0 == 0x80 { end -= 1 }
        return plugin_string(bytes: bytes, count: UInt64(end)).text + "…"
    }
}
