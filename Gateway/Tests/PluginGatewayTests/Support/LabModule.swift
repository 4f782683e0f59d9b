/// A module with what the samples lack: bytes, cursors, HTTP routes, errors, and slow actions.
let labModule: CModule = {
    var module = CModule(name: "Lab")
    let remote = "\"remote\": true, "
    module.targets = [
        .init(
            name: "Lab",
            actions: [
                .init(
                    name: "echo", manifest: remote, parameters: ["value": "any"],
                    body: "reply_value(call->token, arguments[0]);"),
                .init(
                    name: "number", manifest: remote, parameters: ["n": "int"],
                    body: "reply_value(call->token, arguments[0]);"),
                .init(
                    name: "real", manifest: remote, parameters: ["n": "double"],
                    body: "reply_value(call->token, arguments[0]);"),
                .init(
                    name: "bytes", manifest: remote + "\"result\": \"bytes\", ", parameters: ["data": "bytes"],
                    body: "reply_value(call->token, arguments[0]);"),
                .init(name: "secret", body: "reply(call, \"secret\");"),
                .init(name: "hidden", parameters: ["data": "bytes"], body: "reply(call, \"hidden\");"),
                .init(name: "fail", manifest: remote, body: "plugin_fail(host, call, \"outOfStock\", \"No more.\");"),
                .init(
                    name: "demanding", manifest: "\"remote\": true, \"demands\": [\"login\"], ",
                    body: "reply(call, \"in\");"),
                .init(
                    name: "sleep", manifest: remote, parameters: ["file": "string"],
                    body: """
                        char path[200] = {0};
                        memcpy(path, arguments[0].as.string, arguments[0].count < 199 ? arguments[0].count : 199);
                        note(path, "x");
                        strcat(path, ".go");
                        for (int i = 0; i < 12000 && access(path, F_OK) != 0; i++) usleep(10000);
                        reply(call, "slept");
                        """),
                .init(
                    name: "cursor", manifest: remote + "\"result\": \"Cursor\", ", parameters: ["count": "int"],
                    body: """
                        int64_t *left = malloc(sizeof *left);
                        *left = arguments[0].as.integer;
                        plugin_object made = host->object_create(host, text("Cursor"), left, free);
                        reply_value(call->token, plugin_value_object(made));
                        host->object_release(host, made);
                        """),
                .init(
                    name: "slowCursor", manifest: remote + "\"result\": \"SlowCursor\", ",
                    parameters: ["file": "string"],
                    body: """
                        char *path = calloc(1, 200);
                        memcpy(path + 1, arguments[0].as.string, arguments[0].count < 190 ? arguments[0].count : 190);
                        plugin_object made = host->object_create(host, text("SlowCursor"), path, free);
                        reply_value(call->token, plugin_value_object(made));
                        host->object_release(host, made);
                        """),
                .init(
                    name: "item", manifest: remote, parameters: ["id": "string", "size": "int"], body: listArguments),
            ])
    ]
    module.types = [
        (
            // Returns one element, and ends when its file exists.
            "SlowCursor",
            [
                .init(
                    name: "next",
                    body: """
                        char *path = call->instance;
                        if (!path[0]++) reply_int(call->token, 1);
                        else {
                            for (int i = 0; i < 12000 && access(path + 1, F_OK) != 0; i++) usleep(10000);
                            reply_value(call->token, plugin_value_null());
                        }
                        """)
            ]
        ),
        (
            "Cursor",
            [
                .init(
                    name: "next",
                    body: """
                        int64_t *left = call->instance;
                        if (*left > 0) reply_int(call->token, (*left)--);
                        else reply_value(call->token, plugin_value_null());
                        """)
            ]
        ),
    ]
    module.moreManifest = """
        "routes": [
            {"pattern": "https://*/shop/:id", "action": "Lab/item", "defaults": {"size": 1}},
            {"pattern": "https://own.example/only", "action": "Lab/item", "defaults": {"id": "own", "size": 2}},
            {"pattern": "https://*/hidden", "action": "Lab/secret"}
        ],
        """
    return module
}()

private let listArguments = "reply_value(call->token, plugin_value_list(arguments, count));"
