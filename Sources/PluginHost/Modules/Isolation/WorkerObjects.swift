import PluginABI
import Synchronization

/// The objects that a worker process may refer to: those that were lent to it, as long as they are lent, and those that
/// it holds. Any other number is unknown, even if an object has it.
final class WorkerObjects: Sendable {
    fileprivate struct Entry {
        /// How many times the object is lent now: in arguments, or in outcomes that the worker is reading.
        var lends = 0
        /// How many times the worker holds the object.
        var holds = 0
    }

    fileprivate struct State {
        var entries: [plugin_object: Entry] = [:]
        /// The objects in outcomes that the worker has not finished reading, by the number of the outcome.
        var outcomes: [Int64: [plugin_object]] = [:]
        var lastOutcome: Int64 = 0
        var hasEnded = false
    }

    private let state = Mutex(State())

    /// How many outcomes with objects a worker may be reading at a time.
    private static let outcomesMax = 100_000

    /// Whether there are none.
    var isEmpty: Bool { state.withLock { $0.entries.isEmpty && $0.outcomes.isEmpty } }

    // MARK: Lending

    /// Lends objects until ``endLoan(of:)``. They stay alive until then.
    ///
    /// - Returns: The objects that are lent: those that exist.
    func lend(_ objects: [plugin_object]) -> [plugin_object] {
        guard !objects.isEmpty else { return [] }
        let alive = objects.filter { ObjectTable.retain($0) }
        state.withLock { state in for object in alive { state.entries[object, default: Entry()].lends += 1 } }
        return alive
    }

    func endLoan(of objects: [plugin_object]) {
        guard !objects.isEmpty else { return }
        state.withLock { state in for object in objects { state.change(object) { $0.lends -= 1 } } }
        for object in objects { _ = ObjectTable.release(object) }
    }

    /// Lends the objects in an outcome until the worker has read it.
    ///
    /// - Returns: The number by which the worker ends the loan; `nil` if too many outcomes are lent.
    func lendOutcome(_ objects: [plugin_object]) -> Int64? {
        let lent = lend(objects)
        let number: Int64? = state.withLock { state in
            guard !state.hasEnded, state.outcomes.count < Self.outcomesMax else { return nil }
            state.lastOutcome += 1
            state.outcomes[state.lastOutcome] = lent
            return state.lastOutcome
        }
        if number == nil { endLoan(of: lent) }
        return number
    }

    func endOutcome(_ number: Int64) {
        if let objects = state.withLock({ $0.outcomes.removeValue(forKey: number) }) { endLoan(of: objects) }
    }

    // MARK: Holding

    /// Returns whether the worker may refer to an object: it was lent, is held, or is one of the module's own.
    func isKnown(_ object: plugin_object, in generation: Generation) -> Bool {
        if state.withLock({ $0.entries[object] != nil }) { return true }
        guard ObjectTable.retain(object) else { return false }
        defer { _ = ObjectTable.release(object) }
        return ObjectTable.contents(of: object).0.generation === generation
    }

    /// Makes the worker a holder of an object that it has created. Returns false if the worker has ended.
    func noteCreation(of object: plugin_object) -> Bool { addHold(of: object) }

    /// Adds the worker as a holder once more. Returns false if the worker cannot know the object.
    func retain(_ object: plugin_object, in generation: Generation) -> Bool {
        guard isKnown(object, in: generation), ObjectTable.retain(object) else { return false }
        let isHeld = addHold(of: object)
        if !isHeld { _ = ObjectTable.release(object) }
        return isHeld
    }

    private func addHold(of object: plugin_object) -> Bool {
        state.withLock { state in
            if state.hasEnded { return false }
            state.entries[object, default: Entry()].holds += 1
            return true
        }
    }

    /// Removes the worker as a holder once. Returns false if it is not a holder.
    func release(_ object: plugin_object) -> Bool {
        let isHeld = state.withLock { state in
            guard let entry = state.entries[object], entry.holds > 0 else { return false }
            state.change(object) { $0.holds -= 1 }
            return true
        }
        return isHeld && ObjectTable.release(object)
    }

    /// Releases everything that the worker holds or has not finished reading, after its end.
    func releaseAll() {
        let (held, outcomes) = state.withLock { state in
            state.hasEnded = true
            let held = state.entries.filter { $0.value.holds > 0 }
            for object in held.keys { state.change(object) { $0.holds = 0 } }
            defer { state.outcomes = [:] }
            return (held, state.outcomes)
        }
        for (object, entry) in held { for _ in 0..<entry.holds { _ = ObjectTable.release(object) } }
        for objects in outcomes.values { endLoan(of: objects) }
    }
}

extension WorkerObjects.State {
    fileprivate mutating func change(_ object: plugin_object, _ body: (inout WorkerObjects.Entry) -> Void) {
        guard var entry = entries[object] else { return }
        body(&entry)
        entries[object] = entry.lends > 0 || entry.holds > 0 ? entry : nil
    }
}

extension UnsafeBufferPointer<plugin_value> {
    /// Whether one of these values is an object, a list or a map.
    var mayContainObjects: Bool { contains { $0.kind >= PLUGIN_KIND_LIST } }

    /// The objects in these values and in all that they contain, as often as they occur.
    var objects: [plugin_object] {
        guard mayContainObjects else { return [] }
        var objects: [plugin_object] = []
        for index in indices { self[index].addObjects(to: &objects, depth: 0) }
        return objects
    }

    /// Replaces unknown objects with 0, in memory that belongs to the caller.
    func dropObjects(unless isKnown: (plugin_object) -> Bool) {
        guard let start = UnsafeMutablePointer(mutating: baseAddress) else { return }
        for index in 0..<count { start[index].dropObjects(unless: isKnown) }
    }
}

extension plugin_value {
    fileprivate func addObjects(to objects: inout [plugin_object], depth: Int) {
        guard depth <= PLUGIN_DEPTH_MAX else { return }
        switch kind {
        case PLUGIN_KIND_OBJECT: objects.append(self.as.object)
        case PLUGIN_KIND_LIST where self.as.list != nil:
            for index in 0..<Int(count) { self.as.list[index].addObjects(to: &objects, depth: depth + 1) }
        case PLUGIN_KIND_MAP where self.as.map != nil:
            for index in 0..<Int(count) { self.as.map[index].value.addObjects(to: &objects, depth: depth + 1) }
        default: break
        }
    }

    fileprivate mutating func dropObjects(unless isKnown: (plugin_object) -> Bool) {
        switch kind {
        case PLUGIN_KIND_OBJECT: if !isKnown(self.as.object) { self.as.object = 0 }
        case PLUGIN_KIND_LIST:
            let count = self.as.list == nil ? 0 : Int(count)
            UnsafeBufferPointer(start: self.as.list, count: count).dropObjects(unless: isKnown)
        case PLUGIN_KIND_MAP:
            guard let entries = UnsafeMutablePointer(mutating: self.as.map) else { return }
            for index in 0..<Int(count) { entries[index].value.dropObjects(unless: isKnown) }
        default: break
        }
    }
}
