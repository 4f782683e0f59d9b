import CPluginABI
import Glibc
import PluginABI

/// Everything that can be called by name, immutable: an open-addressing table from target and action to the endpoint.
final class Table: @unchecked Sendable {
    // The slots are written in init only, hence @unchecked Sendable.

    /// The modules that it serves, in their order; it keeps them alive.
    let generations: [Generation]
    /// What the names lead to, for errors and lists.
    let targets: [String: TargetEntry]
    /// Whether the host has been shut down.
    let isStopped: Bool
    /// What was added to the modules' routes, and taken away from them.
    let routes: Routes
    /// Every route, in no order.
    let allRoutes: [RouteEntry]
    /// The route files whose routes do not stand, and why.
    let refusedRouteFiles: [String: PluginError]
    let routeTable: RouteTable<RouteEntry>
    /// By name; of each the one that serves first.
    let services: [String: [ServiceEntry]]
    /// The program's interceptors; nil where there are none.
    let interception: Interception?
    private let slots: UnsafeMutableBufferPointer<Slot>

    struct TargetEntry {
        let generation: Generation
        let actions: [String: Endpoint]
    }

    private struct Slot {
        var hash: UInt64
        var target: plugin_string
        var action: plugin_string
        /// nil in a slot that is free.
        var endpoint: Unmanaged<Endpoint>?
    }

    init(
        _ generations: [Generation] = [], routes: Routes = Routes(), interception: Interception? = nil,
        isStopped: Bool = false
    ) {
        self.generations = generations
        self.interception = interception
        self.isStopped = isStopped
        self.routes = routes
        (allRoutes, refusedRouteFiles) = routes.standing(with: generations)
        routeTable = RouteTable(allRoutes.map { ($0.pattern, $0) })
        var targets: [String: TargetEntry] = [:]
        for generation in generations {
            for (name, actions) in generation.targets {
                targets[name] = TargetEntry(generation: generation, actions: actions)
            }
        }
        self.targets = targets
        services = ServiceEntry.byName(generations)
        let count = targets.values.reduce(0) { $0 + $1.actions.count }
        var capacity = 8
        while capacity < count * 2 { capacity *= 2 }
        slots = .allocate(capacity: capacity)
        slots.initialize(repeating: Slot(hash: 0, target: plugin_string(), action: plugin_string(), endpoint: nil))
        for generation in generations {
            for address in generation.addresses { insert(address) }
        }
    }

    deinit { slots.deallocate() }

    private func insert(_ address: Generation.Address) {
        let hash = Self.hash(address.target, address.action)
        var index = Int(truncatingIfNeeded: hash) & (slots.count - 1)
        while slots[index].endpoint != nil { index = (index + 1) & (slots.count - 1) }
        slots[index] = Slot(
            hash: hash, target: address.target, action: address.action,
            endpoint: .passUnretained(address.endpoint))
    }

    /// The endpoint of an action, if there is one. Never fails on any bytes.
    @inline(__always)
    func find(_ target: plugin_string, _ action: plugin_string) -> Unmanaged<Endpoint>? {
        let hash = Self.hash(target, action)
        var index = Int(truncatingIfNeeded: hash) & (slots.count - 1)
        while let endpoint = slots[index].endpoint {
            let slot = slots[index]
            if slot.hash == hash, slot.target == target, slot.action == action { return endpoint }
            index = (index + 1) & (slots.count - 1)
        }
        return nil
    }

    /// Eight bytes at a time, multiplied and folded. Names are checked when they are registered, so nobody chooses
    /// them to collide.
    @inline(__always)
    private static func hash(_ target: plugin_string, _ action: plugin_string) -> UInt64 {
        var hash: UInt64 = 0x9E37_79B9_7F4A_7C15
        mix(target, into: &hash)
        hash = hash &* 0xFF51_AFD7_ED55_8CCD
        mix(action, into: &hash)
        return hash ^ hash >> 32
    }

    @inline(__always)
    private static func mix(_ string: plugin_string, into hash: inout UInt64) {
        guard let start = UnsafeRawPointer(string.bytes) else { return }
        let count = Int(truncatingIfNeeded: string.count)
        var offset = 0
        while offset &+ 8 <= count {
            let word = start.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            hash = (hash ^ word) &* 0x9FB2_1C65_1E98_DF25
            hash ^= hash >> 29
            offset &+= 8
        }
        var rest: UInt64 = UInt64(truncatingIfNeeded: count)
        while offset < count {
            rest = rest << 8 | UInt64(start.load(fromByteOffset: offset, as: UInt8.self))
            offset &+= 1
        }
        hash = (hash ^ rest) &* 0x9FB2_1C65_1E98_DF25
        hash ^= hash >> 29
    }
}

extension plugin_string {
    /// The same bytes.
    @inline(__always)
    static func == (left: plugin_string, right: plugin_string) -> Bool {
        left.count == right.count && (left.count == 0 || memcmp(left.bytes, right.bytes, Int(left.count)) == 0)
    }
}
