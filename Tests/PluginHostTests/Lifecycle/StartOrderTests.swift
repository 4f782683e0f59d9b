import PluginABI
import PluginFile
import Testing

@testable import PluginHost

/// The order in which modules start, and which modules cannot start.
@Suite struct StartOrderTests {
    /// Modules in words: `B basic 5 offers S@1.2.0 needs A@^1.0 wants C`, where a number is the priority.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let modules: [String]
        let present: [String]
        let order: String
        let blocked: String

        init(
            _ promise: String, _ modules: String..., besides present: String..., start order: String,
            waiting blocked: String = ""
        ) {
            (testDescription, self.modules, self.present) = (promise, modules, present)
            (self.order, self.blocked) = (order, blocked)
        }
    }

    static let cases: [Case] = [
        Case("no modules", start: ""),
        Case("names decide last", "C", "A", "B", start: "A B C"),
        Case("basic ones come first", "A", "B basic", "C", "D basic", start: "B D A C"),
        Case("a higher priority comes first within a level", "A", "B 5", "C -1", "D basic -9", start: "D B A C"),
        Case("a requirement comes first", "A needs B", "B", start: "B A"),
        Case("a requirement takes precedence over levels", "A", "B basic needs A", "C basic", start: "C A B"),
        Case("a requirement takes precedence over priorities", "A", "B 9 needs A", start: "A B"),
        Case("a chain of requirements", "A needs B", "B needs C", "C needs D", "D", start: "D C B A"),
        Case("two require one", "A needs C", "B needs C", "C", start: "C A B"),
        Case("a missing requirement", "A needs X", "B", start: "B", waiting: "A"),
        Case("a dependent of a waiting module waits too", "A needs B", "B needs X", "C", start: "C", waiting: "A B"),
        Case("an unacceptable version", "A needs B@^2.0.0", "B", start: "B", waiting: "A"),
        Case("an acceptable version", "A needs B@>=1.0", "B", start: "B A"),
        Case("a circular requirement", "A needs B", "B needs A", "C", start: "C", waiting: "A B"),
        Case(
            "a circular requirement and a dependent of it", "A needs B", "B needs A", "C needs A", start: "",
            waiting: "A B C"),
        Case("a requirement that serves already", "A needs B", besides: "B", start: "A"),
        Case(
            "a requirement that serves already in another version", "A needs B@^2.0.0", besides: "B", start: "",
            waiting: "A"),
        Case("an optional requirement comes first", "A wants B", "B", start: "B A"),
        Case("a missing optional requirement is not waited for", "A wants X", "B", start: "A B"),
        Case(
            "an optional requirement that waits is not waited for", "A wants B", "B needs X", start: "A",
            waiting: "B"),
        Case("an optional requirement of another version is not waited for", "A wants B@^2.0.0", "B", start: "A B"),
        Case("two circular optional requirements", "A wants B", "B wants A", start: "A B"),
        Case("an optional requirement that requires its dependent", "A wants B", "B needs A", start: "A B"),
        Case("a service", "A needs service S@>=1.2", "B offers S@1.2.0", start: "B A"),
        Case("a service of another version", "A needs service S@^2.0.0", "B offers S@1.2.0", start: "B", waiting: "A"),
        Case(
            "one of two services is acceptable", "A needs service S@^2.0.0", "B offers S@1.2.0", "C offers S@2.1.0",
            start: "B C A"),
        Case("a module is not a service of its name", "A needs service B", "B", start: "B", waiting: "A"),
    ]

    @Test(arguments: cases) func `Modules start in the expected order`(_ the: Case) throws {
        let outlines = try the.modules.map(outline)
        var present = Provisions()
        for module in the.present { present.add(try outline(module)) }
        for numbers in [Array(outlines.indices), outlines.indices.reversed()] {
            let given = numbers.map { outlines[$0] }
            let order = StartOrder(given, besides: present)
            #expect(order.starting.map { given[$0].name }.joined(separator: " ") == the.order)
            #expect(order.blocked.map { given[$0].name }.joined(separator: " ") == the.blocked)
        }
    }

    @Test func `A module that is refused when its turn comes blocks those that require it`() throws {
        let outlines = try ["A", "B needs A", "C"].map(outline)
        let order = StartOrder(outlines) { outlines[$0].name != "A" }
        #expect(order.starting == [2] && order.blocked == [0, 1])
    }

    private func outline(_ text: String) throws -> ModuleOutline {
        var words = text.split(separator: " ").map(String.init)[...]
        let name = words.removeFirst()
        var (level, priority, requirements, services) = ("normal", 0, [String](), [String]())
        func versioned(_ word: String) -> (name: String, version: String?) {
            let parts = word.split(separator: "@", maxSplits: 1).map(String.init)
            return (parts[0], parts.count > 1 ? parts[1] : nil)
        }
        while let word = words.popFirst() {
            switch word {
            case "needs", "wants":
                let isService = words.first == "service"
                if isService { words.removeFirst() }
                let (subject, version) = versioned(words.removeFirst())
                requirements.append(
                    #"{"\#(isService ? "service" : "module")": "\#(subject)", "optional": \#(word == "wants")"#
                        + (version.map { #", "version": "\#($0)"}"# } ?? "}"))
            case "offers":
                let (service, version) = versioned(words.removeFirst())
                services.append(#"{"name": "\#(service)", "version": "\#(version ?? "1.0.0")", "target": "T"}"#)
            default:
                if let number = Int(word) { priority = number } else { level = word }
            }
        }
        let json = """
            {"name": "\(name)", "version": "1.0.0", "level": "\(level)", "priority": \(priority),
             "requires": [\(requirements.joined(separator: ","))], "services": [\(services.joined(separator: ","))],
             "targets": [{"name": "T", "actions": []}]}
            """
        return try Array(json.utf8).withUnsafeBytes { ModuleOutline(try ModuleManifest(parsing: $0, abiMinor: 0)) }
    }
}
