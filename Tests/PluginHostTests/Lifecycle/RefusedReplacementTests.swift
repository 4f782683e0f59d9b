import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// Successors that are refused: the serving module continues to serve, and the status says why.
@Suite(.timeLimit(.minutes(30)), .serialized) struct RefusedReplacementTests {
    let test: TestHost

    init() throws {
        test = try TestHost { configuration, _ in configuration.hookTimeout = .milliseconds(300) }
        try CModule(name: "First").build(into: test.plugins, as: "first.so")
        try CModule(name: "Other").build(into: test.plugins, as: "other.so")
        try test.start()
    }

    /// Replaces the file of the first module with a successor, and returns why that is refused.
    private func refusal(_ module: CModule) throws -> PluginError? {
        try module.build(into: test.plugins, as: "first.so")
        #expect(eventually { test.status("first.so")?.error != nil })
        #expect(test.answer("First") == "yes" && test.answer("Other") == "yes")
        let error = test.status("first.so")?.error
        try CModule(name: "First", version: "3.0.0", answer: "new").build(into: test.plugins, as: "first.so")
        #expect(eventually { test.answer("First") == "new" })
        #expect(test.status("first.so")?.error == nil)
        return error
    }

    @Test func `A successor that claims another module's target is refused`() throws {
        let error = try refusal(CModule(name: "First", version: "2.0.0", target: "Other"))
        #expect(error?.code == .conflict)
        #expect(error?.message.contains("target Other, which belongs to Other") == true, "\(error as Any)")
    }

    @Test(arguments: ["init", "setUp"])
    func `A successor whose hook does not end is refused`(hook: String) throws {
        let go = "\(test.folder.path)/go"
        var module = CModule(name: "First", version: "2.0.0")
        let body = "while (access(\"\(go)\", F_OK) != 0) usleep(10000);"
        if hook == "init" { module.hooks = ["init": body] } else { module.setUp = body }
        let error = try refusal(module)
        #expect(error?.code == .activationFailed)
        #expect(error?.message.contains("\(hook) of First") == true, "\(error as Any)")
        #expect(error?.message.contains("did not return within") == true, "\(error as Any)")
        #expect(test.host.generations.contains { $0.version == "2.0.0" && $0.holds.contains("@\(hook)") })
        try test.folder.file("go")
        #expect(eventually { !test.host.generations.contains { $0.state == .draining } })
    }

    @Test func `A successor whose version is invalid is refused`() throws {
        let error = try refusal(CModule(name: "First", version: "2.0"))
        #expect(error?.code == .invalidManifest)
        #expect(error?.message.contains("2.0") == true, "\(error as Any)")
    }

    @Test func `A successor that requires itself is refused`() throws {
        var module = CModule(name: "First", version: "2.0.0")
        module.moreManifest = "\"requires\": [{\"module\": \"First\", \"version\": \">=1\"}],"
        let error = try refusal(module)
        #expect(error?.message.contains("First") == true, "\(error as Any)")
    }
}
