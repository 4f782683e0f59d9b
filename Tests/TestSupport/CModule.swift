import Foundation

/// A module in C, generated while the tests run. A test states only what matters to it; everything else has a default
/// that makes a valid module: a target with the module's name and one action, `answer`, which replies with a text.
///
/// Bodies are C. Those of actions, hooks and events see `call`, `arguments`, `count`, and what `prelude` and `code`
/// define.
struct CModule: Sendable {
    var name = "Good"
    var version = "1.0.0"
    /// The name of the target; default: the name of the module.
    var target: String?
    /// The reply of `answer`.
    var answer = "yes"
    /// Statements at the beginning of `answer`.
    var body = ""
    /// Actions in addition to `answer`.
    var actions: [(name: String, body: String)] = []
    /// The manifest; default: a matching one.
    var manifest: String?
    /// Whether the manifest can be read without opening the file, and what the seal says instead of the manifest.
    var isSealed = false
    var sealedManifest: String?
    /// Additions to the default manifest, such as `"level": "basic",`.
    var moreManifest = ""
    /// Declarations before everything else.
    var code = ""
    /// The body of `activate`, which finally returns 0.
    var activate = ""
    /// The bodies of `setUp` and `tearDown`, if the module has these hooks. Code that resolves is added at the end.
    var setUp: String?
    var tearDown: String?
    /// The bodies of other hooks, by name. Code that resolves is added at the end, unless the hook is asynchronous.
    var hooks: KeyValuePairs<String, String> = [:]
    var asyncHooks: Set<String> = []
    /// Subscriptions: the event, additions to its manifest, and the body. Code that resolves is added at the end,
    /// unless the subscription is asynchronous.
    var events: [(name: String, manifest: String, body: String)] = []
    /// Targets instead of the one with `answer`. The bodies of their actions resolve themselves.
    var targets: [Target]?
    /// Types of objects, with their actions.
    var types: [(name: String, actions: [Action])] = []
    /// The body of the entry function before it returns the description.
    var entry = ""

    // The fields of the description, as C expressions.
    var magic = "PLUGIN_ABI_MAGIC"
    var size = "sizeof(plugin_module)"
    var major = "PLUGIN_ABI_MAJOR"
    var minor = "PLUGIN_ABI_MINOR"
    var toolchain = "{NULL, 0}"
    /// The size of the manifest; default: its number of bytes.
    var manifestCount: String?
    var functions = "functions"
    /// Entries of the function table in addition to the matching ones, and the total number of entries.
    var moreFunctions = ""
    var functionCount = "sizeof functions / sizeof *functions"
    /// The factories, each as an initializer, and their address and number.
    var makers = ""
    var factories: String?
    var factoryCount: String?

    struct Target {
        var name: String
        /// Additions to the manifest, as above.
        var manifest = ""
        var actions: [Action]
    }

    struct Action {
        var name: String
        /// Additions to the manifest, as above.
        var manifest = ""
        /// Name and type of each parameter, all required.
        var parameters: KeyValuePairs<String, String> = [:]
        var body: String
    }

    /// Compiles the module in a separate folder, and returns the path of the library.
    func build(_ flags: [String] = []) throws -> String { try CFixture.build(source, flags) }

    /// Compiles the module, and puts it into a folder by a rename. Returns the path.
    @discardableResult
    func build(into folder: String, as file: String, _ flags: [String] = []) throws -> String {
        let new = "\(folder)/.\(UUID().uuidString)"
        try copyFile(build(flags), to: new)
        guard rename(new, "\(folder)/\(file)") == 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
        return "\(folder)/\(file)"
    }

    // MARK: - The manifest

    private var allTargets: [Target] {
        let standard = [("answer", "\(body)\nreply(call, \"\(answer)\");")] + actions
        return targets ?? [Target(name: target ?? name, actions: standard.map { Action(name: $0.0, body: $0.1) })]
    }

    private var allHooks: [(name: String, body: String)] {
        [("setUp", setUp), ("tearDown", tearDown)].compactMap { name, body in body.map { (name, $0) } }
            + hooks.map { ($0, $1) }
    }

    private var fittingManifest: String {
        let targets = allTargets.map {
            "{\"name\": \"\($0.name)\", \($0.manifest)\"actions\": [\(Self.list($0.actions.map(\.json)))]}"
        }
        let types = types.map { "{\"name\": \"\($0.name)\", \"actions\": [\(Self.list($0.actions.map(\.json)))]}" }
        let hooks = allHooks.map { "{\"name\": \"\($0.name)\", \"async\": \(asyncHooks.contains($0.name))}" }
        let events = events.map { "{\"name\": \"\($0.name)\"\($0.manifest)}" }
        return """
            {"name": "\(name)", "version": "\(version)", \(moreManifest)"hooks": [\(Self.list(hooks))],
             \(events.isEmpty ? "" : "\"events\": [\(Self.list(events))],")\
             \(types.isEmpty ? "" : "\"types\": [\(Self.list(types))],")
             "targets": [\(Self.list(targets))]}
            """
    }

    private static func list(_ elements: [String]) -> String { elements.joined(separator: ", ") }

    // MARK: - The source

