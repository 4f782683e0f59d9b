import PluginABI
import Synchronization

/// Counts visits, and continues counting when it is replaced by another build.
struct Visits: Module {
    static let manifest = Manifest("Visits", version: "1.0.0") {
        Target("Visits") {
            Action("count") { visits.add(1, ordering: .relaxed).newValue }
            Action("ticket", .context()) { context in try context.object("Ticket", Ticket()) }
            Action("keep", .required("callback", Callback.self)) { callback in kept.withLock { $0.append(callback) } }
            Action("year", .context()) { context in
                try await context.call("Clock", "year", timeout: .seconds(600)).get(Int.self)
            }
        }
        ObjectType("Ticket", Ticket.self) {
            Action("number", .instance()) { ticket in ticket.number }
        }

        On(.suspend) { _ in visits.load(ordering: .relaxed) }
        On(.resume, Int.self) { context, count, version in
            if context.configuration["forgets"] == true { throw PluginError("forgotten", "How many were there?") }
            visits.store(count, ordering: .relaxed)
        }
        On(.tearDown) { context in
            if context.configuration["stays"] == true { throw PluginError("stubborn", "Nobody leaves.") }
        }
    }
}

@_cdecl("plugin_module_entry")
public func entry() -> UnsafePointer<plugin_module> { Visits.export() }

final class Ticket: Sendable {
    let number = visits.load(ordering: .relaxed)
}

let visits = Atomic(0)
/// Callbacks that are never released, which the tests detect.
let kept = Mutex<[Callback]>([])
