internal import PluginABI
internal import Synchronization

/// The objects that a host in this process has given to people and to programs at its socket, by their handles: the host
/// holds them for those who cannot.
final class KeptObjects: Sendable {
    /// More of them push out the oldest.
    static let limit = 1000

    private struct State {
        var objects: [UInt64: Object] = [:]
        /// The oldest first.
        var order: [UInt64] = []
    }

    private let state = Mutex(State())

    /// Keeps what is in a result, and returns the result.
    func keep(_ result: Value) -> Value {
        switch result {
        case .object(let object): keep(object)
        case .list(let values): for value in values { _ = keep(value) }
        case .map(let values): for value in values.values { _ = keep(value) }
        default: break
        }
        return result
    }

    private func keep(_ object: Object) {
        let oldest: Object? = state.withLock { state in
            if state.objects.updateValue(object, forKey: object.handle) == nil { state.order.append(object.handle) }
            guard state.order.count > Self.limit else { return nil }
            return state.objects.removeValue(forKey: state.order.removeFirst())
        }
        withExtendedLifetime(oldest) {}  // Let go of without the lock: its module may be called.
    }

    /// - Throws: `unknownObject`.
    func object(_ handle: Int) throws(PluginError) -> Object {
        let object = state.withLock { $0.objects[UInt64(bitPattern: Int64(handle))] }
        guard let object else {
            throw PluginError(
                .unknownObject,
                "There is no object \(handle) here. Objects that calls have returned are kept by the host that runs, for "
                    + "its prompt and its socket, until they are released (or \(Self.limit) others have come).")
        }
        return object
    }

    /// - Throws: `unknownObject`.
    func release(_ handle: Int) throws(PluginError) {
        let object = try object(handle)
        state.withLock { state in
            state.objects[object.handle] = nil
            state.order.removeAll { $0 == object.handle }
        }
    }
}
