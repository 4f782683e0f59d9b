import PluginABI

/// Objects of one type that still have holders, and therefore keep their generation in use.
public struct HeldObjects: Sendable, Hashable, CustomStringConvertible {
    /// The module that made the objects; `nil` for objects and callbacks of the program.
    public let module: String?
    /// The name of the type in the manifest; `callback` for closures that were passed as values.
    public let type: String
    /// The number of objects.
    public let count: Int
    /// The modules that hold them, sorted; `nil` stands for the program. Empty if only the host holds them, on
    /// behalf of a call or of an isolated module.
    public let holders: [String?]

    /// The objects and their holders, in words: `2 × Cursor, held by Clerk and the program`.
    public var description: String {
        let names = holders.isEmpty ? ["the host"] : holders.map { $0 ?? "the program" }
        let others = names.dropLast().joined(separator: ", ")
        return "\(count) × \(type.shortened), held by \(others.isEmpty ? "" : "\(others) and ")\(names.last!)"
    }

    /// Advice about objects that are held for too long.
    package static let advice =
        "A holder releases an object by dropping its last Object or Callback (in Swift) or with object_release (in C)."
}

extension HeldObjects {
    /// Counts the objects with holders by module and type, for the types that `isIncluded` accepts. Looks at every
    /// object of the process.
    static func all(where isIncluded: (ObjectTypeEntry) -> Bool) -> [HeldObjects] {
        struct Key: Hashable { let module: String?, type: String }
        var found: [Key: (count: Int, holders: Set<String?>)] = [:]
        ObjectTable.forEachLive { type, holders in
            guard isIncluded(type) else { return }
            let key = Key(module: type.generation.sourceName, type: type.name)
            found[key, default: (0, [])].count += 1
            found[key]!.holders.formUnion(holders.map(\.sourceName))
        }
        return found.map { key, objects in
            HeldObjects(
                module: key.module, type: key.type, count: objects.count,
                holders: objects.holders.sorted { ($0 ?? "~") < ($1 ?? "~") })
        }
        .sorted { ($0.module ?? "", $0.type) < ($1.module ?? "", $1.type) }
    }
}
