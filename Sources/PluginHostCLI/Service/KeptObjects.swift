internal import PluginABI
internal import Synchronization

/// The objects that calls from the prompt and the control socket have returned, by their handles. This object is their
/// holder, because these callers cannot hold references.
final class KeptObjects: Sendable {
    /// The maximum number of objects. Beyond it, the oldest object is released.
    static let limit = 1000

    private struct State {
        var objects: [UInt64: Object] = [:]
        /// The handles, oldest first.
        var order: [UInt64] = []
    }

    private let state = Mutex(State())

    /// Retains the objects in a result, and returns the result.
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
        withExtendedLifetime(oldest) {}  // Released outside the lock, because that may call its module.
    }

    /// - Throws: `unknownObject`.
    func object(_ handle: Int) throws(PluginError) -> Object {
        let object = state.withLock { $0.objects[UInt64(bitPattern: Int64(handle))] }
        guard let object else {
            throw PluginError(
                .unknownObject,
                "There is no object \(handle) here. A running host keeps the objects that calls from its prompt and its "
                    + "socket have returned until they are released, or \(Self.limit) newer ones were returned.")
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
