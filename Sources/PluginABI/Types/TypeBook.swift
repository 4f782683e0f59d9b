/// The types of a module, derived from its Swift types when a tool asks for them.
///
/// Code of the module's author runs here: `init(from:)`, `allCases`, `rawValue`. A host that loads the module does not
/// derive anything, since that code could trap.
final class TypeBook {
    /// A type as the manifest names it.
    struct Named {
        var text: String
        var kind: Value.Kind

        init(_ text: String, _ kind: Value.Kind) { (self.text, self.kind) = (text, kind) }
        init(_ kind: Value.Kind) { (text, self.kind) = (kind.rawValue, kind) }
    }

    static let depthMax = 12
    static let fieldsMax = 256
    static let casesMax = 1000
    static let typesMax = 1000

    /// The records and enumerations as JSON, for `values`.
    private(set) var declarations: [String] = []
    /// The parts that have no type, with the reasons.
    private(set) var notes: [String] = []
    /// Whether a type that refers to itself has turned out not to be a record. Everything must then be derived again.
    private(set) var isInvalid = false
    /// The types that are not records.
    private(set) var refused: Set<ObjectIdentifier>

    private var known: [ObjectIdentifier: Named] = [:]
    private var names: Set<String>
    private let objects: [(type: ObjectIdentifier, name: String)]

    /// The types that are being derived, the outermost first.
    private enum Step {
        case record(ObjectIdentifier, name: String)
        case collection
    }
    private var path: [Step] = []
    /// The types whose declarations are being read.
    private var resolving: Set<ObjectIdentifier> = []
    private var referenced: Set<ObjectIdentifier> = []

    /// The types whose code must not run, by their full names.
    private let without: Set<String>
    /// Called with the full name of a type before its code runs.
    private let begin: (String) -> Void

    init(
        objects: [(type: ObjectIdentifier, name: String)], without: [String] = [],
        refused: Set<ObjectIdentifier> = [], _ begin: @escaping (String) -> Void
    ) {
        (self.objects, self.without, self.refused, self.begin) = (objects, Set(without), refused, begin)
        names = Set(objects.map(\.name) + Value.Kind.allCases.map(\.rawValue))
    }

    /// Announces that code of a type is about to run. Returns false if it must not.
    private func begins(_ type: Any.Type) -> Bool {
        let name = String(reflecting: type)
        guard !without.contains(name) else {
            if crashing.insert(ObjectIdentifier(type)).inserted {
                notes.append(
                    "\(type) has no type: its code crashes while the type is derived, in init(from:), allCases, "
                        + "rawValue or valueType. Make it ValueTyped to declare what it is.")
            }
            return false
        }
        begin(name)
        return true
    }

    private var crashing: Set<ObjectIdentifier> = []

    /// Returns the name, in the manifest, of the type of a parameter or result.
    ///
    /// - Parameter kind: The kind that the type declares.
    func name(of type: Any.Type, declared kind: Value.Kind) -> String {
        let named = name(of: type)
        return kind == .any || kind == named.kind ? named.text : kind.rawValue
    }

    /// Returns the manifest's type for values of a Swift type.
    func name(of type: Any.Type) -> Named {
        let identifier = ObjectIdentifier(type)
        if let named = known[identifier] { return named }
        if let named = reference(to: identifier) { return named }
        // A type whose declaration refers to the type itself can be anything.
        guard path.count < Self.depthMax, !resolving.contains(identifier) else { return Named(.any) }
        let named = derive(type)
        // Inside a record, the result for any other type may refer to that record, so it is not kept.
        if path.isEmpty || declaredNames[identifier] != nil { known[identifier] = named }
        return named
    }

    /// Returns the name of a record that is being derived or, outside lists and maps, its kind; `nil` for other types.
    private func reference(to type: ObjectIdentifier) -> Named? {
        var isInCollection = false
        for step in path.reversed() {
            switch step {
            case .collection: isInCollection = true
            case .record(type, let name):
                guard isInCollection else { return Named(.map) }
                referenced.insert(type)
                return Named(name, .map)
            case .record: break
            }
        }
        return nil
    }

