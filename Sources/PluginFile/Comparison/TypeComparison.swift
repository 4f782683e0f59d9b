import PluginABI

/// A comparison of the types in two manifests, including the records and enumerations that they refer to.
///
/// Each pair of records or enumerations is compared once, no matter how many others refer to it.
struct TypeComparison {
    /// How callers use the values of a type.
    enum Use: Hashable {
        /// Callers pass the values: the new type must accept what the old one did.
        case passed
        /// Callers get the values: values of the new type must be values of the old one, too.
        case returned
    }

    /// Two records or enumerations, the new one in the place of the old one.
    struct Pair: Hashable {
        let old: String
        let new: String
        let use: Use
    }

    /// The maximum number of pairs: more than two manifests of the maximum size have if the types keep their names.
    static let pairsMax = 4 * ValueTypes.countLimit

    private let old: ValueTypes
    private let new: ValueTypes
    /// The pairs in the order in which they were found.
    private(set) var pairs: [Pair] = []
    private var known: Set<Pair> = []
    /// The pairs that the fields of each compared pair refer to.
    private var references: [Pair: Set<Pair>] = [:]
    private var differences: [Pair: [(weight: ManifestChange.Weight, detail: String)]] = [:]
    private var compared = 0

    init(from old: ValueTypes, to new: ValueTypes) { (self.old, self.new) = (old, new) }

    /// Returns the weight of a change of a type; `nil` if it is the same, apart from the pairs that it refers to.
    ///
    /// - Parameters:
    ///   - isField: Whether the type is that of a field. Elsewhere, a manifest may state only the kind and leave out
    ///     the details, which is not a change.
    ///   - reached: Gets the pairs that the type refers to.
    mutating func weight(
        from old: DeclaredType, to new: DeclaredType, _ use: Use, isField: Bool = false, _ reached: inout Set<Pair>
    ) -> ManifestChange.Weight? {
        let isDetail = !isField && (old.isPlain || new.isPlain) && old.kind == new.kind
        let fits =
            switch use {
            case .passed: isDetail || self.fits(old, in: new, use, &reached)
            case .returned: isDetail || self.fits(new, in: old, use, &reached)
            }
        return fits ? (old == new ? nil : .addition) : .breaking
    }

    /// Returns whether each value of the type `part` is also a value of the type `whole`.
    private mutating func fits(
        _ part: DeclaredType, in whole: DeclaredType, _ use: Use, _ reached: inout Set<Pair>
    ) -> Bool {
        switch (part, whole) {
        case (_, .kind(.any)), (.kind(.null), .optional): return true
        case (.optional(let part), .optional(let whole)), (.list(let part), .list(let whole)),
            (.map(let part), .map(let whole)):
            return fits(part, in: whole, use, &reached)
        case (_, .optional(let whole)): return fits(part, in: whole, use, &reached)
        case (.object(let part), .object(let whole)): return part == whole
        case (.record(let part), .record(let whole)): return reach(part, whole, use, &reached)
        case (.enumeration(let part, let kind), .enumeration(let whole, let other)) where kind == other:
            return reach(part, whole, use, &reached)
        // One of the two states only the kind.
        case (.kind(let kind), _) where kind == whole.kind && kind != .any: return true
        case (_, .kind(let kind)) where kind == part.kind: return true
        // Every int is a double.
        case (_, .kind(.double)): return part.kind == .int && use == .passed
        default: return false
        }
    }

    /// Adds a pair to those to compare. Returns false if there are too many.
    private mutating func reach(_ part: String, _ whole: String, _ use: Use, _ reached: inout Set<Pair>) -> Bool {
        let pair =
            switch use {
            case .passed: Pair(old: part, new: whole, use: use)
            case .returned: Pair(old: whole, new: part, use: use)
            }
        if !known.contains(pair) {
            guard pairs.count < Self.pairsMax else { return false }
            known.insert(pair)
            pairs.append(pair)
        }
        reached.insert(pair)
        return true
    }

    /// Compares all pairs that were reached, and those that they refer to.
    mutating func complete() {
        while compared < pairs.count {
            compare(pairs[compared])
            compared += 1
        }
    }

