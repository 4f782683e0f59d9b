import PluginABI
import Testing

@testable import PluginFile

@Suite struct TypeComparisonTests {
    /// A manifest with an action.
    ///
    /// - Parameters:
    ///   - values: Its records and enumerations: `R(a: int, b: list<R>?); E(x, y)`.
    ///   - action: The types of the parameter and the result: `int R`.
    ///   - service: The version of a service that consists of the action.
    private func manifest(_ values: String, _ action: String, service: String? = nil) throws -> ModuleManifest {
        let types = values.split(separator: ";").map { value in
            let parts = value.split { "()".contains($0) }
            let isRecord = value.contains(":")
            let entries = (parts.count > 1 ? parts[1] : "").split(separator: ",").map { entry in
                let words = entry.split(separator: ":").map { $0.trimmed }
                return isRecord ? "{\"name\": \"\(words[0])\", \"type\": \"\(words[1])\"}" : "\"\(words[0])\""
            }
            return "{\"name\": \"\(parts[0].trimmed)\", \"\(isRecord ? "fields" : "cases")\": "
                + "[\(entries.joined(separator: ", "))]}"
        }
        let words = action.split(separator: " ")
        let service = service.map {
            ", \"services\": [{\"name\": \"S\", \"version\": \"\($0)\", \"target\": \"T\"}]"
        }
        let text = """
            {"name": "M", "version": "1.2.3", "values": [\(types.joined(separator: ", "))]\(service ?? ""), "targets": [
              {"name": "T", "actions": [
                {"name": "act", "parameters": [{"name": "p", "type": "\(words[0])"}], "result": "\(words[1])"}]}],
             "types": [{"name": "O"}, {"name": "Q"}]}
            """
        return try Bytes(text.utf8).withUnsafeBytes { try ModuleManifest(parsing: $0, abiMinor: 0) }
    }

