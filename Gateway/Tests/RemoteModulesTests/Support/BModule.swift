import PluginABI

/// The module of the other host: results of all kinds, errors, cursors, callbacks, and slow actions.
///
/// - Parameter more: Further entries of the target's actions in the manifest: `, {"name": "new", …}`, each with a body.
func bModule(version: String = "1.0.0", _ more: [(declaration: String, name: String, body: String)] = []) -> CModule {
    var module = CModule(name: "ModB", version: version)
    let echo = "reply_value(call->token, arguments[0]);"
    let all = "reply_value(call->token, plugin_value_list(arguments, count));"
    let noting = """
        char path[200] = {0};
        memcpy(path, arguments[0].as.string, arguments[0].count < 190 ? arguments[0].count : 190);
        note(path, "x");
        """
    let waiting =
        noting + """
            strcat(path, ".go");
            for (int i = 0; i < 12000 && access(path, F_OK) != 0; i++) usleep(10000);
            reply(call, "slept");
            """
    let cursor = """
        int64_t *left = malloc(sizeof *left);
        *left = arguments[0].as.integer;
        plugin_object made = host->object_create(host, text("Items"), left, free);
        reply_value(call->token, plugin_value_object(made));
        host->object_release(host, made);
        """
    let later = cursor.replacing("Items", with: "Later")
    let counting = """
        for (int64_t i = 0; i < arguments[0].as.integer; i++) {
            plugin_entry number = {.value = plugin_value_int(i)};
            plugin_request request = {.size = sizeof request, .address = PLUGIN_ADDRESS_OBJECT,
                .object = arguments[1].as.object, .action = text("call"), .parameters = &number, .parameter_count = 1};
            host->perform(host, call->token, &request, NULL, NULL);
        }
        reply_int(call->token, arguments[0].as.integer);
        """
    let left = """
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        int64_t left = call->deadline ? call->deadline - (now.tv_sec * 1000000000 + now.tv_nsec) : -1;
        reply_int(call->token, left / 1000000);
        """
    let actions: [(String, String, String)] =
        [
            (
                #"{"name": "greet", "summary": "Greets", "remote": true, "idempotent": true, "result": "string", "parameters": [{"name": "name", "type": "string", "required": true}]}"#,
                "greet", echo
            ),
            (
                #"{"name": "later", "async": true, "remote": true, "parameters": [{"name": "name", "type": "any"}]}"#,
                "later",
                echo
            ),
            (#"{"name": "echo", "remote": true, "parameters": [{"name": "value", "type": "any"}]}"#, "echo", echo),
            (
                #"{"name": "real", "remote": true, "result": "double", "parameters": [{"name": "n", "type": "double"}]}"#,
                "real", echo
            ),
            (
                #"{"name": "bytes", "remote": true, "result": "bytes", "parameters": [{"name": "data", "type": "bytes", "required": true}]}"#,
                "bytes", echo
            ),
            (
                #"{"name": "upload", "remote": true, "parameters": [{"name": "name", "type": "string", "required": true}, {"name": "data", "type": "bytes", "required": true}, {"name": "size", "type": "int", "default": 7}, {"name": "note", "type": "string"}]}"#,
                "upload", all
            ),
            (
                #"{"name": "two", "remote": true, "parameters": [{"name": "a", "type": "bytes"}, {"name": "b", "type": "bytes"}]}"#,
                "two", all
            ),
            (
                #"{"name": "item", "remote": true, "result": "Item", "parameters": [{"name": "item", "type": "Item", "required": true}]}"#,
                "item", echo
            ),
            (
                #"{"name": "rest", "remote": true, "rest": true, "parameters": [{"name": "a", "type": "int", "default": 5}]}"#,
                "rest", all
            ),
            (
                #"{"name": "fail", "remote": true}"#, "fail",
                "plugin_fail(host, call, \"outOfStock\", \"No more %s %n.\");"
            ),
            (
                #"{"name": "append", "remote": true, "parameters": [{"name": "file", "type": "string"}]}"#, "append",
                noting + "reply(call, \"done\");"
            ),
            (
                #"{"name": "sleep", "remote": true, "parameters": [{"name": "file", "type": "string"}]}"#, "sleep",
                waiting
            ),
            (
                #"{"name": "sleepAgain", "remote": true, "idempotent": true, "parameters": [{"name": "file", "type": "string"}]}"#,
                "sleepAgain", waiting
            ),
            (
                #"{"name": "wait", "remote": true, "async": true, "parameters": [{"name": "file", "type": "string"}]}"#,
                "wait",
                noting + """
                    struct waiting *waiting = calloc(1, sizeof *waiting);
                    waiting->token = call->token;
                    snprintf(waiting->path, sizeof waiting->path, "%.180s.cancelled", path);
                    host->on_cancel(host, call->token, ended, waiting);
                    """
            ),
            (#"{"name": "left", "remote": true}"#, "left", left),
            (
                #"{"name": "trace", "remote": true}"#, "trace",
                """
                if (!plugin_call_contexts_of(host)->read(host, call->token, trace, (void *)call)) reply(call, "none");
                """
            ),
            (
                #"{"name": "items", "remote": true, "result": "Items", "parameters": [{"name": "count", "type": "int", "required": true}]}"#,
                "items", cursor
            ),
            (
                #"{"name": "laters", "remote": true, "result": "Later", "parameters": [{"name": "count", "type": "int", "required": true}]}"#,
                "laters", later
            ),
            (
                #"{"name": "count", "remote": true, "parameters": [{"name": "times", "type": "int", "required": true}, {"name": "then", "type": "object", "required": true}]}"#,
                "count", counting
            ),
            (#"{"name": "page", "remote": true, "result": "Page"}"#, "page", "reply(call, \"\");"),
            (#"{"name": "secret"}"#, "secret", "reply(call, \"\");"),
        ] + more.map { ($0.declaration, $0.name, $0.body) }
    module.code = """
        struct waiting { plugin_token token; char path[200]; };
        /* Notes the end of a call that was cancelled. */
        static void ended(void *data, int32_t cancelled) {
            struct waiting *waiting = data;
            if (cancelled) note(waiting->path, "x");
            reply_value(waiting->token, plugin_value_null());
            free(waiting);
        }
        static void trace(void *data, const plugin_call_context *context) {
            const plugin_call *call = data;
            char both[800];
            snprintf(both, sizeof both, "%.*s %.*s", (int)context->trace_parent.count,
                context->trace_parent.bytes, (int)context->trace_state.count, context->trace_state.bytes);
            reply(call, both);
        }
        """
    module.targets = [.init(name: "B", actions: actions.map { .init(name: $0.1, body: $0.2) })]
    module.types = [
        (
            "Items",
            [
                .init(
                    name: "next",
                    body: """
                        int64_t *left = call->instance;
                        if (*left > 0) reply_int(call->token, (*left)--);
                        else if (*left == 0) reply_value(call->token, plugin_value_null());
                        else plugin_fail(host, call, "broken", "The cursor is broken.");
                        """)
            ]
        ),
        (
            "Later",
            [
                .init(
                    name: "next",
                    body: """
                        int64_t *left = call->instance;
                        reply_value(call->token, *left > 0 ? plugin_value_int((*left)--) : plugin_value_null());
                        """)
            ]
        ), ("Page", [.init(name: "title", body: "reply(call, \"\");")]),
    ]
    module.manifest = """
        {"name": "ModB", "version": "\(version)", "summary": "The other side",
         "types": [{"name": "Items", "actions": [{"name": "next", "result": "double"}]},
                   {"name": "Later", "actions": [{"name": "next", "async": true}]},
                   {"name": "Page", "actions": [{"name": "title"}]}],
         "values": [{"name": "Item", "fields": [{"name": "id", "type": "string"}, {"name": "price", "type": "double"}]}],
         "targets": [{"name": "B", "actions": [\(actions.map(\.0).joined(separator: ", "))]}]}
        """
    return module
}