    private mutating func compare(_ pair: Pair) {
        if let before = old.records[pair.old], let now = new.records[pair.new] {
            var reached: Set<Pair> = []
            differences[pair] = compare(before, now, pair.use, &reached)
            references[pair] = reached
        } else if case .enumeration(let before) = old[pair.old]?.form,
            case .enumeration(let now) = new[pair.new]?.form
        {
            differences[pair] = compare(before, now, pair)
        }
    }

    private mutating func compare(
        _ before: ValueTypes.Record, _ now: ValueTypes.Record, _ use: Use, _ reached: inout Set<Pair>
    ) -> [(ManifestChange.Weight, String)] {
        var differences: [(ManifestChange.Weight, String)] = []
        for field in before.fields {
            let name = "“\(field.name.shortened)”"
            guard let position = now.positions[field.name] else {
                differences.append((.breaking, "has no field \(name)"))
                continue
            }
            let type = now.fields[position].type
            if let weight = self.weight(from: field.type, to: type, use, isField: true, &reached) {
                differences.append((weight, "has \(name) of type \(type.instead(of: field.type))"))
            }
        }
        for field in now.fields where before.positions[field.name] == nil {
            let name = "“\(field.name.shortened)”"
            let isRequired = use == .passed && !field.type.canBeMissing
            differences.append(isRequired ? (.breaking, "requires \(name)") : (.addition, "has the field \(name)"))
        }
        return differences
    }

    private func compare(
        _ before: [ModuleManifest.ValueType.Case], _ now: [ModuleManifest.ValueType.Case], _ pair: Pair
    ) -> [(ManifestChange.Weight, String)] {
        let (known, present) = (old.cases[pair.old] ?? [], new.cases[pair.new] ?? [])
        let (less, more): (ManifestChange.Weight, ManifestChange.Weight) =
            pair.use == .passed ? (.breaking, .addition) : (.addition, .breaking)
        let removed = before.filter { !present.contains($0.value) }
        let added = now.filter { !known.contains($0.value) }
        return removed.map { (less, "has no case \($0.value.json.shortened)") }
            + added.map { (more, "has the case \($0.value.json.shortened)") }
    }
}

// MARK: - Findings

extension TypeComparison {
    /// Returns the name of a pair in messages.
    private func subject(_ pair: Pair) -> String {
        "the \(new.records[pair.new] == nil ? "enumeration" : "record") \(pair.new)"
    }

    /// The changes of records and enumerations. Those of types that callers both pass and get have the larger weight.
    var changes: [ManifestChange] {
        var changes: [ManifestChange] = []
        var positions: [[String]: Int] = [:]
        for pair in pairs {
            for (weight, detail) in differences[pair] ?? [] {
                let change = ManifestChange(kind: .changed, weight: weight, subject: subject(pair), detail: detail)
                let key = [change.subject, detail]
                if let position = positions[key] {
                    if changes[position].weight < weight { changes[position] = change }
                } else {
                    positions[key] = changes.count
                    changes.append(change)
                }
            }
        }
        return changes
    }

    /// Returns the pairs that have changed, or refer to one that has, each with the change: `the record Draft has no
    /// field “url”`.
    ///
    /// - Parameter least: The least weight of a change that counts.
    func causes(_ least: ManifestChange.Weight) -> [Pair: String] {
        var causes: [Pair: String] = [:]
        var next: [Pair] = []
        for pair in pairs {
            guard let change = differences[pair]?.first(where: { $0.weight >= least }) else { continue }
            causes[pair] = "\(subject(pair)) \(change.detail)"
            next.append(pair)
        }
        var referring: [Pair: [Pair]] = [:]
        for pair in pairs {
            for other in references[pair] ?? [] { referring[other, default: []].append(pair) }
        }
        while let pair = next.popLast() {
            for other in referring[pair] ?? [] where causes[other] == nil {
                causes[other] = causes[pair]
                next.append(other)
            }
        }
        return causes
    }
}

extension DeclaredType {
    /// The end of a sentence: `list<Draft> instead of list<string>`, or the kinds if the types have the same name.
    func instead(of old: DeclaredType) -> String {
        let (before, now) = (old.description, description)
        return before == now ? "\(kind.rawValue) instead of \(old.kind.rawValue)" : "\(now) instead of \(before)"
    }
}