    @Test(arguments: [
        // Results.
        ("R(a: int)", "R(a: int)", "int R", []),
        ("R(a: int, b: int)", "R(a: int)", "int list<R>", ["changed the record R: it has no field “b” (breaking)"]),
        (
            "R(a: int)", "R(a: string)", "int map<R>?",
            ["changed the record R: it has “a” of type string instead of int (breaking)"]
        ),
        (
            "R(a: int)", "R(a: int?)", "int R",
            ["changed the record R: it has “a” of type int? instead of int (breaking)"]
        ),
        ("R(a: int?)", "R(a: int)", "int R", ["changed the record R: it has “a” of type int instead of int?"]),
        ("R(a: int)", "R(a: int, b: int)", "int R", ["changed the record R: it has the field “b”"]),
        ("E(x)", "E(x, y)", "int E", [#"changed the enumeration E: it has the case "y" (breaking)"#]),
        ("E(x, y)", "E(x)", "int E", [#"changed the enumeration E: it has no case "y""#]),
        // Parameters.
        ("R(a: int)", "R(a: int, b: int)", "R int", ["changed the record R: it requires “b” (breaking)"]),
        ("R(a: int)", "R(a: int, b: int?)", "R int", ["changed the record R: it has the field “b”"]),
        ("R(a: int)", "R(a: int, b: any)", "R int", ["changed the record R: it has the field “b”"]),
        (
            "R(a: int?)", "R(a: int)", "R int",
            ["changed the record R: it has “a” of type int instead of int? (breaking)"]
        ),
        ("R(a: int)", "R(a: double)", "R int", ["changed the record R: it has “a” of type double instead of int"]),
        ("E(x, y)", "E(x)", "E int", [#"changed the enumeration E: it has no case "y" (breaking)"#]),
        ("E(x)", "E(x, y)", "list<E> int", [#"changed the enumeration E: it has the case "y""#]),
        // Both: the larger weight counts.
        ("R(a: int)", "R(a: int, b: int?)", "R R", ["changed the record R: it has the field “b”"]),
        ("E(x)", "E(x, y)", "E E", [#"changed the enumeration E: it has the case "y" (breaking)"#]),
        // A name may denote another kind of type.
        ("R(a: int)", "R(x)", "int R", ["changed T/act: it returns string instead of map (breaking)"]),
        // Types inside types, and cycles.
        (
            "R(a: S, b: list<R>); S(c: list<R>, d: int)", "R(a: S, b: list<R>); S(c: list<R>, d: bool)", "R O",
            ["changed the record S: it has “d” of type bool instead of int (breaking)"]
        ),
        // A type that no action refers to is not part of the interface.
        ("R(a: int)", "R(a: string)", "int int", []),
    ])
    func `records and enumerations are compared by what callers do with them`(
        old: String, new: String, action: String, changes: [String]
    ) throws {
        let comparison = try ManifestComparison(from: manifest(old, action), to: manifest(new, action))
        #expect(comparison.changes.map(\.description) == changes)
    }

    @Test(arguments: [
        ("string R", "E map", ["takes E as “p” instead of string", "returns map instead of R"]),
        ("E map", "string R", ["takes string as “p” instead of E", "returns R instead of map"]),
        (
            "list list<int>", "list<int> list",
            ["takes list<int> as “p” instead of list", "returns list instead of list<int>"]
        ),
        ("int any", "int R?", ["returns R? instead of any"]),
        ("int R?", "int any", ["returns any instead of R?"]),
        ("int R?", "int R", ["returns R instead of R?"]),
        ("int R", "int R?", ["returns R? instead of R (breaking)"]),
        ("int list<int>", "int list<string>", ["returns list<string> instead of list<int> (breaking)"]),
        ("int O", "int object", ["returns object instead of O"]),
        ("int O", "int Q", ["returns Q instead of O (breaking)"]),
        ("int R", "int P", ["returns P instead of R"]),
    ])
    func `types are compared beyond their kinds`(old: String, new: String, details: [String]) throws {
        let values = "R(a: int); P(a: int); E(x)"
        let comparison = try ManifestComparison(from: manifest(values, old), to: manifest(values, new))
        #expect(comparison.changes.map { $0.detail + ($0.weight == .breaking ? " (breaking)" : "") } == details)
    }

    @Test func `a service does not serve its callers if a record that it returns breaks them`() throws {
        let old = try manifest("R(a: list<S>); S(b: int, c: int)", "int R", service: "1.1.0")
        func comparison(_ values: String, _ action: String, _ version: String) throws -> ManifestComparison {
            try ManifestComparison(from: old, to: manifest(values, action, service: version))
        }
        let broken = try comparison("R(a: list<S>); S(b: int)", "int R", "1.2.0")
        #expect(broken.serviceProblems.count == 1)
        #expect(broken.serviceProblems.first?.contains("could fail: the record S has no field “c”.") == true)
        let other = try comparison("R(a: list<S>); S(b: int, c: int)", "int list<R>", "1.2.0")
        #expect(other.serviceProblems.first?.contains("is of type list, not map") == true)
        let silent = try comparison("R(a: list<S>); S(b: int, c: int, d: int)", "int R", "1.1.0")
        #expect(silent.serviceProblems.first?.hasSuffix("its version ought to be 1.2.0 or higher.") == true)
        #expect(try comparison("R(a: list<S>); S(b: int, c: int, d: int)", "int R", "1.2.0").serviceProblems.isEmpty)
    }

    @Test func `the number of pairs that are compared is limited`() throws {
        // Two cycles whose lengths have no common divisor: without a limit, each record would be compared with each.
        func cycle(_ count: Int) -> String {
            (0..<count).map { "R\($0)(next: list<R\(($0 + 1) % count)>)" }.joined(separator: ";")
        }
        let (old, new) = (try manifest(cycle(97), "int R0"), try manifest(cycle(89), "int R0"))
        var types = TypeComparison(from: old.values, to: new.values)
        var reached: Set<TypeComparison.Pair> = []
        #expect(types.weight(from: .record("R0"), to: .record("R0"), .returned, &reached) == nil)
        types.complete()
        #expect(types.pairs.count == TypeComparison.pairsMax)
        #expect(types.changes.count { $0.weight == .breaking } == 1)
    }
}

extension Substring {
    fileprivate var trimmed: String { String(drop { $0 == " " }) }
}
