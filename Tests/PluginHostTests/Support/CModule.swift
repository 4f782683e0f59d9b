import Foundation

/// A module in C, put together while the tests run from the bodies of its actions.
///
/// A body sees `call`, `arguments`, `count`, and what `prelude` defines.
struct CModule {
    var name: String
    /// More of the manifest: `"concurrency": "serial",`
    var manifest = ""
    /// Declarations before the actions.
    var code = ""
    var targets: [Target]
    var types: [(name: String, actions: [Action])] = []
    /// The initializer of the factories' table, in C.
    var factories = ""

    struct Target {
        var name: String
        /// More of the manifest, as above.
        var manifest = ""
        var actions: [Action]
    }

    struct Action {
        var name: String
        /// More of the manifest, as above.
        var manifest = ""
        /// Name and type of each parameter, all required.
        var parameters: KeyValuePairs<String, String> = [:]
        var body: String
    }

    /// Compiles it and returns the path of the library.
    func build() throws -> String { try CFixture.build(source, ["-pthread"], name: "lib\(name).so") }

    private var source: String {
        var functions: [(name: String, body: String)] = []
        for target in targets { functions += target.actions.map { ("\(target.name)/\($0.name)", $0.body) } }
        for type in types { functions += type.actions.map { ("\(type.name)#\($0.name)", $0.body) } }
        let bodies = functions.enumerated().map { index, function in
            """
            static void action\(index)(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
                (void)data, (void)call, (void)arguments, (void)count;
                \(function.body)
            }
            """
        }
        let table = functions.enumerated().map { "{{\"\($1.name)\", \($1.name.utf8.count)}, action\($0), 0}," }
        return """
            \(Self.prelude)
            \(code)
            \(bodies.joined(separator: "\n"))
            static const char manifest[] = \(literal(manifestJSON));
            static int32_t activate(void *data, const plugin_host *table) { (void)data; host = table; return 0; }
            PLUGIN_MODULE_EXPORT const plugin_module *plugin_module_entry(void) {
                static plugin_function functions[] = {\(table.joined(separator: "\n"))};
                \(factories.isEmpty ? "" : "static plugin_factory factories[] = {\(factories)};")
                static plugin_module module = {.magic = PLUGIN_ABI_MAGIC, .size = sizeof(plugin_module),
                    .abi_major = PLUGIN_ABI_MAJOR, .abi_minor = PLUGIN_ABI_MINOR,
                    .manifest = {manifest, sizeof manifest - 1}, .functions = functions,
                    .function_count = \(functions.count), .activate = activate,
                    \(factories.isEmpty ? "" : ".factories = factories, .factory_count = sizeof factories / sizeof *factories,")
                };
                return &module;
            }
            """
    }

    private var manifestJSON: String {
        let targets = targets.map {
            "{\"name\":\"\($0.name)\",\($0.manifest)\"actions\":[\($0.actions.map(\.json).joined(separator: ","))]}"
        }
        let types = types.map {
            "{\"name\":\"\($0.name)\",\"actions\":[\($0.actions.map(\.json).joined(separator: ","))]}"
        }
        return "{\"name\":\"\(name)\",\"version\":\"1.0.0\",\(manifest)\"targets\":[\(targets.joined(separator: ","))],"
            + "\"types\":[\(types.joined(separator: ","))]}"
    }

    private func literal(_ text: String) -> String {
        "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }

    private static let prelude = """
        #define _GNU_SOURCE
        #include "plugin_abi.h"
        #include <pthread.h>
        #include <stdatomic.h>
        #include <stdlib.h>
        #include <string.h>
        #include <time.h>
        #include <unistd.h>
        static const plugin_host *host;
        static inline void reply_int(plugin_token token, int64_t number) {
            plugin_value value = plugin_value_int(number);
            host->resolve(host, token, &value);
        }
        static inline void reply_value(plugin_token token, plugin_value value) { host->resolve(host, token, &value); }
        static inline plugin_string text(const char *text) { return plugin_string_make(text, text ? strlen(text) : 0); }
        /* Passes the outcome of one call on as that of another, whose token is `data`. */
        static inline void pass_on(void *data, const plugin_value *value, const plugin_error *error) {
            plugin_token token = (plugin_token)data;
            if (error) host->reject(host, token, error); else host->resolve(host, token, value);
        }
        static inline plugin_request ask(const char *target, const char *action) {
            plugin_request request = {.size = sizeof request, .target = text(target), .action = text(action)};
            return request;
        }
        static inline void start(void *(*run)(void *), void *data) {
            pthread_t thread;
            if (pthread_create(&thread, 0, run, data) == 0) pthread_detach(thread);
        }
        """
}

extension CModule.Action {
    fileprivate var json: String {
        let parameters = parameters.map { "{\"name\":\"\($0)\",\"type\":\"\($1)\",\"required\":true}" }
        return "{\"name\":\"\(name)\",\(manifest)\"parameters\":[\(parameters.joined(separator: ","))]}"
    }
}
