import Foundation

/// A module that writes to the file named by `FLEET_LOG` what it executes, and when it starts and ends.
enum ShopModule {
    /// - Parameters:
    ///   - version: Its version.
    ///   - body: The statements that its actions run before they reply, with `id` as the number of the request.
    static func build(_ version: String, _ body: String = "") throws -> String {
        var module = CModule(name: "Shop", version: version)
        module.code = """
            static int64_t milliseconds(void) {
                struct timespec time;
                clock_gettime(CLOCK_MONOTONIC, &time);
                return time.tv_sec * 1000 + time.tv_nsec / 1000000;
            }
            static void write_down(const char *what, int64_t number) {
                char line[100];
                snprintf(line, sizeof line, "%s \(version) %lld\\n", what, (long long)number);
                note(getenv("FLEET_LOG"), line);
            }
            static void act(const plugin_call *call, const plugin_value *arguments) {
                int64_t id = arguments[0].as.integer;
                write_down("did", id);
                if (id % 3 == 0) usleep(40000); /* what is not idempotent, so that a host can be killed within it */
                \(body)
                char answer[100];
                snprintf(answer, sizeof answer, "\(version) %s %lld", getenv("FLEET_NAME"), (long long)id);
                reply(call, answer);
            }
            """
        func action(_ name: String, _ manifest: String) -> CModule.Action {
            .init(
                name: name, manifest: "\"remote\": true, \(manifest)", parameters: ["id": "int"],
                body: "act(call, arguments);")
        }
        module.targets = [.init(name: "Shop", actions: [action("look", "\"idempotent\": true, "), action("buy", "")])]
        module.setUp = "write_down(\"up\", milliseconds());"
        module.tearDown = "write_down(\"down\", milliseconds());"
        return try module.build()
    }

    static let broken = "plugin_fail(host, call, \"broken\", \"This version is broken.\"); return;"
}
