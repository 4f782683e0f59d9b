import Foundation
import Testing

@testable import TestSupport

/// For how long a worker looks for its turn before it sleeps, tested with a C program that contains the worker and both
/// sides of its shared memory. It has one thread, a clock that advances by a microsecond when it is read, and a host that
/// sends its next message at a certain time, or when the worker falls asleep.
@Suite struct WorkerLookTests {
    @Test(arguments: [
        (
            "A call arrives while the worker looks for the answer to a request.",
            "plan(10, PLUGIN_WIRE_CALLBACK); plan(100, PLUGIN_WIRE_ANSWER); ask(); check(calls == 1 && sleeps == 0);"
        ),
        (
            "The answer arrives after the call, too late.",
            "plan(10, PLUGIN_WIRE_CALLBACK); plan(1000, PLUGIN_WIRE_ANSWER); ask(); check(calls == 1 && sleeps == 1);"
        ),
        (
            "After a slow answer, the worker looks only briefly for 32 other ones.",
            """
            plan(1000, PLUGIN_WIRE_ANSWER); ask(); check(sleeps == 1);
            for (int number = 0; number < 32; number++) { plan(100, PLUGIN_WIRE_ANSWER); ask(); }
            check(sleeps == 33);
            plan(100, PLUGIN_WIRE_ANSWER); ask(); check(sleeps == 33);
            """
        ),
        (
            "A call that is not nested is awaited only briefly.",
            """
            plugin_wire_message reply = plugin_worker_message(PLUGIN_WIRE_RETURN);
            check(plugin_wire_send(worker, 1, &reply) == 0);
            time_now = 0; plan(10, PLUGIN_WIRE_CALL); plugin_wire_await(worker, 1, 0); check(sleeps == 0);
            check(plugin_wire_send(worker, 1, &reply) == 0);
            time_now = 0; plan(100, PLUGIN_WIRE_CALL); plugin_wire_await(worker, 1, 0); check(sleeps == 1);
            """
        ),
    ])
    func `A worker looks longer for answers, unless they are slow`(situation: String, body: String) throws {
        let sources = "\(repository)/Sources"
        let files = try ["CPluginWire", "CPluginWorker"].flatMap { folder in
            try FileManager.default.contentsOfDirectory(atPath: "\(sources)/\(folder)").sorted()
                .filter { $0.hasSuffix(".c") && $0 != "channels.c" }.map { "\(sources)/\(folder)/\($0)" }
        }
        let program = try CFixture.program(
            """
            #define clock_gettime clock_of_test
            #define syscall syscall_of_test
            #define sched_getcpu processor_of_test
            #include "\(sources)/CPluginWire/channels.c"
            #include "\(sources)/CPluginWorker/worker.h"
            #define check(condition) do { if (!(condition)) exit(__LINE__); } while (0)

            static plugin_wire *host, *worker;
            static int64_t time_now, when[4];
            static uint32_t kinds[4], planned, sent, sleeps, calls, is_worker;

            /* The host sends the message `kind` some microseconds after the worker's last one. */
            static void plan(int64_t microseconds, uint32_t kind) {
                if (sent == planned) sent = planned = 0;
                when[planned] = microseconds, kinds[planned++] = kind;
            }
            static void called(void *data, const plugin_call *call, const plugin_value *values, uint32_t count) {
                (void)data, (void)call, (void)values, (void)count;
                calls++;
            }
            static plugin_worker_object callback = {.invoke = called};
            static void run_host(void) {
                check(sent < planned);
                is_worker = 0;
                plugin_wire_message message;
                check(plugin_wire_await(host, 1, 0) == PLUGIN_WIRE_ARRIVED);
                check(plugin_wire_receive(host, 1, &message) == 0);
                message = plugin_worker_message(kinds[sent++]);
                message.a = (uint64_t)(uintptr_t)&callback;
                check(plugin_wire_send(host, 1, &message) == 0);
                is_worker = 1;
                time_now = 0;
            }
            int clock_of_test(clockid_t clock, struct timespec *time) {
                (void)clock;
                time_now++;
                if (is_worker && sent < planned && time_now >= when[sent]) run_host();
                *time = (struct timespec){0, time_now * 1000};
                return 0;
            }
            int processor_of_test(void) { return (int)is_worker; }
            long syscall_of_test(long number, ...) {
                check(number == SYS_futex);
                if (!is_worker) return 0; /* a wake-up */
                sleeps++;
                run_host();
                return 0;
            }
            static void ask(void) {
                plugin_wire_message message = plugin_worker_message(PLUGIN_WIRE_REQUEST);
                time_now = 0;
                check(plugin_worker_exchange(1, &message) == PLUGIN_WIRE_PUT);
                plugin_wire_dispose(&message);
            }
            int main(void) {
                int memory = plugin_wire_create();
                host = plugin_wire_map(memory, PLUGIN_WIRE_HOST);
                worker = plugin_worker_wire = plugin_wire_map(memory, PLUGIN_WIRE_WORKER);
                is_worker = 1;
                /* The first answer shows that the host runs on another processor. */
                plan(1, PLUGIN_WIRE_ANSWER);
                ask();
                sleeps = 0;
                \(body)
                return 0;
            }
            """,
            [
                "-D_GNU_SOURCE=", "-pthread", "-I", "\(sources)/CPluginWorker/include", "-I", "\(sources)/CPluginWire",
                "-I", "\(sources)/CPluginWire/include", "-I", "\(sources)/CPluginABI/include",
            ] + files)
        let process = Process()
        process.executableURL = URL(filePath: program)
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "line \(process.terminationStatus)")
    }
}
