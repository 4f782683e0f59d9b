import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Failed modules that are tried again, although their files have not changed.
@Suite(.timeLimit(.minutes(30))) struct RetryTests {
    let test: TestHost
    private var down: String { "\(test.folder.path)/down" }
    private var file: String { "\(test.plugins)/a.so" }

    /// A host whose module A cannot start while a file exists.
    init() throws {
        test = try TestHost { configuration, _ in configuration.watches = false }
        try test.folder.file("down")
        var module = CModule(name: "A")
        module.setUp = "if (access(\"\(test.folder.path)/down\", F_OK) == 0) { refuse(call, \"down\"); return; }"
        try module.build(into: test.plugins, as: "a.so")
        try test.start()
        try #require(test.status("a.so")?.error?.code == .activationFailed)
    }

    private func failure(_ name: String) throws -> PluginError {
        try #require(#expect(throws: PluginError.self) { try test.host.retry(name) })
    }

    @Test(arguments: [false, true])
    func `A module that failed serves after a retry if the cause is gone`(byPath: Bool) throws {
        let name = byPath ? file : "A"
        let error = try failure(name)
        #expect(error.code == .activationFailed && error.message.contains("down"))
        unlink(down)
        #expect(test.answer("A") == nil)
        try test.host.retry(name)
        #expect(test.answer("A") == "yes" && test.states == ["a.so": "active"])
        #expect(try failure(name).code == .unknownModule)
    }

    @Test func `A retry of a module of which no file has failed is refused`() throws {
        let error = try failure("Nobody")
        #expect(error.code == .unknownModule && error.message.contains("No file of a module “Nobody” has failed."))
        test.host.shutdown()
        #expect(try failure("A").code == .hostStopped)
    }

    @Test func `A module keeps its name if its file cannot even be opened by a retry`() throws {
        unlink(down)
        chmod(file, 0o666)
        for _ in 0..<2 { #expect(try failure("A").code == .untrusted) }
        #expect(test.status("a.so")?.name == "A")
        chmod(file, 0o600)
        try test.host.retry("A")
        #expect(test.answer("A") == "yes")
    }
}
