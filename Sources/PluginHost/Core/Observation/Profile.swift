import CPluginHost
import PluginABI
import Synchronization

/// A record of where a host spends its time: reading folders, loading files, hooks of modules, events.
public struct HostProfile: Sendable {
    /// The entries in the order in which they ended.
    public let entries: [Entry]
    /// The number of entries beyond those that a host keeps.
    public let dropped: Int

    /// A piece of work and the time it took.
    public struct Entry: Sendable {
        /// The kind of work.
        public let phase: Phase
        /// The folder, the file, the hook or the event.
        public let name: String
        /// The module whose hook it was; `nil` for everything else.
        public let module: String?
        /// The time from the creation of the host to the beginning of the work.
        public let start: Duration
        /// The duration; for an asynchronous hook or event, until its end.
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
    }

    /// The profile in the Trace Event Format of Chrome, which `chrome://tracing` and Perfetto open.
    public var chromeTrace: String {
        var rows: [(title: String, end: Duration)] = []
        var events: [Value] = []
        for entry in entries.sorted(by: { $0.start < $1.start }) {
            let title = entry.module ?? entry.phase.rawValue
            // Bars in one row must not overlap.
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

    /// Runs `body` and records how long it took.
    func measure<Result, Failure: Error>(
        _ phase: HostProfile.Phase, _ name: String, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let start = monotonicNow()
        defer { note(phase, name, from: start) }
        return try body()
    }
}
