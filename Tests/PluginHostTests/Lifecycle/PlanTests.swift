import CPluginABI
import Foundation
import PluginABI
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

/// Which file of each module serves, and what happens to the others.
@Suite struct PlanTests {
    /// Files in words, `a.so A 1.0.0 #7 needs B route a://b service S:1.0.0:5 targets T S`, where `#7` is the content
    /// and `:5` the priority of the service. `a.so broken A 1.0.0` is a file that could not be started,
    /// `a.so library B 1.0.0` a library that the module B needs, `a.so program A 1.0.0` a module of the program, and
    /// `event E` or `async-event E` a subscription.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let files: [String]
        let present: [String]
        let serving: String
        let verdicts: String
        let leaving: String

        init(
            _ promise: String, _ files: String..., besides present: String..., serves serving: String,
            verdicts: String = "", leaves leaving: String = ""
        ) {
            (testDescription, self.files, self.present) = (promise, files, present)
            (self.serving, self.verdicts, self.leaving) = (serving, verdicts, leaving)
        }
    }

    static let cases: [Case] = [
        Case("An empty folder serves nothing", serves: ""),
        Case("A file serves", "a.so A 1.0.0", serves: "a.so", verdicts: "a.so:serves"),
        Case(
            "The highest version serves", "a.so A 1.9.0", "b.so A 1.10.0", serves: "b.so",
            verdicts: "a.so:superseded b.so:serves"),
        Case(
            "Of equal contents the first name serves", "b.so A 1.0.0 #1", "a.so A 1.0.0 #1", serves: "a.so",
            verdicts: "a.so:serves b.so:superseded"),
        Case(
            "Of equal versions with different contents the first name serves, and the other is refused",
            "b.so A 1.0.0 #1", "a.so A 1.0.0 #2", serves: "a.so", verdicts: "a.so:serves b.so:refused"),
        Case(
            "A target belongs to the first module by name", "a.so B 1.0.0 targets T", "b.so A 1.0.0 targets T",
            serves: "b.so", verdicts: "a.so:refused b.so:serves"),
        Case(
            "A module that serves keeps its target", "a.so A 1.0.0 targets T", "b.so B 1.0.0 #5 targets T",
            besides: "b.so B 1.0.0 #5 targets T", serves: "b.so", verdicts: "a.so:refused b.so:serves"),
        Case(
            "A lower version serves if it claims nothing already used", "a.so A 1.0.0", "b.so A 2.0.0 targets T",
            "c.so B 1.0.0 #5 targets T", besides: "c.so B 1.0.0 #5 targets T", serves: "a.so c.so",
            verdicts: "a.so:serves b.so:refused c.so:serves"),
        Case(
            "A route belongs to the first module by name, whatever its groups are called",
            "a.so B 1.0.0 route app://x/:id", "b.so A 1.0.0 route app://x/:key", serves: "b.so",
            verdicts: "a.so:refused b.so:serves"),
        Case(
            "Routes that only overlap are both served", "a.so A 1.0.0 route app://x/:id",
            "b.so B 1.0.0 route app://x/y",
            serves: "a.so b.so", verdicts: "a.so:serves b.so:serves"),
        Case(
            "A module that serves keeps its route", "a.so A 1.0.0 route app://x", "b.so B 1.0.0 #5 route app://x",
            besides: "b.so B 1.0.0 #5 route app://x", serves: "b.so", verdicts: "a.so:refused b.so:serves"),
        Case(
            "A route that the next version of a module no longer has is free", "a.so A 2.0.0 #2",
            "b.so B 1.0.0 route app://x", besides: "a.so A 1.0.0 #1 route app://x", serves: "a.so b.so",
            verdicts: "a.so:serves b.so:serves", leaves: "A"),
        Case(
            "A lower version serves if the route of the higher one is taken", "a.so B 1.0.0",
            "b.so B 2.0.0 route app://x",
            "c.so A 1.0.0 route app://x", serves: "c.so a.so", verdicts: "a.so:serves b.so:refused c.so:serves"),
        Case(
            "A service of one version and priority belongs to the first module by name",
            "a.so B 1.0.0 service S:1.0.0:5",
            "b.so A 1.0.0 service S:1.0.0:5", serves: "b.so", verdicts: "a.so:refused b.so:serves"),
        Case(
            "A service can have several versions", "a.so A 1.0.0 service S:1.0.0:0", "b.so B 1.0.0 service S:1.1.0:0",
            serves: "a.so b.so", verdicts: "a.so:serves b.so:serves"),
        Case(
            "A version of a service can have several priorities", "a.so A 1.0.0 service S:1.0.0:0",
            "b.so B 1.0.0 service S:1.0.0:1", serves: "a.so b.so", verdicts: "a.so:serves b.so:serves"),
        Case(
            "A module that serves keeps its service", "a.so A 1.0.0 service S:1.0.0:0",
            "b.so B 1.0.0 #5 service S:1.0.0:0", besides: "b.so B 1.0.0 #5 service S:1.0.0:0", serves: "b.so",
            verdicts: "a.so:refused b.so:serves"),
        Case(
            "A module with one claim that is taken makes none of its claims", "a.so A 1.0.0 targets T",
            "b.so B 1.0.0 route app://x service S:1.0.0:0 targets T", "c.so C 1.0.0 route app://x service S:1.0.0:0",
            serves: "a.so c.so", verdicts: "a.so:serves b.so:refused c.so:serves"),
        Case(
            "A module whose requirement is unmet waits", "a.so A 1.0.0 needs X", "b.so B 1.0.0", serves: "b.so",
            verdicts: "a.so:waits b.so:serves"),
        Case(
            "A lower version serves if it can start", "a.so A 1.0.0", "b.so A 2.0.0 needs X", serves: "a.so",
            verdicts: "a.so:serves b.so:waits"),
        Case(
            "A requirement starts first", "a.so A 1.0.0 needs B", "b.so B 1.0.0", serves: "b.so a.so",
            verdicts: "a.so:serves b.so:serves"),
        Case("A module whose file is gone leaves", besides: "a.so A 1.0.0", serves: "", leaves: "A"),
        Case(
            "A renamed file is the same module", "b.so A 1.0.0 #1", besides: "a.so A 1.0.0 #1", serves: "b.so",
            verdicts: "b.so:serves"),
        Case(
            "A higher version replaces", "a.so A 2.0.0 #2", besides: "a.so A 1.0.0 #1", serves: "a.so",
            verdicts: "a.so:serves", leaves: "A"),
        Case(
            "A lower version in the same file replaces", "a.so A 0.9.0 #2", besides: "a.so A 1.0.0 #1",
            serves: "a.so", verdicts: "a.so:serves", leaves: "A"),
        Case(
            "A successor that waits replaces nothing", "a.so A 2.0.0 #2 needs X", besides: "a.so A 1.0.0 #1",
            serves: "a.so", verdicts: "a.so:waits"),
        Case(
            "A successor that failed replaces nothing", "a.so broken A 2.0.0 #2", besides: "a.so A 1.0.0 #1",
            serves: "a.so"),
        Case(
            "If a successor fails, the module goes on serving, and not a lower version of another file",
            "a.so broken A 3.0.0 #3", "b.so A 1.0.0 #1", besides: "a.so A 2.0.0 #2", serves: "a.so",
            verdicts: "b.so:superseded"),
        Case(
            "If a successor waits, the module goes on serving, and not a lower version of another file",
            "a.so A 3.0.0 #3 needs X", "b.so A 1.0.0 #1", besides: "a.so A 2.0.0 #2", serves: "a.so",
            verdicts: "a.so:waits b.so:superseded"),
        Case(
            "If a successor fails, a higher version of another file serves",
            "a.so broken A 4.0.0 #4", "b.so A 3.0.0 #3", "c.so A 1.0.0 #1", besides: "a.so A 2.0.0 #2", serves: "b.so",
            verdicts: "b.so:serves c.so:superseded", leaves: "A"),
        Case(
            "A lower version in the same file replaces, and not a still lower one of another file",
            "a.so A 1.5.0 #3", "b.so A 1.0.0 #1", besides: "a.so A 2.0.0 #2", serves: "a.so",
            verdicts: "a.so:serves b.so:superseded", leaves: "A"),
        Case(
            "If the file of a module is another module's, another file serves",
            "a.so B 1.0.0 #3", "b.so A 1.0.0 #1", besides: "a.so A 2.0.0 #2", serves: "b.so a.so",
            verdicts: "a.so:serves b.so:serves", leaves: "A"),
        Case(
            "If the file of a module is a library of another one, another file serves",
            "a.so library B 1.0.0", "b.so A 1.5.0 #1", besides: "a.so A 2.0.0 #2", serves: "b.so",
            verdicts: "b.so:serves", leaves: "A"),
        Case(
            "A copy whose name comes first is no reason to start again", "a.so A 1.0.0 #1", "b.so A 1.0.0 #1",
            besides: "b.so A 1.0.0 #1", serves: "b.so", verdicts: "a.so:superseded b.so:serves"),
        Case(
            "Another module in the same file is refused", "a.so B 1.0.0 #2", besides: "a.so A 1.0.0 #1",
            serves: "a.so", verdicts: "a.so:refused"),
        Case(
            "Another module in the same file serves if the first one has moved", "a.so B 1.0.0 #2", "b.so A 1.0.0 #1",
            besides: "a.so A 1.0.0 #1", serves: "b.so a.so", verdicts: "a.so:serves b.so:serves"),
    ]

    @Test(arguments: cases)
    func `The serving modules depend on the files and on what serves already`(_ the: Case) throws {
        let host = PluginHost(.init(folders: []))
        defer { host.shutdown() }
        let records = try the.files.map(record)
        let present = try the.present.map { words in
            let file = try record(words)
            let module = try #require(file.module)
            return Served(Generation(module, core: host.core, configuration: [:]), module, path: file.path)
        }
        var serving = Serving()
        serving.replace(by: present)
        let generations = present.map(\.generation)
        let routes = Routes().with(generations, without: [], adding: generations.flatMap(\.routes), as: nil)
        for records in [records, records.reversed()] {
            let plan = Plan(records, serving, nil, routes)
            #expect(plan.serving.map(\.path).joined(separator: " ") == the.serving)
            #expect(plan.leaving.map(\.name).joined(separator: " ") == the.leaving)
            let verdicts = plan.verdicts.map { "\($0.key.path):\(Self.word($0.value))" }.sorted()
            #expect(verdicts.joined(separator: " ") == the.verdicts)
            // A module that serves already and continues to serve is not started again.
            let going = plan.serving.compactMap { $0.served?.name }
            #expect(Set(going) == Set(present.map(\.name)).subtracting(plan.leaving.map(\.name)))
        }
    }

    private static func word(_ verdict: FileRecord.Verdict) -> String {
        switch verdict {
        case .undecided: "undecided"
        case .serves: "serves"
        case .starts: "starts"
        case .superseded: "superseded"
        case .waits: "waits"
        case .refused: "refused"
        case .ended: "ended"
        }
    }

    /// A library whose bytes are used for all files; their digests distinguish them.
    private static let library = Result {
        let path = try CModule().build()
        let bytes = try Data(contentsOf: URL(filePath: path))
        return (path, image: try bytes.withUnsafeBytes { try ELFImage(reading: $0, path: path) })
    }

    func record(_ text: String) throws -> FileRecord {
        var words = text.split(separator: " ").map(String.init)[...]
        let path = words.removeFirst()
        let isBroken = words.first == "broken"
        let isLibrary = words.first == "library"
        let isOfProgram = words.first == "program"
        if isBroken || isLibrary || isOfProgram { words.removeFirst() }
        let (name, version) = (words.removeFirst(), words.removeFirst())
        var content = UInt64(bitPattern: Int64(text.hashValue))
        var (requirements, targets, services, routes) = ([String](), [String](), [String](), [RouteEntry]())
        var (events, functions) = ([String](), [String: plugin_function]())
        while let word = words.popFirst() {
            if word.hasPrefix("#") {
                content = UInt64(word.dropFirst())!
            } else if word == "needs" {
                requirements.append(#"{"module": "\#(words.removeFirst())"}"#)
            } else if word == "needs-service" {
                requirements.append(#"{"service": "\#(words.removeFirst())"}"#)
            } else if word == "route" {
                routes.append(
                    try RouteEntry(
                        RoutePattern(words.removeFirst()), to: "\(name)/open", name: nil, summary: "", defaults: [:],
                        owner: .module(name)))
            } else if word == "service" {
                let parts = words.removeFirst().split(separator: ":")
                targets = [name]
                services.append(
                    """
                    {"name": "\(parts[0])", "version": "\(parts[1])", "priority": \(parts[2]), "target": "\(name)"}
                    """)
            } else if word == "event" || word == "async-event" {
                let event = words.removeFirst()
                events.append(#"{"name": "\#(event)", "async": \#(word == "async-event")}"#)
                functions["!\(event)"] = plugin_function(
                    name: .immortal("!\(event)"), invoke: { _, _, _, _ in }, data: nil)
            } else if word == "targets" {
                targets += words
                words = []
            }
        }
        let json = """
            {"name": "\(name)", "version": "\(version)", "requires": [\(requirements.joined(separator: ","))],
             "services": [\(services.joined(separator: ","))], "events": [\(events.joined(separator: ","))],
             "targets": [\(targets.map { #"{"name": "\#($0)", "actions": []}"# }.joined(separator: ","))]}
            """
        let manifest = try Array(json.utf8).withUnsafeBytes { try ModuleManifest(parsing: $0, abiMinor: 0) }
        let (library, image) = try Self.library.get()
        let staged =
            isOfProgram
            ? StagedFile.program
            : StagedFile(
                path: library, original: path, identity: .none, digest: content, size: 1, image: image,
                folder: nil, libraries: [])
        // The description is only read, and all its bytes are zero.
        let description = UnsafeMutablePointer<plugin_module>.allocate(capacity: 1)
        description.initialize(to: plugin_module())
        let module = LoadedModule(
            staged, toolchain: "", abiMinor: 0, manifest: manifest, routes: routes, description: description,
            functions: functions, factories: [:])
        if isLibrary { return FileRecord(path: path, folder: "", identity: nil, content: .library(of: name)) }
        let error = PluginError(.activationFailed, "It was not started.")
        return FileRecord(
            path: path, folder: "", identity: nil,
            content: isBroken ? .failed(error, module) : .module(.init(module: module)))
    }
}
