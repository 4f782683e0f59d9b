import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Worker programs that misuse rooms, the memory for large values.
@Suite struct HostileRoomTests {
    private let worker = HostileWorkerTests()

    /// Replies with 599,984 bytes in a room, correctly except for the inserted code.
    private func program(before: String = "munmap(memory, 600000);", after: String = "") throws -> String {
        try worker.program(
            """
            plugin_wire_message room = of(PLUGIN_WIRE_ROOM);
            room.b = 600000;
            room = ask(channel, room);
            while (descriptor < 0) usleep(100);
            plugin_value *memory = mmap(NULL, 600000, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
            memory->kind = PLUGIN_KIND_BYTES;
            memory->count = 599984;
            \(before)
            close(descriptor);
            plugin_wire_message result = of(PLUGIN_WIRE_RESOLVE);
            result.token = message.token;
            result.count = 1;
            result.room = (uint32_t)room.a;
            result.length = 600000;
            ask(channel, result);
            \(after)
            """)
    }

    @Test func `A program that uses a room as it should is one like any other`() throws {
        let host = try worker.host(program())
        #expect(try host.host.perform("Good", "answer").bytes?.count == 599_984)
    }

    @Test(
        arguments: [
            "(void)0;",  // The worker can still write.
            "munmap(memory, 600000); room.a += 64;",
            "munmap(memory, 600000); room.a = 0xFFFFFFFF;",
            "munmap(memory, 600000); fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 8192);",
            "memory->count = 599985; munmap(memory, 600000);",
            "memory->kind = PLUGIN_KIND_LIST; munmap(memory, 600000);",
            "munmap(memory, 600000); uint32_t left = PLUGIN_WIRE_LEFT | (uint32_t)room.a;"
                + "send(PLUGIN_WIRE_SOCKET, &left, sizeof left, 0); sleep(10);",
        ])
    func `An invalid room ends its user`(_ before: String) throws {
        let host = try worker.host(program(before: before), restarts: 0, callTimeout: .seconds(60))
        #expect(host.failure()?.code == .moduleCrashed)
        #expect(eventually { host.log.contains { $0.message.contains("sent an invalid message") } })
        #expect(eventually { roomsInUse(getpid()) == 0 })
    }

    @Test func `A room is used once`() throws {
        let host = try worker.host(
            program(after: "ask(channel, result);"), restarts: 0, callTimeout: .seconds(60))
        #expect(try host.host.perform("Good", "answer").bytes?.count == 599_984)
        #expect(eventually { host.status("good.so")?.state == .failed })
    }

    @Test func `A program gets a limited number of rooms`() throws {
        let host = try worker.host(
            worker.program(
                """
                int given = 0;
                plugin_wire_message room = of(PLUGIN_WIRE_ROOM);
                for (int round = 0; round < 1000; round++) { room.b = 600000; given += ask(channel, room).a != 0; }
                int64_t wrong[] = {0, -1, 1, INT64_MIN, INT64_MAX, PLUGIN_WIRE_MAX_BYTES + 1ll};
                for (int index = 0; index < 6; index++) { room.b = wrong[index]; given += 1000 * (ask(channel, room).a != 0); }
                reply.flags = PLUGIN_WIRE_SCALAR; reply.scalar = plugin_value_int(given);
                """), callTimeout: .seconds(60))
        #expect(try host.host.perform("Good", "answer") == 64)
    }
}
