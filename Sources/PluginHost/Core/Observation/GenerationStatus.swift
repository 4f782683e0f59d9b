public import Foundation
import PluginABI
import PluginFile
import Synchronization

/// One loaded copy of a module, and why it is still there.
public struct GenerationStatus: Sendable {
    /// Counted over all modules of the process, from 1.
    public let number: Int
    /// The module's name.
    public let name: String
    /// The module's version.
    public let version: String
    /// The file in the plugins folder that it was loaded from.
    public let file: String
    /// Where it is in its life.
    public let state: State
    /// When it was made.
    public let created: Date
    /// Since when it is in this state.
    public let since: Date
    /// The calls that run in it.
    public let calls: [RunningCall]
    /// How many objects and callbacks of it somebody holds.
    public let objects: Int
    /// The memory that is mapped for its image, in bytes. It stays mapped when the generation is retired.
    public let mappedBytes: Int

    /// Where a generation is in its life.
    public enum State: String, Sendable, CaseIterable {
        /// It is being set up or initialised; nobody else can call it yet.
        case starting
        /// It serves.
        case active
        /// It was replaced or removed, and is still used: it is torn down after that.
        case draining
        /// It was torn down. Its code stays in memory: the Swift runtime cannot forget an image.
        case retired
    }

    /// One call that runs.
    public struct RunningCall: Sendable {
        /// Target and action, type and action, or the hook.
        public let action: String
        /// The action that made the call; nil where the program or no action at all has made it.
        public let caller: String?
        /// The module whose code made the call; nil where it was the program's.
        public let callingModule: String?
        /// When it began; exact to some milliseconds.
        public let since: Date
    }

    /// - Parameter since: Default: now.
    init(_ generation: Generation, _ state: State, since: Date = Date()) {
        number = generation.number
        name = generation.name
        version = generation.version.description
        file = generation.file
        self.state = state
        created = generation.created
        self.since = since
        calls = state == .retired ? [] : generation.statusOfCalls
        objects = generation.objectCount.load(ordering: .relaxed)
        mappedBytes = generation.module?.staged.image.mappedSize ?? 0
    }

    /// Why it is still there, in words.
    public var reason: String {
        switch state {
        case .starting: "is being started."
        case .active: "serves."
        case .draining: holds
        case .retired: "was torn down; its code stays in memory."
        }
    }

    /// `ModuleA 1.0.0 (generation 3)`.
    var title: String { "\(name) \(version) (generation \(number))" }

    /// What still uses it, in words.
    var holds: String {
        var parts = calls.prefix(5).map { call in
            "still runs \(call.action)" + (call.caller.map { " for \($0)" } ?? "")
        }
        if calls.count > 5 { parts.append("\(calls.count - 5) other calls") }
        if objects > 0 { parts.append("\(objects) \(objects == 1 ? "object is" : "objects are") held") }
        return parts.isEmpty ? "is not used any more." : parts.joined(separator: ", ") + "."
    }
}

extension Generation {
    fileprivate var statusOfCalls: [GenerationStatus.RunningCall] {
        let (now, present) = (Date(), monotonicNow())
        return runningCalls().compactMap { record in
            guard let endpoint = record.endpoint, endpoint.generation === self else { return nil }
            let (caller, since) = (record.caller, record.since)
            return GenerationStatus.RunningCall(
                action: endpoint.name, caller: CallRecord.name(of: record.parent), callingModule: caller?.sourceName,
                since: now.addingTimeInterval(-Double(max(0, present - since)) / 1e9))
        }
    }
}

/// All generations that were torn down since the start.
public struct RetiredTotal: Sendable, Hashable {
    /// How many.
    public internal(set) var count = 0
    /// The memory that stays mapped for their images, in bytes. Pages that nobody touches are given back by the kernel.
    public internal(set) var mappedBytes = 0
}
