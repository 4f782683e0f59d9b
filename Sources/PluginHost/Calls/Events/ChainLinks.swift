import PluginABI
import PluginFile

/// A handler in the chain of parents to which an event can be passed.
enum ChainLink: Sendable {
    case object(Object, action: String, Endpoint)
    case module(target: String, action: String, Endpoint)
    case program(ChainHandlers.Body)

    /// The handler as messages name it.
    var title: String {
        switch self {
        case .object(_, _, let endpoint), .module(_, _, let endpoint): endpoint.title
        case .program: "the program"
        }
    }

    /// The name of the module; `nil` for the program.
    var module: String? {
        switch self {
        case .object(_, _, let endpoint), .module(_, _, let endpoint): endpoint.generation.sourceName
        case .program: nil
        }
    }
}

/// The handlers of an event, from its origin up to the program: objects, the module, the program. The handlers of an
/// object are looked up only when the object below has passed the event on: first the handler of the event itself, then
/// those of prefixes of its name, longer prefixes first.
///
/// The chain is finite: no object can be above itself, and the objects end at a parent without a holder.
struct ChainLinks: Sequence, IteratorProtocol, Sendable {
    private let event: String
    private let action: String
    private let module: String
    private let program: Generation
    /// The next object to look at. It is retained, so a handler that closes its own page does not end the chain.
    private var object: Object?
    /// The handlers that were looked up but not called yet.
    private var ready: ArraySlice<ChainLink> = []
    /// Whether the handlers after the objects were looked up.
    private var isPastObjects = false

    /// - Parameter arguments: The arguments of ``EventBubbling/endpoint(of:isAsync:)``.
    init(_ arguments: UnsafePointer<plugin_value>, _ program: Generation) {
        let host = program.hostTable!
        object = Value(copying: arguments[0], host: host).object
        module = Value(copying: arguments[1], host: host).string ?? ""
        event = Value(copying: arguments[2], host: host).string ?? ""
        action = handlerName(event)
        self.program = program
    }

    mutating func next() -> ChainLink? {
        while ready.isEmpty {
            if let present = object {
                object = parent(of: present)
                ready = links(of: present)[...]
            } else {
                if isPastObjects { return nil }
                isPastObjects = true
                ready = (moduleLinks + programLinks)[...]
            }
        }
        return ready.popFirst()
    }

    private func links(of object: Object) -> [ChainLink] {
        let type = ObjectTable.contents(of: object.handle).0
        let named = type.actions[action].map { ChainLink.object(object, action: action, $0) }
        return (named.map { [$0] } ?? [])
            + type.prefixHandlers.filter { $0.handles(event) && $0.action != action }
            .map { .object(object, action: $0.action, $0.endpoint) }
    }

    private func parent(of object: Object) -> Object? {
        let handle = ObjectTable.parent(of: object.handle)
        guard handle != 0, ObjectTable.retain(handle) else { return nil }
        defer { _ = ObjectTable.release(handle) }
        return Object(retaining: handle, host: program.hostTable)
    }

    /// The handlers in the module's serving generation: that of the event itself in the first target that has one, in
    /// the order of the manifest, then those of matching prefixes.
    private var moduleLinks: [ChainLink] {
        guard !module.isEmpty,
            let generation = program.calls.registry.table.generations.first(where: { $0.name == module }),
            let targets = generation.manifest?.targets
        else { return [] }
        let named = targets.lazy.compactMap { target in
            generation.targets[target.name]?[action].map { ChainLink.module(target: target.name, action: action, $0) }
        }
        return named.prefix(1).map(\.self)
            + generation.prefixHandlers.filter { $0.handles(event) && $0.action != action }
            .map { .module(target: $0.owner, action: $0.action, $0.endpoint) }
    }

    private var programLinks: [ChainLink] {
        program.core.chainHandlers.handlers(of: event).map { .program($0.body) }
    }
}
