import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// The interface of a service: which targets are checked against it, and what callers can use.
@Suite(.timeLimit(.minutes(30))) struct ServiceInterfaceTests {
    private let test: TestHost
    private var host: PluginHost { test.host }

    init() throws { test = try TestHost([]) }

    private static let find = ServiceAction(
        "find", .required("key", String.self), .optional("page", Int.self), result: String.self)

    /// A module with two targets: one with the action `find`, and one without it.
    private func module(_ name: String, _ services: Service...) -> Manifest {
        Manifest(name, version: "1.0.0") {
            Target(name) {
                Action("find", .required("key", String.self), .optional("page", Int.self)) { key, page in
                    "\(name) \(key) \(page ?? 1)"
                }
                Action("clear") { name }
                Action("notFound", .required("action", String.self), .required("parameters", Value.self)) {
                    action, _ -> Value in .string("no \(action)")
                }
            }
            Target("\(name)Without") {
                Action("clear") { name }
            }
            services
        }
    }

    private func refusal(_ manifest: Manifest) throws -> PluginError {
        try #require(#expect(throws: PluginError.self) { try host.register(manifest) })
    }

    // MARK: What fulfils an interface

    @Test(arguments: [
        (#"{"name": "other"}"#, "it has no action find"),
        (#"{"name": "find", "async": true, "parameters": [P, Q], "result": "string"}"#, "is asynchronous"),
        (#"{"name": "find", "parameters": [P], "result": "string"}"#, "its action find has no parameter page"),
        (#"{"name": "find", "parameters": [Q, P], "result": "string"}"#, "key at a position other than 1"),
        (
            #"{"name": "find", "parameters": [I, Q], "result": "string"}"#,
            "the parameter key of its action find is of type int, not string"
        ),
        (
            #"{"name": "find", "parameters": [P, R], "result": "string"}"#,
            "its action find requires the parameter page"
        ),
        (
            #"{"name": "find", "parameters": [P, Q, N], "result": "string"}"#,
            "its action find requires another parameter, n"
        ),
        (#"{"name": "find", "parameters": [P, Q], "result": "int"}"#, "is of type int, not string"),
        (#"{"name": "find", "parameters": [P, Q]}"#, "is of type any, not string"),
    ])
    func `A module whose target does not fulfil its service's interface is refused, with what is missing`(
        action: String, message: String
    ) throws {
        let error = try failure(action: action)
        #expect(error?.code == .invalidManifest)
        let words = "service S: the target T does not fulfil the interface of the service: "
        #expect(error?.message.contains(words) == true && error?.message.contains(message) == true, "\(error as Any)")
    }

    @Test(arguments: [
        #"{"name": "find", "parameters": [P, Q], "result": "string"}"#,
        #"{"name": "find", "parameters": [A, Q, M], "result": "string"}"#,
    ])
    func `A target may accept more than the interface declares`(action: String) throws {
        #expect(try failure(action: action) == nil)
    }

    /// Parameters by the letters that denote them.
    private static let parameters = [
        "P": #"{"name": "key", "type": "string", "required": true}"#, "Q": #"{"name": "page", "type": "int"}"#,
        "I": #"{"name": "key", "type": "int", "required": true}"#, "A": #"{"name": "key", "type": "any"}"#,
        "R": #"{"name": "page", "type": "int", "required": true}"#, "M": #"{"name": "n", "type": "int"}"#,
        "N": #"{"name": "n", "type": "int", "required": true}"#,
    ]

    /// The error of a file with a service whose target has one action.
    private func failure(action: String) throws -> PluginError? {
        func full(_ text: String) -> String { text.map { Self.parameters[String($0)] ?? String($0) }.joined() }
        let interface = full(#"{"name": "find", "parameters": [P, Q], "result": "string"}"#)
        let name = action.contains("other") ? "other" : "find"
        let module = CModule(
            name: "M",
            manifest: """
                {"name": "M", "version": "1.0.0", "targets": [{"name": "T", "actions": [\(full(action))]}],
                 "services": [{"name": "S", "version": "1.0.0", "target": "T", "interface": [\(interface)]}]}
                """, targets: [.init(name: "T", actions: [.init(name: name, body: "reply(call, \"yes\");")])])
        let test = try TestHost { configuration, folder in
            configuration.watches = false
            try module.build(into: folder.folder("plugins"), as: "m.so")
        }
        try test.host.start()
        let status = try #require(test.status("m.so"))
        return status.error
    }

    @Test func `An interface that is no list of actions is an error with its place`() throws {
        for (interface, message) in [
            (#"{"find": {}}"#, "service S: \"interface\" must be a list"),
            (#"[{"name": "find", "remote": true}]"#, "service S, action find: unknown key \"remote\""),
            (#"[{"name": "find"}, {"name": "find"}]"#, "service S: the action find is declared twice"),
        ] {
            let module = CModule(
                name: "M",
                moreManifest:
                    #""services": [{"name": "S", "version": "1.0.0", "target": "M", "interface": \#(interface)}], "#)
            let test = try TestHost { configuration, folder in
                configuration.watches = false
                try module.build(into: folder.folder("plugins"), as: "m.so")
            }
            try test.host.start()
            #expect(test.status("m.so")?.error?.message.contains(message) == true, "\(test.host.modules)")
        }
    }

    // MARK: What callers can use

    @Test(arguments: [false, true])
    func `Callers can use what the interface declares, and nothing else of the target`(isIntercepted: Bool) throws {
        try host.register(module("A", Service("S", version: "1.0.0", target: "A").interface(Self.find)))
        let interceptor = isIntercepted ? host.intercept(.target("A")) { call, next in try next(call) } : nil
        let service = try host.service("S")
        #expect(try service.perform("find", ["key": "x"]) == "A x 1")
        for (action, words) in [
            ("clear", "its target A has one, but its interface does not declare it"), ("finds", "Did you mean “find”?"),
        ] {
            let error = #expect(throws: PluginError.self) { try service.perform(action) }
            #expect(error?.code == .unknownAction)
            #expect(error?.message.hasPrefix("The service S 1.0.0 of A has no action “\(action)”") == true)
            #expect(error?.message.contains(words) == true, "\(error as Any)")
        }
        #expect(try host.perform("A", "clear") == "A" && host.perform("A", "finds") == "no finds")
        #expect(host.declaredActions(ofService: "S").map(\.name) == ["find"])
        #expect(host.declaredActions(ofTarget: "A").map(\.name) == ["clear", "find", "notFound"])
        withExtendedLifetime(interceptor) {}
    }

    @Test func `The instance of a handle has the actions of the interface only`() throws {
        try host.register(
            Manifest("A", version: "1.0.0") {
                Target("A", make: { 7 }) {
                    Action("number", .instance()) { number in number }
                    Action("other", .instance()) { number in number }
                }
                Service("S", version: "1.0.0", target: "A").interface(ServiceAction("number", result: Int.self))
            })
        let service = try host.service("S")
        #expect(try service.perform("number") == 7)
        let error = #expect(throws: PluginError.self) { try service.perform("other") }
        #expect(error?.code == .unknownAction && error?.message.contains("The service S") == true)
    }

    // MARK: Versions

    @Test func `A higher version with the same major version must fulfil the interface of a lower one`() throws {
        try host.register(module("A", Service("S", version: "1.1.0", target: "A").interface(Self.find)))
        let error = try refusal(module("B", Service("S", version: "1.2.0", target: "BWithout")))
        #expect(error.code == .conflict)
        for word in ["S 1.2.0 of B", "of version 1.1.0 of A", "it has no action find", "B is not registered"] {
            #expect(error.message.contains(word), "\(error)")
        }
        #expect(test.code("BWithout", "clear") == .unknownTarget)
        // A service of the same version with another priority could serve the same callers.
        #expect(
            try refusal(module("B", Service("S", version: "1.1.0", target: "BWithout", priority: 1))).code == .conflict)
        // The declared interface of the service counts, not the other actions of its target.
        let narrow = Service("S", version: "1.2.0", target: "B").interface(ServiceAction("clear"))
        #expect(try refusal(module("B", narrow)).code == .conflict)
        try host.register(module("B", Service("S", version: "1.2.0", target: "B")))
        #expect(try host.service("S", from: "1.1.0").perform("find", ["key": "x"]) == "B x 1")
    }

    @Test(arguments: ["1.0.0", "2.0.0", "1.2.0-beta.1"])
    func `A lower version, another major version and a prerelease need not fulfil it`(version: String) throws {
        try host.register(module("A", Service("S", version: "1.1.0", target: "A").interface(Self.find)))
        try host.register(module("B", Service("S", version: version, target: "BWithout")))
        #expect(host.services.map(\.version).contains(version))
    }

    @Test func `A lower version whose interface the present one does not fulfil is refused`() throws {
        try host.register(module("A", Service("S", version: "1.5.0", target: "AWithout")))
        let error = try refusal(module("B", Service("S", version: "1.1.0", target: "B").interface(Self.find)))
        #expect(error.code == .conflict && error.message.contains("S 1.5.0 of A"))
        #expect(error.message.contains("of version 1.1.0 of B") && error.message.contains("it has no action find"))
    }

    @Test func `Two versions that one module offers are compared, too`() throws {
        let error = try refusal(
            module(
                "A", Service("S", version: "1.0.0", target: "A").interface(Self.find),
                Service("S", version: "1.1.0", target: "AWithout")))
        #expect(error.code == .invalidManifest && error.message.contains("it has no action find"))
    }

    // MARK: Bound by the program, and by files

    @Test func `The program binds a service to the target of any module, for as long as the target exists`() throws {
        try host.addService(Service("S", version: "1.0.0", target: "A").interface(Self.find).summary("Finds"))
        #expect(throws: PluginError.self) { try host.serviceInfo("S") }
        try host.register(module("A"))
        #expect(try host.service("S").perform("find", ["key": "x"]) == "A x 1")
        let info = try host.serviceInfo("S")
        #expect(info.module == "A" && info.target == "A" && info.summary == "Finds" && info.file == nil)
        try host.unregister("A")
        #expect(throws: PluginError.self) { try host.serviceInfo("S") }
        try host.register(module("A"))
        #expect(host.removeService("S", version: "2.0.0") == false && host.removeService("S"))
        #expect(throws: PluginError.self) { try host.serviceInfo("S") }
        #expect(host.problems.isEmpty)
    }

    @Test func `A service of the program whose target does not fulfil it is refused, at once or when the target comes`()
        throws
    {
        let service = Service("S", version: "1.0.0", target: "AWithout").interface(Self.find)
        try host.addService(service)
        try host.register(module("A"))
        #expect(throws: PluginError.self) { try host.serviceInfo("S") }
        let problem = try #require(host.problems.first)
        #expect(problem.code == .conflict && problem.message.contains("The program's service S 1.0.0"))
        #expect(
            problem.message.contains(
                "the target AWithout does not fulfil the interface of the service S: it has no action find"))
        host.removeService("S")
        #expect(host.problems.isEmpty)
        #expect(throws: problem) { try host.addService(service) }
        #expect(host.problems.isEmpty)
    }

    @Test
    func `What the program has bound cannot be claimed twice, and a module that claims it is refused until it is free`()
        throws
    {
        try host.register(module("A", Service("Own", version: "1.0.0", target: "A")))
        try host.addService(Service("S", version: "1.0.0", target: "A"))
        for name in ["S", "Own"] {
            let error = #expect(throws: PluginError.self) {
                try host.addService(Service(name, version: "1.0.0", target: "A"))
            }
            #expect(error?.code == .conflict && error?.message.contains("is also offered by") == true)
        }
        #expect(throws: PluginError.self) { try host.addService(Service("S", version: "one", target: "A")) }
        let error = try refusal(module("B", Service("S", version: "1.0.0", target: "B")))
        #expect(error.code == .conflict && error.message.contains("the program"))
        host.removeService("S")
        try host.register(module("B", Service("S", version: "1.0.0", target: "B")))
        #expect(try host.service("S").perform("clear") == "B")
    }

    @Test func `A file in the folder gives way to what the program binds, and its interface is checked`() throws {
        let interface = #"[{"name": "answer"}]"#
        let test = try TestHost { configuration, folder in
            configuration.watches = false
            try CModule().build(into: folder.folder("plugins"), as: "good.so")
            try folder.file(
                "plugins/a.services.json",
                #"{"S": {"target": "Good", "version": "1.0.0", "interface": \#(interface)}}"#)
            try folder.file(
                "plugins/b.services.json",
                #"{"T": {"target": "Good", "version": "1.0.0", "interface": [{"name": "ask"}]}}"#)
        }
        try test.host.start()
        #expect(try test.host.service("S").perform("answer") == "yes")
        #expect(test.host.problems.count == 1)
        #expect(test.host.problems[0].message.contains("b.services.json are not registered: the target Good does not"))
        try test.host.register(module("A"))
        try test.host.addService(Service("S", version: "1.0.0", target: "A"))
        #expect(try test.host.service("S").perform("clear") == "A" && test.host.problems.count == 2)
        test.host.removeService("S")
        #expect(try test.host.service("S").perform("answer") == "yes" && test.host.problems.count == 1)
    }
}
