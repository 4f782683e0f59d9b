import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Worker programs that do not behave as they should: the host continues to run.
@Suite struct HostileWorkerTests {
    /// A program in place of `pluginhost-worker`. It describes a module with the action `answer`, and then runs `body`
    /// for each call. `body` sees the call as `message`, and returns `reply`.
    func program(_ body: String, _ begin: String = "") throws -> String {
        let wire = "\(repository)/Sources/CPluginWire"
        return try CFixture.program(
            """
            #define _GNU_SOURCE
            #include "plugin_wire.h"
            #include <fcntl.h>
            #include <linux/falloc.h>
            #include <linux/futex.h>
            #include <pthread.h>
            #include <stdlib.h>
            #include <string.h>
            #include <sys/mman.h>
            #include <sys/prctl.h>
            #include <sys/socket.h>
            #include <sys/syscall.h>
            #include <signal.h>
            #include <unistd.h>
            static plugin_wire *wire;
            static volatile int descriptor = -1; // The last one received.
            static uint64_t state = 1;
            static inline uint64_t next(void) { state = state * 6364136223846793005u + 1442695040888963407u; return state >> 33; }
            // Returns the answer, which must not be one whose only value is in its head; the host gives none.
            static plugin_wire_message ask(uint32_t channel, plugin_wire_message message) {
                plugin_wire_send(wire, channel, &message);
                plugin_wire_await(wire, channel, 0);
                plugin_wire_receive(wire, channel, &message);
                return message;
            }
            static plugin_wire_message of(uint32_t kind) {
                plugin_wire_message message;
                memset(&message, 0, sizeof message);
                message.kind = kind;
                return message;
            }
            static void *serve(void *data) {
                uint32_t channel = (uint32_t)(uintptr_t)data;
                for (;;) {
                    plugin_wire_message message, reply = of(PLUGIN_WIRE_RETURN);
                    plugin_wire_await(wire, channel, 0);
                    if (plugin_wire_receive(wire, channel, &message)) abort();
                    if (message.kind == PLUGIN_WIRE_CALL) { \(body) }
                    plugin_wire_send(wire, channel, &reply);
                }
            }
            int main(void) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                wire = plugin_wire_map(PLUGIN_WIRE_MEMORY, PLUGIN_WIRE_WORKER);
                plugin_entry functions[] = {{PLUGIN_STRING_INIT("Good/answer"), plugin_value_bool(1)}};
                const char *text = "{\\"name\\": \\"Good\\", \\"version\\": \\"1.0.0\\", \\"targets\\": [{\\"name\\": \\"Good\\","
                                   " \\"actions\\": [{\\"name\\": \\"answer\\"}]}]}";
                plugin_value values[] = {
                    plugin_value_int((int64_t)PLUGIN_ABI_MAGIC), plugin_value_int(sizeof(plugin_module)),
                    plugin_value_int(PLUGIN_ABI_MAJOR), plugin_value_int(PLUGIN_ABI_MINOR), plugin_value_text(""),
                    plugin_value_int(0), plugin_value_text(text), plugin_value_int((int64_t)strlen(text)),
                    plugin_value_map(functions, 1), plugin_value_int(1), plugin_value_map(NULL, 0)};
                plugin_wire_message description = of(PLUGIN_WIRE_DESCRIBE);
                description.values = values;
                description.count = sizeof values / sizeof *values;
                uint32_t up = PLUGIN_WIRE_DOWN_CHANNELS;
                if (send(PLUGIN_WIRE_SOCKET, &up, sizeof up, 0) < 0) return 1;
                plugin_value nothing = plugin_value_list(NULL, 0);
                plugin_wire_message confined = of(PLUGIN_WIRE_CONFINED);
                confined.values = &nothing;
                confined.count = 1;
                ask(up, confined);
                ask(up, description);
                \(begin)
                for (;;) {
                    uint64_t count;
                    int come = -1;
                    if (plugin_wire_hear(PLUGIN_WIRE_SOCKET, &count, sizeof count, &come) != sizeof count) return 0;
                    uint8_t *bytes = malloc(count);
                    plugin_wire_message message;
                    if (recv(PLUGIN_WIRE_SOCKET, bytes, count, MSG_WAITALL) < 0) return 1;
                    if (come >= 0) descriptor = come;
                    if (plugin_wire_unpack(wire, bytes, count, &message)) return 1;
                    pthread_t thread;
                    if (message.kind == PLUGIN_WIRE_SERVE) pthread_create(&thread, NULL, serve, (void *)(uintptr_t)message.a);
                }
            }
            """,
            [
                "-I", "\(wire)/include", "\(wire)/values.c", "\(wire)/messages.c", "\(wire)/channels.c",
                "\(wire)/rooms.c", "-pthread",
            ])
    }

