import Foundation
import PluginABI
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

/// Service files in the folder of a host that watches it.
@Suite(.timeLimit(.minutes(30))) struct ServiceFileTests {
    private let host: TestHost

    init() throws {
        host = try TestHost()
        try CModule().build(into: host.plugins, as: "good.so")
    }

    private func remove(_ name: String) throws { try FileManager.default.removeItem(atPath: "\(host.plugins)/\(name)") }

    /// The answer of a service; nil if the service does not exist.
    private func answer(_ name: String, from version: String? = nil) -> String? {
        try? host.host.service(name, from: version).perform("answer").string
    }

    private var problems: [String] { host.host.problems.map(\.message) }

    @Test func `a service leads to its target, in JSON and in a property list`() async throws {
        try host.put(
            #"{"One": {"target": "Good", "version": "1.2.0", "priority": 3, "singleton": true, "summary": "First"}}"#,
            "x.services.json")
        try host.put(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <plist version="1.0"><dict><key>Two</key><array>
              <dict><key>target</key><string>Good</string><key>version</key><string>2.0.0</string></dict>
              <dict><key>target</key><string>Good</string><key>version</key><string>1.0.0</string></dict>
            </array></dict></plist>
            """, "y.services.plist")
        try await host.startAside()
        #expect(problems == [])
        #expect(answer("One") == "yes" && answer("Two", from: "1.5.0") == "yes" && answer("Two", from: "3.0.0") == nil)
        let one = try host.host.serviceInfo("One")
        #expect(one.module == "Good" && one.target == "Good" && one.version == "1.2.0" && one.priority == 3)
        #expect(one.isSingleton && one.summary == "First")
        #expect(one.file?.hasSuffix("/x.services.json") == true)
        #expect(try host.host.service("Two").info.file?.hasSuffix("/y.services.plist") == true)
        #expect(host.host.services.map(\.version) == ["1.2.0", "2.0.0", "1.0.0"])
    }

    @Test(arguments: ["BHService.plist", "x.services.plist"])
    func `the property list of BeeHive is a service file, whose classes are targets`(name: String) async throws {
        try host.put(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0"><array>
              <dict><key>service</key><string>HomeServiceProtocol</string><key>impl</key><string>Good</string></dict>
              <dict><key>service</key><string>Later</string><key>impl</key><string>Mine</string></dict>
            </array></plist>
            """, name)
        try await host.startAside()
        #expect(problems == [])
        #expect(answer("HomeServiceProtocol", from: "1.0.0") == "yes" && answer("Later") == nil)
        #expect(try host.host.serviceInfo("HomeServiceProtocol").version == "1.0.0")
        try host.host.register(mine())
        #expect(answer("Later") == "mine")
        try host.put("<plist><array/></plist>", name)
        #expect(await becomesTrue { answer("Later") == nil })
        #expect(problems == [])
    }

    @Test func `a service file in another format is a problem that names the accepted ones, until it is removed`()
        async throws
    {
        try host.put("S:\n  target: Good\n", "x.services.yaml")
        for name in ["x.services.json~", "x.services.json.bak", "services.txt", "x.services"] { try host.put("", name) }
        try await host.startAside()
        #expect(host.host.problems.map(\.code) == [.invalidServiceFile])
        for word in ["/x.services.yaml is not read", ".services.json", ".services.plist"] {
            #expect(problems.first?.contains(word) == true, "\(problems)")
        }
        #expect(rename("\(host.plugins)/x.services.yaml", "\(host.plugins)/x.services.json") == 0)
        #expect(await becomesTrue { problems.first?.contains("x.services.json is not valid JSON") == true })
        #expect(problems.count == 1)
    }

    @Test func `files can be added, changed and removed while the host runs`() async throws {
        try await host.startAside()
        #expect(answer("S") == nil)
        try host.put(#"{"S": {"target": "Good", "version": "1.0.0"}}"#, "x.services.json")
        #expect(await becomesTrue { answer("S") == "yes" })
        try host.put(#"{"T": {"target": "Good", "version": "1.0.0"}}"#, "x.services.json")
        #expect(await becomesTrue { answer("T") == "yes" && answer("S") == nil })
        try host.put(#"{"T": {"target": "Good"}}"#, "x.services.json")
        #expect(await becomesTrue { problems.count == 1 })
        #expect(problems[0].contains("x.services.json, service T: the key \"version\" is missing"))
        #expect(answer("T") == "yes")
        try remove("x.services.json")
        #expect(await becomesTrue { answer("T") == nil })
        #expect(problems == [])
        #expect(
            await becomesTrue { host.changes.contains { "\($0)" == "0 services in \(host.plugins)/x.services.json" } })
    }

    @Test func `a service exists as long as its target does`() async throws {
        try host.put(#"{"S": {"target": "Mine", "version": "1.0.0"}}"#, "x.services.json")
        try await host.startAside()
        #expect(answer("S") == nil && problems == [])
        try host.host.register(mine())
        #expect(answer("S") == "mine")
        try host.host.unregister("Mine")
        #expect(answer("S") == nil)
    }

    @Test func `a service of a file has instances like one of a manifest`() async throws {
        try host.put(
            #"{"Shared": {"target": "Counter", "version": "1.0.0", "singleton": true}, "#
                + #""Own": {"target": "Counter", "version": "1.0.0"}}"#, "x.services.json")
        try copyFile(built("libModuleA.so"), to: "\(host.plugins)/a.so")
        try await host.startAside()
        func count(_ service: ServiceHandle) throws -> Int? { try service.perform("add", ["n": 1]).int }
        let (one, two) = (try host.host.service("Own"), try host.host.service("Own"))
        #expect(try count(one) == 1 && count(one) == 2 && count(two) == 1)
        #expect(try count(host.host.service("Shared")) == 1 && count(host.host.service("Shared")) == 2)
    }

    private func mine(_ service: Service? = nil) -> Manifest {
        Manifest("Mine", version: "1.0.0") {
            Target("Mine") {
                Action("answer") { "mine" }
            }
            service ?? Service("Mine", version: "1.0.0", target: "Mine")
        }
    }

    @Test func `the program and manifests displace a file, which is used again as a whole after them`() async throws {
        let manifest = #""services": [{"name": "S", "version": "1.0.0", "target": "Good"}], "#
        try CModule(moreManifest: manifest).build(into: host.plugins, as: "good.so")
        let service = #"{"target": "Good", "version": "1.0.0"}"#
        try host.put("{\"S\": \(service), \"A\": \(service)}", "a.services.json")
        try host.put("{\"P\": \(service), \"B\": \(service)}", "b.services.json")
        try await host.startAside()
        #expect(answer("S") == "yes" && answer("A") == nil && answer("P") == "yes" && answer("B") == "yes")
        let refused = try #require(problems.first)
        for word in ["a.services.json", "module Good", "S 1.0.0"] { #expect(refused.contains(word)) }

        try host.host.register(mine(Service("P", version: "1.0.0", target: "Mine")))
        #expect(answer("P") == "mine" && answer("B") == nil)
        let displaced = try #require(problems.last)
        #expect(problems.count == 2 && displaced.contains("module Mine ((program))"))
        #expect(await becomesTrue { host.changes.contains { $0.isProblem && "\($0)" == displaced } })
        try host.host.unregister("Mine")
        #expect(answer("P") == "yes" && answer("B") == "yes" && problems.count == 1)
    }

    @Test func `of two files, the one whose name sorts first has a service, whichever was added first`() async throws {
        let service = #"{"target": "Good", "version": "1.0.0"}"#
        try host.put("{\"S\": \(service), \"B\": \(service)}", "b.services.json")
        try await host.startAside()
        #expect(answer("B") == "yes")
        try host.put("{\"S\": \(service), \"A\": \(service)}", "a.services.json")
        #expect(await becomesTrue { answer("A") == "yes" })
        #expect(answer("B") == nil && problems.count == 1)
        #expect(problems[0].contains("a.services.json") && problems[0].contains("b.services.json"))
        try host.put("{\"S\": {\"target\": \"Good\", \"version\": \"2.0.0\"}, \"B\": \(service)}", "b.services.json")
        #expect(await becomesTrue { answer("B") == "yes" })
        #expect(problems == [] && answer("S", from: "2.0.0") == "yes")
    }

    @Test func `a singleton of a target that makes an instance for each call is refused`() async throws {
        let target = Manifest("M", version: "1.0.0") {
            Target("PerCall", make: { 1 }) {
                Action("answer", .instance()) { number in number }
            }
            .instancePerCall()
        }
        try host.host.register(target)
        try host.put(#"{"S": {"target": "PerCall", "version": "1.0.0", "singleton": true}}"#, "x.services.json")
        try await host.startAside()
        #expect(problems.count == 1 && problems[0].contains("S is a singleton"))
    }

    @Test(
        arguments: [
            ("", "is empty"), ("3", "must be an object that maps services"),
            (#"[{"service": "S", "impl": "T"}, "T"]"#, "service number 2: a JSON object is expected, not a string"),
            (#"[{"service": "S"}]"#, "service number 1: the key \"impl\" is missing"),
            (#"[{"service": "S", "impl": "T", "version": "1.0.0"}]"#, "unknown key \"version\""),
            (#"[{"service": "S", "impl": "T"}, {"service": "S", "impl": "U"}]"#, "S 1.0.0 is declared twice"),
            (#"{"S": 3}"#, "service S: a JSON object"),
            (#"{"S": {"version": "1.0.0"}}"#, "\"target\" is missing"),
            (#"{"S": {"target": "T", "version": "one"}}"#, "\"one\" is not a semantic version"),
            (#"{"S": {"target": "T", "version": "1.0.0", "prority": 1}}"#, "Did you mean “priority”?"),
            (#"{"S": {"target": "T", "version": "1.0.0", "name": "T"}}"#, "unknown key \"name\""),
            (#"{"a b": {"target": "T", "version": "1.0.0"}}"#, "the name \"a b\" is not allowed"),
            (
                #"{"S": {"target": "T", "version": "1.0.0"}, "S": {"target": "T", "version": "2.0.0"}}"#,
                "has the name “S” twice"
            ),
            (
                #"{"S": [{"target": "T", "version": "1.0.0"}, {"target": "U", "version": "1.0.0"}]}"#,
                "S 1.0.0 is declared twice with the priority 0"
            ),
            ("{\"a\": " + String(repeating: "[", count: 200), "nested more than 128"),
            (
                "{\"\u{7f}",
                "is not "
                    + "valid JSON"
            ),
        ])
    func `the error of an invalid file states the position`(text: String, message: String) {
        let error = #expect(throws: PluginError.self) {
            try ServiceFile.parse(Array(text.utf8), path: "/p/x.services.json")
        }
        #expect(error?.code == .invalidServiceFile)
        #expect(error?.message.contains("/p/x.services.json") == true)
        #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
    }
}
