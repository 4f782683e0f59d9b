import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Isolated modules that exhaust resources: at most their own workers end, and other modules continue to serve.
@Suite struct BombTests {
    private static let bombs = CModule(
        name: "Bad",
        actions: [
            (
                "threads",
                """
                int made = 0;
                pthread_attr_t small;
                pthread_attr_init(&small);
                pthread_attr_setstacksize(&small, 16384 + PTHREAD_STACK_MIN);
                for (pthread_t thread; made < 1500 && pthread_create(&thread, &small, sleep_for_ever, 0) == 0;) made++;
                reply_int(call->token, made);
                """
            ),
            ("forks", "int made = 0; while (made < 1000 && fork() > 0) made++; reply_int(call->token, made);"),
            (
                "descriptors",
                "int made = 0; while (made < 100000 && dup(1) >= 0) made++; reply_int(call->token, made);"
            ),
            (
                "lines",
                """
                for (int line = 0; line < 20000; line++) printf("line %d \\033[31m\\n", line);
                fflush(stdout);
                reply_int(call->token, 20000);
                """
            ),
            (
                "objects",
                """
                int made = 0;
                while (made < 20000 && host->object_create(host, text("Thing"), 0, 0)) made++;
                reply_int(call->token, made);
                """
            ),
        ],
        code: """
            #include <limits.h>
            static void *sleep_for_ever(void *data) { for (;;) pause(); return data; }
            """)

    @Test(arguments: ["threads", "forks", "descriptors", "lines", "objects"])
    func `A bomb harms nobody else`(_ action: String) throws {
        let host = try TestHost([Self.bombs.build(), CModule().build()]) { configuration in
            configuration.isolation.modules = .all
            configuration.isolation.restartPauses = Array(repeating: .zero, count: 10)
        }
        let before = host.host.modules.compactMap(\.process).count
        #expect(before == 2)
        let count = try? host.host.perform("Bad", action).int
        let limits = ["threads": 1024, "forks": 0, "descriptors": 256, "lines": 20000, "objects": 20000]
        // A worker may also end for lack of the resource that it has exhausted.
        if let count, count > limits[action]! {
            // The kernel has no limit for threads of root; the host counts them. This number does not harm other tests.
            #expect(action == "threads" && geteuid() == 0, "\(action): \(count)")
            #expect(eventually { host.messages.contains { $0.contains("more than 1024 threads") } })
        }
        #expect(host.answer() == "yes")
        #expect(host.log.count { $0.module == "Bad" } < 5000)
        host.host.shutdown()
    }
}
