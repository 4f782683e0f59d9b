package import PluginABI

/// Objects of one type that somebody holds.
package struct HeldObjects: Sendable {
    /// The module whose objects they are; empty for the program.
    package let module: String
    /// The type as the manifest calls it; `callback` for closures that were passed as values.
    package let type: String
    /// How many there are.
    package let count: Int
}

extension PluginHost {
    /// The module that an object belongs to, and its type, as in ``HeldObjects``.
    package func origin(of object: Object) -> (module: String, type: String) {
        let type = ObjectTable.contents(of: object.handle).0
        return (type.generation.name, type.name)
    }

    /// What somebody holds of this host's modules, and of the program's callbacks. Looks at every object of the process:
    /// for tests and diagnosis.
    package var heldObjects: [HeldObjects] {
        struct Key: Hashable { let module, type: String }
        var counts: [Key: Int] = [:]
        ObjectTable.forEachHeld { type in
            guard type.generation.dispatcher === dispatcher else { return }
            // The handlers of events that the program has subscribed to are no values that somebody was given.
            guard type.generation !== dispatcher.program || type.name == "callback" else { return }
            counts[Key(module: type.generation.name, type: type.name), default: 0] += 1
        }
        return counts.map { HeldObjects(module: $0.module, type: $0.type, count: $1) }
            .sorted { ($0.module, $0.type) < ($1.module, $1.type) }
    }
}
