import Foundation
import Testing

@testable import TestSupport

/// Messages of the host whose only value travels in the head, tested with a C program that is both sides.
@Suite struct WireHeadTests {
    @Test(arguments: [
        (
            "Numbers, truth values and null arrive, and nothing but their own bytes.",
            """
            plugin_value values[] = {plugin_value_null(), plugin_value_bool(1), plugin_value_bool(0), plugin_value_int(-7),
                                     plugin_value_int(INT64_MIN), plugin_value_double(-0.5)};
            for (unsigned index = 0; index < sizeof values / sizeof *values; index++) {
                plugin_value dirty;
                memset(&dirty, 0xA5, sizeof dirty);
                dirty.kind = values[index].kind;
                switch (dirty.kind) {
                case PLUGIN_KIND_BOOL: dirty.as.boolean = values[index].as.boolean; break;
                case PLUGIN_KIND_INT: dirty.as.integer = values[index].as.integer; break;
                case PLUGIN_KIND_DOUBLE: dirty.as.real = values[index].as.real; break;
                }
                plugin_wire_message *message = call(&dirty, 1);
                check(message->kind == PLUGIN_WIRE_CALL && message->a == 3 && message->token == 9);
                check(message->count == 1 && message->values == &message->only && message->has_objects == 0);
                check(memcmp(message->values, &values[index], sizeof values[index]) == 0);
                check(memcmp(host->channels[1].bytes[PLUGIN_WIRE_HOST], (char[64]){0}, 64) == 0);
                plugin_wire_dispose(message);
                answer();
            }
            """
        ),
        (
            "Other values, and several, arrive as before.",
            """
            plugin_value values[] = {plugin_value_text("text"), plugin_value_int(2), plugin_value_int(3)};
            plugin_wire_message *message = call(values, 1);
            check(message->count == 1 && message->values->kind == PLUGIN_KIND_STRING && message->values->count == 4);
            check(memcmp(message->values->as.string, "text", 4) == 0);
            plugin_wire_dispose(message);
            answer();
            message = call(values + 1, 2);
            check(message->count == 2 && message->values[0].as.integer == 2 && message->values[1].as.integer == 3);
            plugin_wire_dispose(message);
            answer();
            check(call(values, 0)->count == 0);
            """
        ),
        (
            "A value stays while a nested message brings another one.",
            """
            plugin_value first = plugin_value_int(1), second = plugin_value_int(2);
            plugin_wire_message outer;
            receive(&first, 1, &outer);
            answer();
            plugin_wire_message inner;
            receive(&second, 1, &inner);
            check(outer.values->as.integer == 1 && inner.values->as.integer == 2);
            plugin_wire_dispose(&inner);
            check(outer.values->as.integer == 1);
            plugin_wire_dispose(&outer);
            check(outer.values == NULL && outer.count == 0);
            answer();
            plugin_value text = plugin_value_text("text");
            receive(&text, 1, &outer);
            answer();
            receive(&second, 1, &inner);
            check(outer.values->count == 4 && memcmp(outer.values->as.string, "text", 4) == 0);
            plugin_wire_dispose(&inner);
            plugin_wire_dispose(&outer);
            answer();
            check(worker->channels[1].in_use == 0);
            """
        ),
        (
            "The host accepts no such head, and a worker none with another kind of value.",
            """
            plugin_value one = plugin_value_int(1);
            plugin_wire_dispose(call(&one, 1));
            plugin_wire_message message = {.kind = PLUGIN_WIRE_RETURN};
            check(plugin_wire_send(worker, 1, &message) == 0);
            worker->channels[1].head.kind |= WIRE_IN_HEAD | PLUGIN_KIND_INT << 16;
            check(plugin_wire_await(host, 1, 0) == PLUGIN_WIRE_ARRIVED);
            check(plugin_wire_receive(host, 1, &message) == 1);
            check(plugin_wire_send(host, 1, &(plugin_wire_message){.kind = PLUGIN_WIRE_CALL}) == 0);
            host->channels[1].head.kind |= WIRE_IN_HEAD | PLUGIN_KIND_STRING << 16;
            check(plugin_wire_await(worker, 1, 0) == PLUGIN_WIRE_ARRIVED);
            check(plugin_wire_receive(worker, 1, &message) == 1);
            """
        ),
    ])
    func `The only value of a message`(situation: String, body: String) throws {
        let wire = "\(repository)/Sources/CPluginWire"
        let program = try CFixture.program(
            """
            #include "\(wire)/channels.c"
            #define check(condition) do { if (!(condition)) exit(__LINE__); } while (0)

            static plugin_wire *host, *worker;

            static void receive(const plugin_value *values, uint32_t count, plugin_wire_message *message) {
                plugin_wire_message sent = {.kind = PLUGIN_WIRE_CALL, .a = 3, .token = 9, .values = values, .count = count};
                check(plugin_wire_send(host, 1, &sent) == 0);
                check(plugin_wire_await(worker, 1, 0) == PLUGIN_WIRE_ARRIVED);
                check(plugin_wire_receive(worker, 1, message) == 0);
            }
            static plugin_wire_message *call(const plugin_value *values, uint32_t count) {
                static plugin_wire_message message;
                receive(values, count, &message);
                return &message;
            }
            static void answer(void) {
                plugin_wire_message message = {.kind = PLUGIN_WIRE_RETURN};
                check(plugin_wire_send(worker, 1, &message) == 0);
                check(plugin_wire_await(host, 1, 0) == PLUGIN_WIRE_ARRIVED);
                check(plugin_wire_receive(host, 1, &message) == 0);
            }
            int main(void) {
                int memory = plugin_wire_create();
                host = plugin_wire_map(memory, PLUGIN_WIRE_HOST);
                worker = plugin_wire_map(memory, PLUGIN_WIRE_WORKER);
                \(body)
                return 0;
            }
            """,
            [
                "-D_GNU_SOURCE=", "-pthread", "-I", wire, "-I", "\(wire)/include",
            ] + ["messages", "rooms", "values"].map { "\(wire)/\($0).c" })
        let process = Process()
        process.executableURL = URL(filePath: program)
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "line \(process.terminationStatus)")
    }
}
