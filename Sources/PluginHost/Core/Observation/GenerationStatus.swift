public import FoundationEssentials
import PluginFile
import Synchronization

/// One loaded copy of a module, and the reason why it still exists.
public struct GenerationStatus: Sendable {
    /// The number of the generation, counted from 1 across all modules of the process; 0 for a registered
    /// module, which has not started.
    public let number: Int
    /// The module's name.
    public let name: String
    /// The module's version.
    public let version: String
    /// The file in the plugins folder that the generation was loaded from.
    public let file: String
    /// The state of the generation in its life cycle.
    public let state: State
    /// The time when the generation was created.
    public let created: Date
    /// The time when the generation entered this state.
    public let since: Date
    /// The calls that are running in the generation.
    public let calls: [RunningCall]
    /// The number of the generation's objects and callbacks that have a holder.
    public let objects: Int
    /// The types of these objects and their holders, while it is draining; otherwise empty.
    public let heldObjects: [HeldObjects]
    /// Whether the generation has handed over its state, from `suspend`, to the one that replaced it, for `resume`.
    public let hasHandedOver: Bool
    /// The memory that is mapped for the generation's image, in bytes. It stays mapped when the generation is retired.
    /// 0 for an isolated module, whose image is not in this process.
    public let mappedBytes: Int
    /// The id of the worker in which the module runs; `nil` if the module runs in this process, or its worker has
    /// ended.
    public let process: Int32?
    /// The parts of the sandbox, and the limits, that the system does not support, each with the reason; empty if
    /// nothing is missing. See ``IsolationRule/Sandbox``.
    public let missingProtections: [String]
    /// The memory and the processor time of the worker when this status was made; `nil` if there is no worker, or
    /// `/proc` is not mounted.
    public let usage: ProcessUsage?
    /// How the worker ended, as a sentence, if it ended by itself, or was ended because it hung; otherwise `nil`.
    public let crash: String?
    /// The last lines that the worker wrote to standard output, standard error and the log before its ``crash``: at
    /// most 20 lines and 4 KiB, with control characters escaped. Empty if it has not crashed.
    public let lastWords: [String]

    /// A state in the life cycle of a generation.
    public enum State: String, Sendable, CaseIterable {
        /// The generation is being set up or initialised; no other code can call it yet.
        case starting
        /// The generation serves.
        case active
        /// The generation was replaced or removed, and will be torn down when it is no longer in use.
        case draining
        /// The module is only registered, and has not started. Occurs only in changes, with the number 0.
        case registered
        /// The generation was torn down. Its code stays in memory, because the Swift runtime cannot unload an image.
        case retired
    }

    /// One running call.
    public struct RunningCall: Sendable {
        /// Target and action, type and action, or the hook.
        public let action: String
        /// The action that made the call; `nil` if the program made it, or code outside any action.
        public let caller: String?
        /// The module whose code made the call; `nil` if it was the program's.
        public let callingModule: String?
        /// The time when the call began, accurate to a few milliseconds.
        public let since: Date
    }

    /// - Parameter since: The time at which it entered this state. Default: now.
    init(_ generation: Generation, _ state: State, since: Date = Date()) {
        (number, name, version) = (generation.number, generation.name, generation.version.description)
        (file, created) = (generation.file, generation.created)
        (self.state, self.since) = (state, since)
        calls = state == .retired ? [] : generation.statusOfCalls
        objects = generation.objectCount.load(ordering: .relaxed)
        // Done only when needed, because it looks at every object.
        let isHeld = state == .draining && objects > 0
        heldObjects = isHeld ? HeldObjects.all { $0.generation === generation && $0.isOfValues } : []
        hasHandedOver = generation.hasHandedOver.load(ordering: .relaxed)
        let module = generation.module
        mappedBytes = module?.process == nil ? module?.staged.image.mappedSize ?? 0 : 0
        process = module?.hasEnded == false ? module?.process?.id : nil
        missingProtections = module?.process?.missingProtections ?? []
        usage = module?.process?.usage
        crash = module?.process.flatMap { $0.hasCrashed ? $0.ending : nil }
        lastWords = module?.process?.lastWords ?? []
    }

    /// The status of a registered module, which has not started.
    init(registered module: LoadedModule) {
        (number, name, version) = (0, module.name, module.outline.version.description)
        (file, created, since, state) = (module.file, Date(), Date(), .registered)
        (calls, objects, heldObjects, hasHandedOver, mappedBytes) = ([], 0, [], false, 0)
        (process, missingProtections, usage, crash, lastWords) = (nil, [], nil, nil, [])
    }

    /// The reason why it still exists, in words.
    public var reason: String {
        switch state {
        case .starting: "is being started."
        case .active: "serves."
        case .draining: holds
        case .registered: "has not started."
        case .retired: "was torn down; its code stays in memory."
        }
    }

    /// The title in messages: `ModuleA 1.0.0 (generation 3)`.
    var title: String { "\(name) \(version)" + (state == .registered ? "" : " (generation \(number))") }

    /// The calls and objects that still use it, in words.
    var holds: String {
        var parts = calls.prefix(5).map { call in
            "still runs \(call.action)" + (call.caller.map { " for \($0)" } ?? "")
        }
        if calls.count > 5 { parts.append("\(calls.count - 5) other calls") }
        if !heldObjects.isEmpty {
            parts.append("still has " + heldObjects.prefix(5).map(\.description).joined(separator: "; "))
            if heldObjects.count > 5 { parts.append("objects of \(heldObjects.count - 5) other types") }
        } else if objects > 0 {
            parts.append("\(objects) \(objects == 1 ? "object is" : "objects are") held")
        }
        if parts.isEmpty { return "is no longer used." }
        return parts.joined(separator: "; ") + "." + (heldObjects.isEmpty ? "" : " " + HeldObjects.advice)
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

/// The totals of all generations that were torn down since the start.
public struct RetiredTotal: Sendable, Hashable {
    /// The number of generations.
    public internal(set) var count = 0
    /// The memory that stays mapped for the images of these generations, in bytes. The kernel reclaims pages that are
    /// not accessed.
    public internal(set) var mappedBytes = 0
}
