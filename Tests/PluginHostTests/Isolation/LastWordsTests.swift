import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// The last lines that isolated modules write before they crash.
@Suite struct LastWordsTests {
    private static let module = CModule(
        name: "Bad",
        actions: [
            (
                "speak",
                """
                const plugin_log *log = plugin_log_of(host);
                printf("first\\n");
                log->write(host, call->token, PLUGIN_LOG_INFO, text("second"));
                fprintf(stderr, "\\033[31mthird\\n");
                log->write(host, call->token, PLUGIN_LOG_INFO, text("fourth"));
                printf("no end of line");
                fflush(stdout);
                abort();
                """
            ),
            ("babble", "for (int line = 0; line < 1000; line++) fprintf(stderr, \"%d\\n\", line); abort();"),
            ("bulk", "for (int byte = 0; byte < 100000; byte++) fputc('x', stderr); abort();"),
        ])

    private func host(_ modules: [String], _ pauses: [Duration] = [.seconds(600)]) throws -> TestHost {
        let host = try TestHost { configuration, folder in
            for (number, module) in modules.enumerated() { try folder.copy(module, as: "plugins/\(number).so") }
            configuration.watches = false
            configuration.isolation.modules = .all
            configuration.isolation.restartPauses = pauses
        }
        try host.start()
        return host
    }

    /// The last words in the report of a crash.
    private func lastWords(_ host: TestHost) throws -> (lines: [String], reason: String) {
        #expect(eventually { host.changes.contains { if case .crashed = $0 { true } else { false } } })
        let crashes = host.changes.compactMap { change -> ([String], String)? in
            if case .crashed(let generation, let reason) = change { (generation.lastWords, reason) } else { nil }
        }
        return try #require(crashes.last)
    }

    @Test func `Output and log are reported in their order, in the change, the log, the event and the status`() throws {
        let host = try host([Self.module.build()])
        let told = Mutex<String?>(nil)
        let subscription = host.host.on("module.crashed") { event in
            let message = event["message"]?.string
            told.withLock { $0 = message }
        }
        defer { subscription.cancel() }
        #expect(host.code("Bad", "speak") == .moduleCrashed)
        let (lines, reason) = try lastWords(host)
        #expect(lines == ["first", "second", "\\u{1b}[31mthird", "fourth", "no end of line"])
        #expect(reason.contains("last words: “first”, “second”, “\\u{1b}[31mthird”, “fourth”, “no end of line”."))
        #expect(host.log.contains { $0.level == .error && $0.message.contains("“no end of line”") })
        #expect(eventually { told.withLock { $0 }?.contains("“no end of line”") == true })
        #expect(host.host.generations.contains { $0.lastWords == lines })
    }

    @Test func `At most 20 lines and 4 KiB are kept, those of the end`() throws {
        let host = try host([Self.module.build()], [.zero])
        #expect(host.code("Bad", "babble") == .moduleCrashed)
        #expect(try lastWords(host).lines == (980..<1000).map(String.init))
        #expect(eventually { host.answer("Bad") == "yes" })
        #expect(host.code("Bad", "bulk") == .moduleCrashed)
        #expect(eventually { (try? lastWords(host).lines.last?.hasPrefix("xxx")) == true })
        let bytes = try lastWords(host).lines.reduce(0) { $0 + $1.utf8.count }
        #expect(bytes > 2000 && bytes <= 4096)
        // The module has failed.
        #expect(eventually { host.host.modules.first?.error?.message.contains("last words: “xxx") == true })
    }

    @Test(.disabled(if: isSanitized, "The fixture needs functions of the sanitizer, which the worker does not export."))
    func `A trap of the Swift runtime is named`() throws {
        let host = try host([built("libFixtureModule.so")])
        #expect(try host.failure("Failing", "trap", ["word": "really"]).code == .moduleCrashed)
        let reason = try lastWords(host).reason
        #expect(reason.contains("Fatal error: Index out of range"), "\(reason)")
    }

    @Test func `The error of a start has them, in the entry function and in a hook`() throws {
        let cry = "fprintf(stderr, \"no licence\\n\"); abort();"
        for module in [CModule(entry: cry), CModule(activate: cry), CModule(setUp: cry)] {
            let host = try host([module.build()])
            let error = try #require(host.host.modules.first?.error)
            #expect(error.message.contains("last words: “no licence”."), "\(error)")
        }
    }

    @Test func `A process that the host ends has none`() throws {
        let host = try host([CModule(body: "fprintf(stderr, \"hello\\n\");").build()])
        #expect(host.answer() == "yes")
        try host.host.restart("Good")
        #expect(eventually { host.host.generations.contains { $0.state == .retired } })
        #expect(host.host.generations.allSatisfy { $0.lastWords.isEmpty })
    }
}