    /// A host whose modules run in the given program.
    func host(
        _ program: String, restarts: Int = 3, callTimeout: Duration = .milliseconds(500)
    ) throws -> TestHost {
        let good = try CModule().build()
        let host = try TestHost { configuration, folder in
            try folder.copy(good, as: "plugins/good.so")
            configuration.watches = false
            configuration.isolation.modules = .all
            configuration.isolation.workerPath = program
            configuration.isolation.callTimeout = callTimeout
            configuration.isolation.hangGrace = .milliseconds(200)
            configuration.isolation.restartPauses = Array(repeating: .zero, count: restarts)
        }
        try host.start()
        return host
    }

    @Test func `A program that answers as it should is one like any other`() throws {
        let host = try host(program("reply.flags = PLUGIN_WIRE_SCALAR; reply.scalar = plugin_value_int(7);"))
        #expect(try host.host.perform("Good", "answer") == 7)
    }

    @Test(
        arguments: [
            "reply.kind = 999;", "reply.kind = PLUGIN_WIRE_PERFORM; reply.count = 0;",
            """
            plugin_value one = plugin_value_int(1);
            reply.kind = PLUGIN_WIRE_PERFORM; reply.values = &one; reply.count = 1;
            """,
            "reply.kind = PLUGIN_WIRE_DESCRIBE;", "reply.kind = PLUGIN_WIRE_INFO;",
            "reply.kind = PLUGIN_WIRE_RESOLVE; reply.token = message.token;",
        ])
    func `An invalid message ends its sender`(_ body: String) throws {
        let host = try host(program(body), restarts: 0)
        let error = try #require(host.failure())
        #expect([.moduleCrashed, .noReply, .deadlineExceeded].contains(error.code), "\(error)")
    }

    @Test func `Objects and calls of others cannot be reached by their numbers`() throws {
        let target = try CModule(
            name: "Victim",
            targets: [
                .init(
                    name: "Victim",
                    actions: [
                        .init(
                            name: "make",
                            body: """
                                plugin_object object = host->object_create(host, text("Thing"), 0, 0);
                                reply_value(call->token, plugin_value_object(object));
                                host->object_release(host, object);
                                """)
                    ])
            ],
            types: [("Thing", [.init(name: "touch", body: "reply_int(call->token, 1);")])]
        ).build()
        let program = try program(
            """
            for (uint64_t slot = 0; slot < 64; slot++) for (uint64_t sequence = 0; sequence < 64; sequence++) {
                plugin_wire_message steal = of(PLUGIN_WIRE_RELEASE);
                steal.a = slot << 40 | sequence;
                if (ask(channel, steal).a == 0) abort();
                steal.kind = PLUGIN_WIRE_RETAIN;
                if (ask(channel, steal).a == 0) abort();
            }
            for (uint64_t index = 0; index < 512; index++) for (uint64_t sequence = 0; sequence < 16; sequence++) {
                plugin_wire_message forge = of(PLUGIN_WIRE_REJECT);
                forge.token = index << 41 | sequence;
                if (forge.token != message.token && ask(channel, forge).a == 0) abort();
            }
            reply.flags = PLUGIN_WIRE_SCALAR; reply.scalar = plugin_value_int(1);
            """)
        let victim = try TestHost([target])
        let thing = try #require(try victim.host.perform("Victim", "make").object)
        let host = try host(program, callTimeout: .seconds(60))
        // Trying all numbers takes a while.
        #expect(eventually { host.status("good.so")?.state == .active })
        _ = try? host.host.perform("Good", "answer")
        #expect(host.host.modules.first?.restarts == 0)
        #expect(try thing.perform("touch") == 1)
    }

