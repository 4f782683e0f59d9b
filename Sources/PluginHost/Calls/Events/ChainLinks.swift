import CPluginABI
import PluginABI
import PluginFile

/// Somebody whom an event that runs up the chain can be given to.
enum ChainLink: Sendable {
    case object(Object, Endpoint)
    case module(target: String, Endpoint)
    case program(ChainHandlers.Body)

    /// For people.
    var title: String {
        switch self {
        case .object(_, let endpoint), .module(_, let endpoint): endpoint.title
        case .program: "the program"
        }
    }

    /// The name of the module; nil for the program.
    var module: String? {
        switch self {
        case .object(_, let endpoint), .module(_, let endpoint): endpoint.generation.sourceName
        case .program: nil
        }
    }
}

/// Those who handle an event, from where it begins up to the program: objects, the module, the program. Each is looked for
/// when the one before has passed the event on.
///
/// There is an end: an object cannot be above itself, and a parent that nobody holds any more ends the objects' part.
struct ChainLinks: Sequence, IteratorProtocol, Sendable {
    private let event: String
    private let action: String
    private let module: String
    private let program: Generation
    /// The next object to look at. It is held, so that who closes its own page does not end the chain.
    private var object: Object?
    /// What comes after the objects; nil as long as there are some.
    private var rest: ArraySlice<ChainLink>?

    /// - Parameter arguments: As ``EventBubbling/endpoint(of:isAsync:)`` says.
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

    /// The module as it serves now: the first of its targets, as the manifest has them, that handles the event.
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
