/// A module with everything that a description can contain: records, enumerations, optional results, cursors, callbacks
/// and routes.
let storeModule: CModule = {
    var module = CModule(name: "Store")
    let remote = "\"remote\": true, "
    module.code = """
        static int is_size(const plugin_value *value) {
            plugin_string size = plugin_string_make(value->as.string, value->count);
            return plugin_string_equals(size, "small") || plugin_string_equals(size, "large");
        }
        """
    module.targets = [
        .init(
            name: "Store",
            actions: [
                .init(
                    name: "item",
                    manifest: remote + "\"summary\": \"One item\", \"result\": \"Item\", ",
                    parameters: ["id": "string", "size": "Size"],
                    body: """
                        if (!is_size(&arguments[1])) {
                            plugin_fail(host, call, "unknownSize", "There is no such size.");
                            return;
                        }
                        plugin_entry entries[] = {{TEXT("id"), arguments[0]}, {TEXT("size"), arguments[1]},
                                                  {TEXT("tags"), plugin_value_list(arguments, 1)}};
                        reply_value(call->token, plugin_value_map(entries, 3));
                        """),
                .init(
                    name: "find", manifest: remote + "\"result\": \"Item?\", ", parameters: ["id": "string"],
                    body: "reply_value(call->token, plugin_value_null());"),
                .init(
                    name: "count", manifest: remote + "\"result\": \"Numbers\", ", parameters: ["from": "int"],
                    body: """
                        int64_t *left = malloc(sizeof *left);
                        *left = 2;
                        plugin_object made = host->object_create(host, text("Numbers"), left, free);
                        reply_value(call->token, plugin_value_object(made));
                        host->object_release(host, made);
                        """),
                .init(
                    name: "watch", manifest: remote + "\"result\": \"int\", ", parameters: ["then": "object"],
                    body: """
                        plugin_request request = plugin_request_object(arguments[0].as.object, text("call"), NULL, 0);
                        host->perform(host, call->token, &request, ignore, NULL);
                        reply_int(call->token, 1);
                        """),
                .init(
                    name: "bytes", manifest: remote + "\"result\": \"bytes\", ", parameters: ["data": "bytes"],
                    body: "reply_value(call->token, arguments[0]);"),
                .init(
                    name: "keys", manifest: remote + "\"result\": \"int\", ", parameters: ["entries": "map"],
                    body: "reply_int(call->token, arguments[0].count);"),
                .init(
                    name: "join", manifest: remote + "\"result\": \"list\", ",
                    parameters: ["words": "list", "mark": "bool", "scale": "double"],
                    body: "reply_value(call->token, plugin_value_list(arguments, count));"),
                .init(
                    name: "filter", manifest: remote + "\"rest\": true, \"result\": \"int\", ",
                    parameters: ["id": "string"], body: "reply_int(call->token, 1);"),
                .init(name: "page", manifest: remote + "\"result\": \"Page\", ", body: "reply(call, \"\");"),
            ])
    ]
    module.code += """

        static void ignore(void *data, const plugin_value *value, const plugin_error *error) {
            (void)data, (void)value, (void)error;
        }
        """
    module.types = [
        (
            "Numbers",
            [
                .init(
                    name: "next",
                    body: """
                        int64_t *left = call->instance;
                        if (*left > 0) reply_int(call->token, (*left)--);
                        else reply_value(call->token, plugin_value_null());
                        """)
            ]
        ), ("Page", [.init(name: "content", body: "reply(call, \"\");")]),
    ]
    module.moreManifest = """
        "values": [
            {"name": "Size", "cases": ["small", {"name": "big", "value": "large"}]},
            {"name": "Item", "summary": "What is sold", "fields": [
                {"name": "id", "type": "string", "summary": "Its number"}, {"name": "size", "type": "Size"},
                {"name": "price", "type": "double?"}, {"name": "tags", "type": "list<string>"}]}
        ],
        "routes": [
            {"pattern": "https://*/items/:id/:size?", "action": "Store/item", "summary": "An item",
             "defaults": {"size": "small"}},
            {"pattern": "http://*/numbers/:from(\\\\d{1,9}).json", "action": "Store/count"},
            {"pattern": "//own.example/watch", "action": "Store/watch"},
            {"pattern": "http://own.example/plain", "action": "Store/find", "defaults": {"id": "x"}},
            {"pattern": "https://*/maps", "action": "Store/keys"}, {"pattern": "https://*/join", "action": "Store/join"},
            {"pattern": "https://*/bytes", "action": "Store/bytes"},
            {"pattern": "https://*/files/:id+", "action": "Store/find"},
            {"pattern": "https://*/healthz", "action": "Store/find", "defaults": {"id": "x"}},
            {"pattern": "app://store/:id", "action": "Store/find"}
        ],
        """
    return module
}()