    /// The entries of the function table: the name, the C function, and the body of the function.
    private var table: [(name: String, function: String, body: String)] {
        func resolving(_ body: String, unless isAsync: Bool) -> String {
            isAsync ? body : "\(body)\nreply(call, \"\");"
        }
        // A test can list `action_answer` under other names.
        let actions = allTargets.enumerated().flatMap { number, target in
            target.actions.enumerated().map { place, action in
                let function = targets == nil ? "action_\(action.name)" : "action_\(number)_\(place)"
                return ("\(target.name)/\(action.name)", function, action.body)
            }
        }
        let ofObjects = types.enumerated().flatMap { number, type in
            type.actions.enumerated().map { ("\(type.name)#\($1.name)", "object_\(number)_\($0)", $1.body) }
        }
        let hooks = allHooks.map {
            ("@\($0.name)", "hook_\($0.name)", resolving($0.body, unless: asyncHooks.contains($0.name)))
        }
        let events = events.enumerated().map {
            ("!\($1.name)", "event_\($0)", resolving($1.body, unless: $1.manifest.contains("\"async\": true")))
        }
        return actions + ofObjects + hooks + events
    }

    var source: String {
        let table = table
        let bodies = table.map {
            """
            static void \($0.function)(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
                (void)data, (void)call, (void)arguments, (void)count;
                \($0.body)
            }
            """
        }
        let entries = table.map { "{TEXT(\"\($0.name)\"), \($0.function), NULL}," }
        let bytes = (manifest ?? fittingManifest).utf8.map(String.init)
        return """
            \(Self.prelude)
            \(code)
            \(bodies.joined(separator: "\n"))
            static const char manifest[] = {\(bytes.joined(separator: ","))};
            \(isSealed ? Self.seal(sealedManifest ?? manifest ?? fittingManifest) : "")
            static const plugin_function functions[] = {\(entries.joined(separator: "\n"))\(moreFunctions)};
            \(makers.isEmpty ? "" : "static const plugin_factory makers[] = {\(makers)};")
            static int32_t activate(void *data, const plugin_host *table) {
                (void)data;
                host = table;
                \(activate)
                return 0;
            }
            PLUGIN_MODULE_EXPORT const plugin_module *plugin_module_entry(void) {
                static plugin_module module = {
                    .magic = \(magic), .size = \(size), .abi_major = \(major), .abi_minor = \(minor),
                    .toolchain = \(toolchain), .manifest = {manifest, \(manifestCount ?? "sizeof manifest")},
                    .functions = \(functions), .function_count = \(functionCount),
                    .factories = \(factories ?? (makers.isEmpty ? "NULL" : "makers")),
                    .factory_count = \(factoryCount ?? (makers.isEmpty ? "0" : "sizeof makers / sizeof *makers")),
                    .activate = activate};
                \(entry)
                return &module;
            }
            """
    }

    private static func seal(_ text: String) -> String {
        """
        static const struct { plugin_seal header; char text[\(text.utf8.count)]; } seal
            __attribute__((section(PLUGIN_SEAL_SECTION), used)) = {
            {PLUGIN_SEAL_MAGIC, sizeof(plugin_seal), PLUGIN_ABI_MAJOR, PLUGIN_ABI_MINOR, \(text.utf8.count), 0, 0},
            {\(text.utf8.map(String.init).joined(separator: ","))}};
        """
    }

    private static let prelude = """
        #define _GNU_SOURCE
        #include <errno.h>
        #include <fcntl.h>
        #include <pthread.h>
        #include <signal.h>
        #include <stdatomic.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <time.h>
        #include <unistd.h>
        #include "plugin_abi.h"
        #define TEXT(literal) {literal, sizeof(literal) - 1} /* for static tables */
        static const plugin_host *host;
        static inline plugin_string text(const char *text) { return plugin_string_from(text); }
        static inline void reply_value(plugin_token token, plugin_value value) { host->resolve(host, token, &value); }
        static inline void reply_int(plugin_token token, int64_t number) { reply_value(token, plugin_value_int(number)); }
        static inline void reply(const plugin_call *call, const char *text) {
            reply_value(call->token, plugin_value_text(text));
        }
        static inline void refuse(const plugin_call *call, const char *text) { plugin_fail(host, call, "refused", text); }
        /* Passes on the outcome of one call as that of another, whose token is `data`. */
        static inline void pass_on(void *data, const plugin_value *value, const plugin_error *error) {
            plugin_pass_on(host, (plugin_token)data, value, error);
        }
        static inline plugin_request ask(const char *target, const char *action) {
            return plugin_request_action(text(target), text(action), NULL, 0);
        }
        /* Runs a function on a separate thread. */
        static inline void start(void *(*run)(void *), void *data) {
            pthread_t thread;
            if (pthread_create(&thread, 0, run, data) == 0) pthread_detach(thread);
        }
        static inline void *reply_later(void *token) {
            usleep(50000);
            reply_value((plugin_token)token, plugin_value_null());
            return NULL;
        }
        /* Replies after a while, from a separate thread. */
        static inline void start_reply(const plugin_call *call) { start(reply_later, (void *)call->token); }
        /* Adds a line to a file. */
        static inline void note(const char *file, const char *line) {
            int descriptor = open(file, O_WRONLY | O_CREAT | O_APPEND, 0600);
            if (descriptor >= 0 && write(descriptor, line, strlen(line)) >= 0) close(descriptor);
        }
        """
}

extension CModule.Action {
    fileprivate var json: String {
        let parameters = parameters.map { "{\"name\": \"\($0)\", \"type\": \"\($1)\", \"required\": true}" }
        return "{\"name\": \"\(name)\", \(manifest)\"parameters\": [\(parameters.joined(separator: ", "))]}"
    }
}
