import CPluginABI
import CPluginHost
import Foundation
import Glibc
import PluginABI
import Synchronization

// Calls that wait until their module has handed its state over.

extension Calls {
    /// What holds a call back; nil for one that is part of a call that runs.
    ///
    /// - Throws: `circularWait` for one that a module makes which is about to start: the hand-over waits for that.
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
                "\(endpoint.title) waits for the state of \(endpoint.generation.name) to be handed over, and that waits "
                    + "for the start of \(starting.name), which has made this call.")
        }
        return barrier
    }

    /// Makes a call when its module has handed its state over: a synchronous one blocks its thread until then.
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
                    barrier, .endpoint(endpoint, instance: instance, object: object), entries, call, thread, record)
            }
            try block(until: barrier, endpoint, call)
        } catch {
            if object != 0 { _ = ObjectTable.release(object) }
            throw error
        }
        let next = try occupyAgain(record, endpoint, call, thread, object)
        return try invoke(next, entries, call, thread, record, instance: instance)
    }

    /// Makes a call of a URL when the module that it leads to has handed its state over: where it leads then is another
    /// question. Nil where that is to be asked by the caller, whose thread was blocked until now.
    func wait(
        for barrier: CallBarrier, _ endpoint: Endpoint, url: RawText, asksForObject: Bool,
        _ given: UnsafeBufferPointer<plugin_entry>, _ call: Call, _ thread: ThreadContext, _ record: CallRecord
    ) throws(PluginError) -> plugin_token? {
        record.vacate()
        guard call.mode == .synchronous else {
            return try keep(barrier, .url(url.string, asksForObject: asksForObject), given, call, thread, record)
        }
        try block(until: barrier, endpoint, call)
        return nil
    }

    private func block(until barrier: CallBarrier, _ endpoint: Endpoint, _ call: Call) throws(PluginError) {
        let isOver = DispatchSemaphore(value: 0)
        try barrier.whenOver { isOver.signal() }
        let deadline = call.timeout > 0 ? DispatchTime.now() + .nanoseconds(Int(call.timeout)) : .distantFuture
        guard isOver.wait(timeout: deadline) == .success else { throw .deadlineExceeded(endpoint) }
    }

    /// Enters a call that was held back in its record once more: what serves now may be another generation.
    func occupyAgain(
        _ record: CallRecord, _ endpoint: Endpoint, _ call: Call, _ thread: ThreadContext, _ object: plugin_object
    ) throws(PluginError) -> Endpoint {
        let name = endpoint.name
        let isOfObject = object != 0
        let place = name.firstIndex(of: "/")
        let found = registry.read(thread) { table -> Unmanaged<Endpoint>? in
            let next: Endpoint? =
                if isOfObject {
                    endpoint
                } else if name.hasPrefix("!") {
                    table.generations.first { $0.name == endpoint.generation.name }?
                        .subscriptions[String(name.dropFirst())]
                } else if let place {
                    table.targets[String(name[..<place])]?.actions[String(name[name.index(after: place)...])]
                } else {
                    nil
                }
            guard let next else { return nil }
            occupy(record, .passUnretained(next), call)
            record.object = object
            return .passUnretained(next)
        }
        if isOfObject, endpoint.generation.isRevoked.load(ordering: .relaxed) {
            throw PluginError(.generationRetired, "\(endpoint.title) is retired.")
        }
        guard let found else {
            guard let place else { throw PluginError(.moduleUnavailable, "\(endpoint.title) is not there any more.") }
            throw registry.table.missing(String(name[..<place]), String(name[name.index(after: place)...]))
        }
        return found.takeUnretainedValue()
    }
}
