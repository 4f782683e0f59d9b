import Foundation
import Testing

@testable import TestSupport

/// How a worker treats the descriptors of rooms, tested with a C program that contains this part of the worker.
@Suite struct WorkerRoomTests {
    @Test(arguments: [
        // The room was left although its descriptor was not taken.
        "plugin_worker_keep_room(5, descriptor); leave_room(5);",
        // The same, but the descriptor arrives later.
        "leave_room(5); plugin_worker_keep_room(5, descriptor);",
    ])
    func `A worker keeps no descriptor of a room that it has left`(body: String) throws {
        let sources = "\(repository)/Sources"
        let program = try CFixture.program(
            """
            \(try String(contentsOfFile: "\(sources)/CPluginWorker/rooms.c", encoding: .utf8))
            #include <fcntl.h>
            static void (*leave_room)(uint32_t);
            static uint32_t announced;
            plugin_wire *plugin_worker_wire;
            int plugin_worker_listens(void) { return 1; }
            void plugin_worker_receive_message(void) {}
            void plugin_worker_announce(uint32_t number) { announced = number; }
            void plugin_wire_set_rooms(plugin_wire *wire, int (*take)(uint32_t), void (*leave)(uint32_t)) {
                (void)wire, (void)take;
                leave_room = leave;
            }
            int main(void) {
                int descriptor = dup(2);
                plugin_worker_use_rooms();
                \(body)
                if (announced != (PLUGIN_WIRE_LEFT | 5)) return 2;
                if (fcntl(descriptor, F_GETFD) >= 0) return 1;
                // The next room at the same place is kept.
                descriptor = dup(2);
                plugin_worker_keep_room(5 + PLUGIN_WIRE_ROOMS, descriptor);
                return fcntl(descriptor, F_GETFD) < 0 ? 3 : 0;
            }
            """,
            [
                "-D_GNU_SOURCE", "-pthread", "-I", "\(sources)/CPluginWorker", "-I", "\(sources)/CPluginWire/include",
                "-I", "\(sources)/CPluginABI/include",
            ])
        let process = Process()
        process.executableURL = URL(filePath: program)
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
    }
}