    private func derive(_ type: Any.Type) -> Named {
        if let declared = type as? any ValueTyped.Type, begins(type) {
            resolving.insert(ObjectIdentifier(type))
            defer { resolving.remove(ObjectIdentifier(type)) }
            return name(of: declared.valueType, declaredBy: type)
        }
        if let type = type as? any AnyOptional.Type { return optional(name(of: type.wrapped)) }
        if let type = type as? any AnyCollection.Type { return collection(type.isMap) { name(of: type.element) } }
        if let type = type as? any AnyTypedObject.Type {
            let names = objects.filter { $0.type == type.instanceType }.map(\.name)
            return names.count == 1 ? Named(names[0], .object) : Named(.object)
        }
        if let type = type as? any (RawRepresentable & CaseIterable).Type { return enumeration(type) }
        if let type = type as? any RawRepresentable.Type { return rawValue(of: type) }
        if let type = type as? any ValueConvertible.Type, !(type is any ValueCodable.Type) { return Named(type.kind) }
        if let type = type as? any Decodable.Type { return recorded(type) }
        if let type = type as? any ActionParameter.Type { return Named(type.kind) }
        if let type = type as? any ActionResult.Type { return Named(type.resultKind) }
        return Named(.any)
    }

    private func optional(_ wrapped: Named) -> Named {
        let isOpen = wrapped.text.hasSuffix("?") || wrapped.text == "any" || wrapped.text == "null"
        return Named(isOpen ? wrapped.text : wrapped.text + "?", .any)
    }

    private func collection(_ isMap: Bool, _ element: () -> Named) -> Named {
        path.append(.collection)
        let element = element()
        path.removeLast()
        let kind: Value.Kind = isMap ? .map : .list
        return element.text == "any" ? Named(kind) : Named("\(kind.rawValue)<\(element.text)>", kind)
    }

    // MARK: Declared types

    private func name(of declared: ValueType, declaredBy type: Any.Type) -> Named {
        switch declared.form {
        case .kind(let kind): return Named(kind)
        case .optional(let wrapped): return optional(name(of: wrapped, declaredBy: type))
        case .list(let element): return collection(false) { name(of: element, declaredBy: type) }
        case .map(let element): return collection(true) { name(of: element, declaredBy: type) }
        case .type(let other): return name(of: other)
        case .cases(let values):
            return declareCases(type, values.map { (nil, $0) }) ?? Named(.string)
        case .record(let fields):
            return record(type) { fields.map { ($0.0, name(of: $0.1, declaredBy: type)) } } ?? Named(.map)
        }
    }

    // MARK: Enumerations

    private func rawValue<T: RawRepresentable>(of type: T.Type) -> Named { name(of: T.RawValue.self) }

    private func enumeration<T: RawRepresentable & CaseIterable>(_ type: T.Type) -> Named {
        let raw = name(of: T.RawValue.self)
        guard raw.kind == .string || raw.kind == .int, begins(type) else { return raw }
        // The description of such a type may be any text, not only the name of the case.
        let hasNames = !(type is any CustomStringConvertible.Type)
        var cases: [(name: String?, value: Value)] = []
        for element in T.allCases.prefix(Self.casesMax + 1) {
            guard let value = (element.rawValue as? any ValueConvertible).flatMap({ try? $0.value }) else { return raw }
            cases.append((hasNames ? String(describing: element) : nil, value))
        }
        guard !cases.isEmpty, cases.count <= Self.casesMax else { return raw }
        return declareCases(type, cases) ?? raw
    }

    private func declareCases(_ type: Any.Type, _ cases: [(name: String?, value: Value)]) -> Named? {
        guard let name = reserve(type) else { return nil }
        var entry = ManifestObject(name: name)
        entry.add(
            "cases",
            cases.map { name, value in
                guard let name, !name.isEmpty, .string(name) != value else { return value.json }
                return Value.map(["name": .string(name), "value": value]).json
            })
        declarations.append(entry.json)
        return Named(name, cases.first?.value.kind ?? .string)
    }

