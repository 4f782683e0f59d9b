import PluginABI
import Testing

@testable import PluginFile

@Suite struct ManifestComparisonTests {
    private func parse(_ text: String) throws -> ModuleManifest {
        var text = text
        return try text.withUTF8 { try ModuleManifest(parsing: UnsafeRawBufferPointer($0), abiMinor: 0) }
    }

    private func manifest(_ version: String, _ action: String?, more: String = "") throws -> ModuleManifest {
        let actions = action.map { "{\"name\": \"act\"\($0)}" } ?? ""
        return try parse(
            """
            {"name": "M", "version": "\(version)"\(more), "targets": [{"name": "T", "actions": [\(actions)]}]}
            """)
    }

    /// The additional members of an action before and after, the changes, and the version that follows 1.2.3.
    private static let ofActions: [(String, String, [String], String)] = [
        (#", "summary": "a""#, #", "summary": "b""#, [], "1.2.3"),
        (#", "result": "int""#, #", "result": "string""#, ["returns string instead of int"], "2.0.0"),
        ("", #", "result": "string""#, ["returns string instead of any"], "1.3.0"),
        ("", #", "async": true"#, ["is asynchronous"], "2.0.0"),
        (#", "async": true"#, "", ["is synchronous"], "1.3.0"),
        (#", "remote": true"#, "", ["is no longer remote"], "2.0.0"),
        ("", #", "remote": true, "demands": ["login"]"#, ["is remote"], "1.3.0"),
        (#", "idempotent": true"#, "", ["is no longer idempotent"], "2.0.0"),
        ("", #", "idempotent": true"#, ["is idempotent"], "1.3.0"),
        (
            #", "remote": true"#, #", "remote": true, "demands": ["login"]"#, ["demands “login” of other programs"],
            "2.0.0"
        ),
        (#", "rest": true"#, "", ["takes no undeclared parameters"], "2.0.0"),
        (parameters("a:int!"), parameters("b:int!"), ["has no parameter “a”", "requires “b”"], "2.0.0"),
        (parameters("a:int!"), parameters("a:int!,b:int"), ["takes “b”"], "1.3.0"),
        (
            parameters("a:int!"), parameters("b:int,a:int!"), ["takes “a” at position 2 instead of 1", "takes “b”"],
            "2.0.0"
        ),
        (parameters("a:int"), parameters("a:int!"), ["requires “a”"], "2.0.0"),
        (parameters("a:int!"), parameters("a:int"), ["does not require “a”"], "1.3.0"),
        (parameters("a:int!"), parameters("a:double!"), ["takes double as “a” instead of int"], "1.3.0"),
        (parameters("a:double!"), parameters("a:int!"), ["takes int as “a” instead of double"], "2.0.0"),
    ]

    /// `a:int!,b:string` as the parameters of an action; `!` means required.
    private static func parameters(_ text: String) -> String {
        let all = text.split(separator: ",").map { parameter in
            let words = parameter.split(separator: ":")
            return "{\"name\": \"\(words[0])\", \"type\": \"\(words[1].filter { $0 != "!" })\", "
                + "\"required\": \(parameter.hasSuffix("!"))}"
        }
        return ", \"parameters\": [\(all.joined(separator: ", "))]"
    }

    @Test(arguments: ofActions)
    func `A change of an action asks for a version`(old: String, new: String, details: [String], version: String) throws
    {
        let comparison = try ManifestComparison(from: manifest("1.2.3", old), to: manifest("1.2.3", new))
        #expect(comparison.changes.map(\.detail) == details)
        #expect(comparison.changes.allSatisfy { $0.subject == "T/act" && $0.kind == .changed })
        #expect(comparison.requiredVersion.description == version)
        #expect((comparison.problem == nil) == details.isEmpty)
    }

    @Test(arguments: [
        ("", #", "routes": [{"pattern": "app://a", "action": "T/act"}]"#, "added the route app://a", "1.3.0"),
        (
            #", "routes": [{"pattern": "app://a", "action": "T/act"}]"#, "", "removed the route app://a (breaking)",
            "2.0.0"
        ),
        (
            #", "routes": [{"pattern": "app://a", "action": "T/act", "method": "PUT"}]"#,
            #", "routes": [{"pattern": "app://a", "action": "T/act"}]"#,
            "changed the route PUT app://a: it answers every method", "1.3.0"
        ),
        (
            #", "routes": [{"pattern": "app://a", "action": "T/act"}]"#,
            #", "routes": [{"pattern": "app://a", "action": "T/act"}, "#
                + #"{"pattern": "app://b", "action": "T/act", "method": "GET"}]"#,
            "added the route GET app://b", "1.3.0"
        ),
        ("", #", "types": [{"name": "O"}]"#, "added the object type O", "1.3.0"),
        (#", "events": [{"name": "e"}]"#, "", "removed the subscription to e (breaking)", "2.0.0"),
        ("", #", "requires": [{"module": "N"}]"#, "added the requirement of the module N", "1.3.0"),
        ("", #", "permissions": [{"network": true}]"#, "added the permission to use the network", "1.3.0"),
        ("", #", "stateless": true"#, #"changed "stateless": it is true now"#, "1.3.0"),
        ("", #", "hooks": ["setUp"]"#, #"changed "hooks": it lists setUp now"#, "1.2.4"),
        (
            #", "services": [{"name": "S", "version": "1.0.0", "target": "T"}]"#, "",
            "removed the service S 1.0.0 (breaking)", "2.0.0"
        ),
    ])
    func `Each part of a manifest is compared`(old: String, new: String, text: String, version: String) throws {
        let comparison = try ManifestComparison(
            from: manifest("1.2.3", "", more: old), to: manifest("1.2.3", "", more: new))
        #expect(comparison.changes.map(\.description) == [text])
        #expect(comparison.requiredVersion.description == version)
    }

    @Test(arguments: [
        ("1.2.3", "2.0.0", true), ("1.2.3", "1.3.0", false), ("1.2.3", "2.0.0-beta.1", true), ("0.4.1", "0.5.0", true),
        ("0.4.1", "0.4.2", false), ("2.0.0-beta.1", "2.0.0-beta.2", true), ("2.0.0-beta.1", "2.0.0-beta.1", false),
        ("1.2.3", "1.2.2", false),
    ])
    func `A version says that something breaks, or does not`(old: String, new: String, isRight: Bool) throws {
        let comparison = try ManifestComparison(from: manifest(old, ""), to: manifest(new, nil))
        #expect(comparison.changes.map(\.description) == ["removed T/act (breaking)"])
        #expect((comparison.problem == nil) == isRight, "\(comparison.problem ?? "")")
    }

    @Test func `A service has a version of its own`() throws {
        func offering(_ version: String, _ action: String, module: String) throws -> ModuleManifest {
            try manifest(
                module, action,
                more: #", "services": [{"name": "S", "version": "\#(version)", "target": "T"}]"#)
        }
        let old = try offering("1.1.0", Self.parameters("a:int!"), module: "1.0.0")
        let broken = try ManifestComparison(
            from: old, to: offering("1.2.0", Self.parameters("b:int!"), module: "2.0.0"))
        #expect(broken.problem == nil)
        #expect(broken.serviceProblems.first?.contains("Its version ought to be 2.0.0 or higher.") == true)
        let silent = try ManifestComparison(
            from: old, to: offering("1.1.0", Self.parameters("a:int!,b:int"), module: "1.1.0"))
        #expect(silent.serviceProblems.first?.hasSuffix("its version ought to be 1.2.0 or higher.") == true)
        let right = try ManifestComparison(
            from: old, to: offering("1.2.0", Self.parameters("a:int!,b:int"), module: "1.1.0"))
        #expect(right.problem == nil && right.serviceProblems.isEmpty)
    }

    @Test func `Two modules are not compared`() throws {
        #expect(throws: PluginError.self) {
            try ManifestComparison(
                from: parse(#"{"name": "M", "version": "1.0.0"}"#), to: parse(#"{"name": "N", "version": "1.0.0"}"#))
        }
    }
}
