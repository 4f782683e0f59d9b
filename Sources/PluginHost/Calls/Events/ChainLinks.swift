import PluginABI
import PluginFile

/// A handler in the chain of parents to which an event can be passed.
enum ChainLink: Sendable {
    case object(Object, Endpoint)
    case module(target: String, Endpoint)
    case program(ChainHandlers.Body)

    /// The handler in messages.
    var title: String {
        switch self {
        case .object(_, let endpoint), .module(_, let endpoint): endpoint.title
        case .program: "the program"
        }
    }

    /// The name of the module; `nil` for the program.
    var module: String? {
        switch self {
        case .object(_, let endpoint), .module(_, let endpoint): endpoint.generation.sourceName
        case .program: nil
        }
    }
}

/// The handlers of an event, from its origin up to the program: objects, the module, the program. Each is looked up
/// when the previous one has passed the event on.
///
/// The chain is finite: an object cannot be above itself, and a parent without a holder ends the objects' part.
struct ChainLinks: Sequence, IteratorProtocol, Sendable {
    private let event: String
    private let action: String
    private let module: String
    private let program: Generation
    /// The next object to look at. It is retained, so a handler that closes its own page does not end the chain.
    private var object: Object?
    /// The handlers after the objects; `nil` while there are objects left.
    private var rest: ArraySlice<ChainLink>?

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
        while let present = object {
            object = parent(of: present)
            if let endpoint = ObjectTable.contents(of: present.handle).0.actions[action] {
                return .object(present, endpoint)
            }
        }
        if rest == nil { rest = (moduleLinks + programLinks)[...] }
        return rest?.popFirst()
    }

    private func parent(of object: Object) -> Object? {
        let handle = ObjectTable.parent(of: object.handle)
        guard handle != 0, ObjectTable.retain(handle) else { return nil }
        defer { _ = ObjectTable.release(handle) }
        return Object(retaining: handle, host: program.hostTable)
    }

    /// The module in the generation that serves now: the first of its targets, in the order of the manifest, that
    /// handles the event.
    private var moduleLinks: [ChainLink] {
        guard !module.isEmpty,
            let generation = program.calls.registry.table.generations.first(where: { $0.name == module }),
            let targets = generation.manifest?.targets
        else { return [] }
        return targets.lazy.compactMap { target in
            generation.targets[target.name]?[action].map { .module(target: target.name, $0) }
        }.prefix(1).map(\.self)
    }

    private var programLinks: [ChainLink] {
        program.core.chainHandlers.handlers(of: event).map { .program($0.body) }
    }
}
