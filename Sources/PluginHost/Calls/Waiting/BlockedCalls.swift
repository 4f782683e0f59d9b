import CPluginABI
import Dispatch
import PluginABI
import Synchronization

// Calls that wait until their module has handed over its state.

extension Calls {
    /// Returns the barrier that blocks a call; `nil` if there is none, or if the call is part of a call that the module
    /// is running.
    ///
    /// - Throws: `circularWait` for a call made by a module that is about to start, because the hand-over waits for
    ///   that start.
    func barrier(of endpoint: Endpoint, for call: Call) throws(PluginError) -> CallBarrier? {
        var starting: Generation?
        for running in CallChain(from: call.parent).lazy.compactMap(\.endpoint) {
            if running.generation === endpoint.generation, !running.isStandIn { return nil }
            if running.generation.isStarting.load(ordering: .relaxed) { starting = running.generation }
        }
        guard let barrier = endpoint.generation.barrier.withLock({ $0 }) else { return nil }
        if let starting, !barrier.isOver {
            throw PluginError(
                .circularWait,
                "\(endpoint.title) waits until \(endpoint.generation.name) has handed over its state, and the "
                    + "hand-over waits for the start of \(starting.name), which made this call.")
        }
        return barrier
    }

    /// Makes a call after its module has handed over its state. A synchronous call blocks its thread until then.
    func wait(
        for barrier: CallBarrier, _ endpoint: Endpoint, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call,
        _ thread: ThreadContext,
        _ record: CallRecord, _ instance: UnsafeMutableRawPointer?
    ) throws(PluginError) -> plugin_token {
        let object = record.object
        record.vacate()
        do throws(PluginError) {
            guard call.mode == .synchronous else {
                return try keep(
                    .handOver(barrier), .endpoint(endpoint, instance: instance, object: object), entries, call, thread,
                    record)
            }
            try block(until: barrier, endpoint, call)
        } catch {
            if object != 0 { _ = ObjectTable.release(object) }
            throw error
        }
        let next = try occupyAgain(record, endpoint, call, thread, object)
        return try invoke(next, entries, call, thread, record, instance: instance)
    }

    /// Opens a URL after the module that it leads to has handed over its state; the URL may then lead elsewhere. In
    /// mode `.synchronous`, blocks the thread until then and returns `nil`: the caller must resolve the URL again.
    func wait(
        for barrier: CallBarrier, _ endpoint: Endpoint, _ url: @autoclosure () -> WaitingAddress,
        _ given: UnsafeBufferPointer<plugin_entry>, _ call: Call, _ thread: ThreadContext, _ record: CallRecord
    ) throws(PluginError) -> plugin_token? {
        record.vacate()
        guard call.mode == .synchronous else {
            return try keep(.handOver(barrier), url(), given, call, thread, record)
        }
        try block(until: barrier, endpoint, call)
        return nil
    }

    private func block(until barrier: CallBarrier, _ endpoint: Endpoint, _ call: Call) throws(PluginError) {
        let deadline = call.timeout > 0 ? DispatchTime.now() + .nanoseconds(Int(call.timeout)) : .distantFuture
        guard try barrier.wait(until: deadline) else { throw .deadlineExceeded(endpoint) }
    }

    /// Enters a call in its record again after it was blocked, because another generation may serve now.
    func occupyAgain(
        _ record: CallRecord, _ endpoint: Endpoint, _ call: Call, _ thread: ThreadContext, _ object: plugin_object
    ) throws(PluginError) -> Endpoint {
        let name = endpoint.name
        let isOfObject = object != 0
        let slash = name.firstIndex(of: "/")
        let found = registry.read(thread) { table -> Unmanaged<Endpoint>? in
            let next: Endpoint? =
                if isOfObject {
                    endpoint
                } else if name.hasPrefix("!") {
                    table.generations.first { $0.name == endpoint.generation.name }?
                        .subscriptions[String(name.dropFirst())]
                } else if let slash {
                    table.targets[String(name[..<slash])]?.actions[String(name[name.index(after: slash)...])]
                } else {
                    nil
                }
            guard let next else { return nil }
            occupy(record, .passUnretained(next), call)
            record.object = object
            return .passUnretained(next)
        }
        if isOfObject, endpoint.generation.isRevoked.load(ordering: .relaxed) {
            throw PluginError(
                .generationRetired,
                "\(endpoint.title) was called on an object of \(endpoint.generation.label), which no longer serves, and "
                    + "the time limit for its objects has passed. Get a new object.")
        }
        guard let found else {
            guard let slash else { throw PluginError(.moduleUnavailable, "\(endpoint.title) no longer exists.") }
            throw registry.table.missing(String(name[..<slash]), String(name[name.index(after: slash)...]))
        }
        return found.takeUnretainedValue()
    }
}