    @Test func `Requests inside of one-way messages, without end, do not use up the stack of the host`() throws {
        let host = try host(
            program(
                """
                static int calls;
                if (calls++ == 0) for (int round = 0; round < 20000; round++) ask(channel, of(PLUGIN_WIRE_BEGIN));
                reply.flags = PLUGIN_WIRE_SCALAR; reply.scalar = plugin_value_int(7);
                """), callTimeout: .seconds(60))
        _ = host.failure()
        #expect(try host.host.perform("Good", "answer") == 7)
        #expect(host.host.modules.first?.restarts == 0)
    }

    @Test(
        arguments: [
            "syscall(SYS_futex, memory, FUTEX_REQUEUE, 0, 1000L, memory + 512, 0); _exit(0);",
            "memory[0] = 12345; for (;;) pause();",
        ])
    func `Threads of the host wake up even if a program tries to prevent it`(_ body: String) throws {
        let host = try host(
            program(
                """
                uint32_t *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, PLUGIN_WIRE_MEMORY, 0);
                usleep(100000); // The host sleeps.
                \(body)
                """), restarts: 0, callTimeout: .seconds(60))
        #expect(host.failure()?.code == .moduleCrashed)
    }

    @Test func `A list with a count and without a pointer, before the module is activated, ends its sender`() throws {
        let host = try host(
            program(
                "reply.flags = PLUGIN_WIRE_SCALAR;",
                """
                plugin_value missing = {PLUGIN_KIND_LIST, 3, {0}};
                confined.values = &missing;
                ask(up, confined);
                """), restarts: 0)
        #expect(eventually { host.status("good.so")?.state == .failed })
    }

    @Test func `A module is described once`() throws {
        let host = try host(
            program(
                "reply.flags = PLUGIN_WIRE_SCALAR;",
                """
                up++;
                if (send(PLUGIN_WIRE_SOCKET, &up, sizeof up, 0) < 0) return 1;
                ask(up, description);
                """), restarts: 0)
        #expect(eventually { host.status("good.so")?.state == .failed })
    }

    @Test func `A program that closes its socket and lives on is ended`() throws {
        let host = try host(
            program("reply.flags = PLUGIN_WIRE_SCALAR;", "shutdown(PLUGIN_WIRE_SOCKET, SHUT_RDWR); for (;;) pause();"),
            restarts: 0)
        #expect(eventually { host.status("good.so")?.state == .failed })
        #expect(host.status("good.so")?.error?.message.contains("closed its connection") == true)
    }

    @Test func `Spoiled messages and memory that changes while it is read do no harm`() throws {
        let host = try host(
            program(
                """
                plugin_value inner[3] = {plugin_value_text("text"), plugin_value_int(1), plugin_value_double(2)};
                plugin_value list = plugin_value_list(inner, 3);
                plugin_wire_message result = of(PLUGIN_WIRE_RESOLVE);
                result.token = next() % 8 ? message.token : next();
                result.values = &list; result.count = 1;
                if (next() % 8 == 0) result.kind = 60 + next() % 40;
                if (next() % 8 == 0) result.a = next();
                ask(channel, result);
                """,
                """
                state = (uint64_t)getpid();
                uint64_t *memory = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, PLUGIN_WIRE_MEMORY, 0);
                if (fork() == 0) {
                    prctl(PR_SET_PDEATHSIG, SIGKILL);
                    for (;;) {
                        uint64_t place = 1 + next() % 7;
                        if (next() % 2) place = (128 + PLUGIN_WIRE_CHANNEL_BYTES) / 8 + next() % 64;
                        memory[next() % 2 << 17 | place] = next() % 3 ? next() : next() << 33;
                        usleep(next() % 50);
                    }
                }
                """), restarts: 1_000_000)
        var outcomes: [String: Int] = [:]
        for _ in 0..<300 {
            let outcome = host.failure().map(\.code.rawValue) ?? "value"
            outcomes[outcome, default: 0] += 1
        }
        #expect(outcomes.values.reduce(0, +) == 300)
        #expect(host.host.problems.isEmpty)
    }
}
