import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Crashes of isolated modules at certain moments of a call: each call gets one outcome.
@Suite(.timeLimit(.minutes(30))) struct CrashMomentTests {
    private static let module = CModule(
        name: "Frail",
        code: """
            static atomic_int has_begun;
            static void *die_after(void *time) {
                usleep((useconds_t)(intptr_t)time);
                kill(getpid(), SIGKILL);
                return NULL;
            }
            static void *reply_and_die(void *token) {
                reply_int((plugin_token)token, 1);
                kill(getpid(), SIGKILL);
                return NULL;
            }
            static void *die_when_begun(void *data) {
                (void)data;
                while (!has_begun) {}
                kill(getpid(), SIGKILL);
                return NULL;
            }
            """,
        targets: [
            .init(
                name: "Frail",
                actions: [
                    .init(
                        name: "arm", parameters: ["time": "int"],
                        body: "start(die_after, (void *)(intptr_t)arguments[0].as.integer); reply(call, \"\");"),
                    .init(name: "take", parameters: ["text": "string"], body: "reply_int(call->token, 1);"),
                    .init(
                        name: "later", manifest: "\"async\": true, ",
                        body: "start(reply_and_die, (void *)call->token);"),
                    .init(
                        name: "now",
                        body: "start(die_when_begun, NULL); usleep(1000); reply_int(call->token, 1); has_begun = 1;"),
                ])
        ])

    private func host(_ module: CModule = module) throws -> TestHost {
        try TestHost([module.build()]) { configuration in
            configuration.isolation.modules = .all
            // A machine that runs many tests may not continue one of them for minutes. The restarts must last for that.
            configuration.isolation.restartPauses = Array(repeating: .zero, count: 100_000)
        }
    }

    /// Waits until the module serves in its next worker.
    private func waitForRestart(_ host: TestHost, _ restarts: Int) {
        #expect(eventually { hasRestarted(host, restarts) })
    }

    private func hasRestarted(_ host: TestHost, _ restarts: Int) -> Bool {
        host.host.modules.contains { $0.name == "Frail" && $0.restarts >= restarts }
    }

    @Test func `A crash while the host writes a call ends the call with one error`() throws {
        let host = try host()
        // The first text takes long to be written into a channel, the second one into a room.
        for (round, count) in [400_000, 8_000_000].flatMap({ Array(repeating: $0, count: 10) }).enumerated() {
            let text = String(repeating: "x", count: count)
            var error: PluginError?
            do throws(PluginError) { try host.host.perform("Frail", "arm", [.int(round % 10 * 300)]) } catch let failure
            {
                error = failure  // The worker died before it answered.
            }
            // The worker may also die between two calls.
            while error == nil, !hasRestarted(host, round + 1) {
                do throws(PluginError) {
                    let answer = try host.host.perform("Frail", "take", [.string(text)])
                    #expect(answer == 1)
                } catch let failure {
                    error = failure
                }
            }
            #expect(error == nil || error?.code == .moduleCrashed, "\(error!)")
            waitForRestart(host, round + 1)
        }
        #expect(host.staleReplies == 0)
    }

    @Test(arguments: ["later", "now"])
    func `A crash between a reply and its receipt leads to either the reply or an error`(action: String) async throws {
        let host = try host()
        for round in 1...20 {
            do throws(PluginError) {
                let answer = try await host.host.call("Frail", action)
                #expect(answer == 1)
            } catch {
                #expect(error.code == .moduleCrashed)
            }
            waitForRestart(host, round)
        }
        #expect(host.staleReplies == 0)
    }

    @Test func `A crash during a restart ends each call that waits for it with one error`() async throws {
        let folder = try TemporaryFolder()
        var module = Self.module
        module.activate = "if (access(\"\(folder.path)/down\", F_OK) == 0) { usleep(100000); abort(); }"
        let host = try host(module)
        try folder.file("down")
        _ = try? host.host.perform("Frail", "arm", [0])
        var codes = try await onThreads(8) { _ in
            // The first calls reach the worker that dies.
            while true {
                do throws(PluginError) { _ = try host.host.perform("Frail", "take", ["x"]) } catch {
                    return error.code.rawValue
                }
            }
        }
        #expect(codes == Array(repeating: "moduleCrashed", count: 8), "\(codes)")
        codes = try await onThreads(8) { _ in
            do throws(PluginError) { return try host.host.perform("Frail", "take", ["x"]).json } catch {
                return error.code.rawValue
            }
        }
        #expect(codes.allSatisfy { $0 == "moduleCrashed" }, "\(codes)")
        try FileManager.default.removeItem(atPath: "\(folder.path)/down")
        #expect(await becomesTrue { (try? host.host.perform("Frail", "take", ["x"])) == 1 })
        #expect(host.staleReplies == 0)
    }

    // MARK: Serial modules

    @Test(.disabled(if: sanitizer == "thread", "The worker's sanitizer does not know the threads of a module."))
    func `A circular wait through a thread of an isolated module ends at the deadline`() async throws {
        var serial = CModule(name: "Serial")
        serial.moreManifest = "\"concurrency\": \"serial\", "
        serial.actions = [
            (
                "outer",
                """
                plugin_request request = ask("Middle", "step");
                host->perform(host, call->token, &request, pass_on, (void *)call->token);
                """
            )
        ]
        // The thread of this module has no call, so the host does not know that its call of `Serial` belongs to `step`.
        var middle = CModule(name: "Middle")
        middle.code = """
            static void ignore(void *data, const plugin_value *value, const plugin_error *error) {
                (void)data, (void)value, (void)error;
            }
            static void *ask_serial(void *data) {
                (void)data;
                plugin_request request = ask("Serial", "answer");
                host->perform(host, 0, &request, ignore, NULL);
                return NULL;
            }
            """
        middle.actions = [
            (
                "step",
                """
                pthread_t thread;
                pthread_create(&thread, 0, ask_serial, NULL);
                pthread_join(thread, NULL);
                reply(call, "done");
                """
            )
        ]
        let host = try TestHost([serial.build(), middle.build()]) { configuration in
            configuration.isolation.modules = .named(["Middle"])
            configuration.isolation.callTimeout = .milliseconds(500)
            configuration.isolation.hangGrace = .seconds(60)
        }
        let error = try host.failure("Serial", "outer")
        #expect(error.code == .deadlineExceeded, "\(error)")
        #expect(error.message.contains("Middle/step") && error.message.contains("deadline"), "\(error.message)")
        // The call from the thread is then admitted.
        #expect(host.answer("Serial") == "yes")
        #expect(await becomesTrue { (try? host.host.perform("Middle", "step").string) == "done" })
    }
}
