import Foundation

/// A module in C, of which a test says only what matters to it. Left alone it is a good one: a target of the module's
/// name with one action, `answer`, that replies with a text.
struct PlainModule {
    var name = "Good"
    var version = "1.0.0"
    /// Default: the name of the module.
    var target: String?
    /// What `answer` replies.
    var answer = "yes"
    /// Statements at the beginning of `answer`.
    var body = ""
    /// Further actions: their names and bodies.
    var actions: [(name: String, body: String)] = []
    /// The manifest; default: one that fits.
    var manifest: String?
    /// C in front of everything else.
    var code = ""
    /// The body of `activate`, which returns 0 at its end.
    var activate = ""
    /// The body of `setUp` and `tearDown`, if it has these hooks; they resolve at their end.
    var setUp: String?
    var tearDown: String?
    /// The bodies of other hooks, by their names; they resolve at their end unless they are asynchronous.
    var hooks: KeyValuePairs<String, String> = [:]
    var asyncHooks: Set<String> = []
    /// More of the manifest that fits: `"level": "basic",`
    var moreManifest = ""
    /// Subscriptions: the event, more of its manifest, and the body, which resolves at its end unless it is asynchronous.
    var events: [(name: String, manifest: String, body: String)] = []
    /// The body of the entry function before it returns the description.
    var entry = ""

    // C expressions, for the description.
    var magic = "PLUGIN_ABI_MAGIC"
    var size = "sizeof(plugin_module)"
    var major = "PLUGIN_ABI_MAJOR"
    var minor = "PLUGIN_ABI_MINOR"
    var toolchain = "{NULL, 0}"
    /// Of the manifest; default: that of its bytes.
    var manifestCount: String?
    var functions = "functions"
    /// Entries of the function table in addition to those that fit, and how many entries there are in all.
    var moreFunctions = ""
    var functionCount = "sizeof functions / sizeof *functions"
    var factories = "NULL"
    var factoryCount = "0"

    /// Compiles it and returns the path, in a folder of its own.
    func build(_ flags: [String] = []) throws -> String { try CFixture.build(source, flags) }

    /// Compiles it and puts it into a folder at once, as a rename does. Returns the path.
    @discardableResult
    func build(into folder: String, as file: String, _ flags: [String] = []) throws -> String {
        let new = "\(folder)/.\(UUID().uuidString)"
        try copyFile(build(flags), to: new)
        guard rename(new, "\(folder)/\(file)") == 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
        return "\(folder)/\(file)"
    }

    private var allHooks: [(name: String, body: String)] {
        [("setUp", setUp), ("tearDown", tearDown)].compactMap { name, body in body.map { (name, $0) } }
            + hooks.map { ($0, $1) }
    }

    private var fittingManifest: String {
        let names = (["answer"] + actions.map(\.name)).map { "{\"name\": \"\($0)\"}" }.joined(separator: ", ")
        let hooks = allHooks.map { "{\"name\": \"\($0.name)\", \"async\": \(asyncHooks.contains($0.name))}" }
            .joined(separator: ", ")
        let events = events.map { "{\"name\": \"\($0.name)\"\($0.manifest)}" }.joined(separator: ", ")
        return """
            {"name": "\(name)", "version": "\(version)", \(moreManifest)"hooks": [\(hooks)],\(events.isEmpty ? "" : " \"events\": [\(events)],")
             "targets": [{"name": "\(target ?? name)", "actions": [\(names)]}]}
            """
    }

    private func resolving(_ body: String, unless isAsync: Bool) -> String {
        isAsync ? body : "\(body)\nreply(call, \"\");"
    }

    private func function(_ name: String, _ body: String) -> String {
        """
        static void \(name)(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
            (void)data, (void)arguments, (void)count;
            \(body)
        }

        """
    }

    var source: String {
        let all = [("answer", "\(body)\nreply(call, \"\(answer)\");")] + actions
        let bytes = Array((manifest ?? fittingManifest).utf8)
        let table =
            all.map { "{TEXT(\"\(target ?? name)/\($0.0)\"), action_\($0.0), NULL}," }
            + allHooks.map { "{TEXT(\"@\($0.name)\"), hook_\($0.name), NULL}," }
            + events.enumerated().map { "{TEXT(\"!\($1.name)\"), event_\($0), NULL}," }
        return """
            #define _GNU_SOURCE
            #include <errno.h>
            #include <fcntl.h>
            #include <pthread.h>
            #include <signal.h>
            #include <stdio.h>
            #include <stdlib.h>
            #include <string.h>
            #include <unistd.h>
            #include "plugin_abi.h"
            #define TEXT(literal) {literal, sizeof(literal) - 1} /* for static tables */
            static const plugin_host *host;
            static inline void reply(const plugin_call *call, const char *text) {
                plugin_value value = plugin_value_string(text, (uint32_t)strlen(text));
                host->resolve(host, call->token, &value);
            }
            static inline void refuse(const plugin_call *call, const char *text) {
                plugin_error error = {PLUGIN_STRING("refused"), {text, strlen(text)}, {NULL, 0}};
                host->reject(host, call->token, &error);
            }
            /* Adds a line to a file. */
            static inline void note(const char *file, const char *line) {
                int descriptor = open(file, O_WRONLY | O_CREAT | O_APPEND, 0600);
                if (descriptor >= 0 && write(descriptor, line, strlen(line)) >= 0) close(descriptor);
            }
            static inline void *reply_later(void *token) {
                usleep(50000);
                plugin_value value = plugin_value_null();
                host->resolve(host, (plugin_token)token, &value);
                return NULL;
            }
            /* Replies after a while, from a thread of its own. */
            static inline void start_reply(const plugin_call *call) {
                pthread_t thread;
                if (pthread_create(&thread, NULL, reply_later, (void *)call->token) == 0) pthread_detach(thread);
            }
            \(code)
            \(all.map { function("action_\($0.0)", $0.1) }.joined())
            \(allHooks.map { function("hook_\($0.name)", resolving($0.body, unless: asyncHooks.contains($0.name))) }
                .joined())
            \(events.enumerated().map {
                function("event_\($0)", resolving($1.body, unless: $1.manifest.contains("\"async\": true")))
            }.joined())
            static const char manifest[] = {\(bytes.map(String.init).joined(separator: ","))};
            static const plugin_function functions[] = {\(table.joined(separator: "\n"))\(moreFunctions)};
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
                    .factories = \(factories), .factory_count = \(factoryCount), .activate = activate};
                \(entry)
                return &module;
            }
            """
    }
}