    // MARK: Records

    /// Declares a record.
    ///
    /// - Parameter fields: Derives the fields; `nil` if the type is not a record.
    private func record(_ type: Any.Type, _ fields: () -> [(String, Named)]?) -> Named? {
        let identifier = ObjectIdentifier(type)
        guard !refused.contains(identifier), let name = reserve(type) else { return nil }
        path.append(.record(identifier, name: name))
        let fields = fields()
        path.removeLast()
        guard let fields else {
            refused.insert(identifier)
            declaredNames[identifier] = nil
            names.remove(name)
            if referenced.contains(identifier) { isInvalid = true }
            return nil
        }
        var entry = ManifestObject(name: name)
        entry.add(
            "fields",
            fields.map { name, type in
                var entry = ManifestObject(name: name)
                entry.add("type", .string(type.text))
                return entry.json
            })
        declarations.append(entry.json)
        return Named(name, .map)
    }

    private func recorded<T: Decodable>(_ type: T.Type) -> Named {
        guard begins(type) else { return Named(.any) }
        let recording = TypeRecording(of: type, in: self)
        guard let form = recording.form else { return Named(.any) }
        switch form {
        case .single(let other): return name(of: other)
        case .unkeyed: return Named(.list)
        case .keyed:
            let named = record(type) {
                let fields = recording.fields
                guard let problem = recording.problem else {
                    return fields.map { ($0.key, $0.isOptional ? optional(name(of: $0.type)) : name(of: $0.type)) }
                }
                if !recording.isEnumeration { notes.append("\(type) stays a map: \(problem)") }
                return nil
            }
            return named ?? Named(.map)
        }
    }

    // MARK: Names

    private var declaredNames: [ObjectIdentifier: String] = [:]

    /// Returns a name for a record or enumeration; `nil` if there are too many.
    private func reserve(_ type: Any.Type) -> String? {
        guard declaredNames.count < Self.typesMax else { return nil }
        // `Shop.Draft` in the module `App` is `Draft` or, if that name is taken, `Shop.Draft`.
        let short = Self.word(String(describing: type))
        let long = Self.word(String(reflecting: type).split(separator: ".").dropFirst().joined(separator: "."))
        var name = names.contains(short) && !long.isEmpty ? long : short
        var number = 2
        while !names.insert(name).inserted {
            name = "\(short)_\(number)"
            number += 1
        }
        declaredNames[ObjectIdentifier(type)] = name
        return name
    }

    /// Returns the name of a Swift type in characters that a manifest allows.
    private static func word(_ name: String) -> String {
        var word = ""
        for letter in name.utf8.prefix(200) {
            switch letter {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"),
                UInt8(ascii: "."):
                word.unicodeScalars.append(UnicodeScalar(letter))
            case UInt8(ascii: "0")...UInt8(ascii: "9"): word.unicodeScalars.append(UnicodeScalar(letter))
            default: if !word.isEmpty, word.last != "_" { word += "_" }
            }
        }
        while word.last == "_" { word.removeLast() }
        let isNameless = word.first.map { $0.isNumber || $0 == "." } ?? true
        return isNameless ? "Type" + word : word
    }
}

// MARK: Types that contain others

protocol AnyOptional {
    static var wrapped: Any.Type { get }
}

extension Optional: AnyOptional {
    static var wrapped: Any.Type { Wrapped.self }
}

protocol AnyCollection {
    static var isMap: Bool { get }
    static var element: Any.Type { get }
}

extension Array: AnyCollection {
    static var isMap: Bool { false }
    static var element: Any.Type { Element.self }
}

extension Set: AnyCollection {
    static var isMap: Bool { false }
    static var element: Any.Type { Element.self }
}

extension Dictionary: AnyCollection {
    // Codable writes other dictionaries as lists of keys and values.
    static var isMap: Bool { Key.self == String.self || Key.self == Int.self }
    static var element: Any.Type { isMap ? Value.self : PluginABI.Value.self }
}
