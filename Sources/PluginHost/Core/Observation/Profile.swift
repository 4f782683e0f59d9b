import CPluginHost
import PluginABI
import Synchronization

/// Where the time of a host has gone: reading folders, loading files, hooks of modules, events.
public struct HostProfile: Sendable {
    /// In the order in which they ended.
    public let entries: [Entry]
    /// How many more there were than a host keeps.
    public let dropped: Int

    /// Something that took time.
    public struct Entry: Sendable {
        /// What kind of work it was.
        public let phase: Phase
        /// The folder, the file, the hook or the event.
        public let name: String
        /// Whose hook it was; nil for everything else.
        public let module: String?
        /// When it began, counted from the making of the host.
        public let start: Duration
        /// How long it took; for an asynchronous hook or event until its end.
        public let duration: Duration
    }

    /// A kind of work.
    public enum Phase: String, Sendable, CaseIterable {
        /// Reading a folder.
        case discovery
        /// Copying a file, opening it, and checking what it says.
        case loading
        /// A hook of a module.
        case hook
        /// An event, with all its subscribers.
        case event
    }
}

extension HostProfile {
    /// The profile in the Trace Event Format of Chrome, which `chrome://tracing` and Perfetto open.
    public var chromeTrace: String {
        var rows: [(title: String, end: Duration)] = []
        var events: [Value] = []
        for entry in entries.sorted(by: { $0.start < $1.start }) {
            let title = entry.module ?? entry.phase.rawValue
            // Bars of one row must not overlap.
            let row = rows.firstIndex { $0.title == title && $0.end <= entry.start } ?? rows.endIndex
            if row == rows.endIndex {
                rows.append((title, .zero))
                events.append([
                    "ph": "M", "name": "thread_name", "pid": 1, "tid": .int(row + 1), "args": ["name": .string(title)],
                ])
            }
            rows[row].end = entry.start + entry.duration
            events.append([
                "ph": "X", "name": .string(entry.name), "cat": .string(entry.phase.rawValue), "pid": 1,
                "tid": .int(row + 1), "ts": .double(entry.start / .microseconds(1)),
                "dur": .double(entry.duration / .microseconds(1)),
                "args": entry.module.map { ["module": .string($0)] } ?? [:],
            ])
        }
        return Value.map(["traceEvents": .list(events), "displayTimeUnit": "ms"]).json
    }
}

/// Collects a profile.
final class Profiler: Sendable {
    private static let limit = 100_000
    private let begin = monotonicNow()
    private let entries = Mutex<[HostProfile.Entry]>([])
    /// Whether there is no room for more entries.
    private let isFull = Atomic(false)
    /// How many have found none: counted by each thread, and otherwise.
    private let droppedTally = ThreadContext.nextTally()
    private let dropped = Atomic(0)

    var profile: HostProfile {
        entries.withLock { entries in
            let tally = Int(plugin_host_tally_sum(droppedTally).calls)
            return HostProfile(entries: entries, dropped: tally + dropped.load(ordering: .relaxed))
        }
    }

    /// The time now, for ``note(_:_:module:from:to:)``; nil, and counted as dropped, where there is no room any more.
    @inline(__always)
    func started(_ thread: ThreadContext?) -> Int64? {
        guard isFull.load(ordering: .relaxed) else { return monotonicNow() }
        if let thread { thread.count(droppedTally) } else { dropped.add(1, ordering: .relaxed) }
        return nil
    }

    /// Notes what took from one time of CLOCK_MONOTONIC to another.
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

    /// Notes how long a body took.
    func measure<Result, Failure: Error>(
        _ phase: HostProfile.Phase, _ name: String, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let start = monotonicNow()
        defer { note(phase, name, from: start) }
        return try body()
    }
}
