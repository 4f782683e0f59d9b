@testable import TestSupport

/// Modules in C that violate the rules of the boundary.
extension BoundaryTests {
    static let careless = CModule(
        name: "Careless",
        code: """
            static int32_t status; static _Atomic plugin_token kept; static atomic_int accepted, told[2]; static char last[64];
            static void hear(void *data, const plugin_value *value, const plugin_error *error) {
                (void)data, (void)value;
                memset(last, 0, sizeof last);
                if (error) memcpy(last, error->code.bytes, error->code.count);
            }
            static int is(const plugin_value *value, const char *word) {
                return plugin_string_equals(plugin_string_of(value), word);
            }
            static plugin_value *nest(int depth, plugin_value inner) {
                static plugin_value values[256];
                values[0] = inner;
                for (int i = 1; i <= depth; i++) values[i] = plugin_value_list(&values[i - 1], 1);
                return &values[depth];
            }
            static void tell(void *data, int32_t cancelled) { (void)data; atomic_fetch_add(&told[cancelled], 1); }
            static void *reply7(void *data) { reply_int((plugin_token)data, 7); return 0; }
            static void *reply_and_count(void *data) {
                plugin_value value = plugin_value_int(1);
                if (host->resolve(host, (plugin_token)data, &value) == PLUGIN_REPLY_ACCEPTED) atomic_fetch_add(&accepted, 1);
                return 0;
            }
            static _Atomic plugin_token contested; static atomic_int rival_replied; static int64_t taken[2];
            static void *rival(void *data) {
                (void)data;
                for (;;) {
                    plugin_token token = atomic_load(&contested);
                    if (token == 1) return 0;
                    if (token == 0) { sched_yield(); continue; }
                    atomic_store(&contested, 0);
                    plugin_value value = plugin_value_int(1);
                    if (host->resolve(host, token, &value) == PLUGIN_REPLY_ACCEPTED) taken[1]++;
                    atomic_store(&rival_replied, 1);
                }
            }
            """,
        targets: [
            .init(
                name: "Careless",
                actions: [
                    .init(
                        name: "request", parameters: ["what": "string"],
                        body: """
                            const plugin_value *what = arguments;
                            plugin_string bad = {"a\\xFF", 2};
                            plugin_entry entry = {text("name"), plugin_value_string("x", 1)}, inner = entry;
                            plugin_request request = ask("B", "greet");
                            request.parameters = &entry; request.parameter_count = 1;
                            if (is(what, "target")) request.target = bad;
                            if (is(what, "action")) request.action = bad;
                            if (is(what, "key")) entry.key = bad;
                            if (is(what, "value")) entry.value = plugin_value_string("\\xC0\\x80", 2);
                            if (is(what, "mapKey")) { inner.key = bad; entry.value = plugin_value_map(&inner, 1); }
                            if (is(what, "nullTarget")) request.target = plugin_string_make(0, 5);
                            if (is(what, "nullText")) entry.value = plugin_value_string(0, 5);
                            if (is(what, "nullBytes")) entry.value = plugin_value_bytes(0, 5);
                            if (is(what, "nullList")) entry.value = plugin_value_list(0, 5);
                            if (is(what, "nullMap")) entry.value = plugin_value_map(0, 5);
                            if (is(what, "nullParameters")) request.parameters = 0;
                            if (is(what, "kind")) entry.value.kind = 9;
                            if (is(what, "deepList")) entry.value = *nest(129, plugin_value_int(1));
                            if (is(what, "deepEmpty")) entry.value = *nest(128, plugin_value_list(0, 0));
                            if (is(what, "size")) request.size = 40;
                            if (is(what, "address")) request.address = 99;
                            if (is(what, "hugeCount")) request.parameter_count = UINT64_MAX;
                            if (is(what, "hugeName")) request.target.count = UINT64_MAX;
                            if (is(what, "longTarget")) request.target.count = UINT64_C(1) << 40;
                            if (is(what, "longAction")) request.action.count = UINT64_C(1) << 40;
                            if (is(what, "longKey")) entry.key.count = UINT64_C(1) << 40;
                            if (is(what, "nullKey")) entry.key = plugin_string_make(0, 4);
                            if (is(what, "nullLongKey")) {
                                request.target = text("Careless"); request.action = text("long");
                                entry.key = plugin_string_make(0, 9);
                            }
                            plugin_entry two[] = {{text("first"), plugin_value_int(1)}, {text("second"), plugin_value_string("\\xC0", 1)}};
                            if (strncmp(what->as.string, "own", 3) == 0) {
                                entry.key = text("value");
                                request.target = text("Careless");
                            }
                            if (is(what, "own bytes")) { request.action = text("bytes"); entry.value = plugin_value_bytes(0, 5); }
                            if (is(what, "own list")) { request.action = text("list"); entry.value = plugin_value_list(0, 5); }
                            if (is(what, "own deep list")) {
                                request.action = text("list"); entry.value = *nest(129, plugin_value_int(1));
                            }
                            if (is(what, "own map")) { request.action = text("map"); entry.value = plugin_value_map(0, 5); }
                            if (is(what, "own map key")) {
                                request.action = text("map"); inner.key = bad; entry.value = plugin_value_map(&inner, 1);
                            }
                            if (is(what, "own object")) {
                                request.action = text("object"); entry.value = plugin_value_object(12345);
                            }
                            if (is(what, "own any")) { request.action = text("any"); entry.value.kind = UINT32_MAX; }
                            if (is(what, "own second")) {
                                request.action = text("two"); request.parameters = two; request.parameter_count = 2;
                            }
                            if (is(what, "own async")) {
                                request.action = text("async"); entry.key = text("name");
                                entry.value = plugin_value_string("\\xC0\\x80", 2);
                                host->call(host, call->token, &request, hear, 0);
                                reply_value(call->token, plugin_value_string(last, strlen(last)));
                                return;
                            }
                            if (is(what, "nullKeyAsync")) {
                                request.target = text("Careless"); request.action = text("async");
                                entry.key = plugin_string_make(0, 4);
                                host->call(host, call->token, &request, hear, 0);
                                reply_value(call->token, plugin_value_string(last, strlen(last)));
                                return;
                            }
                            if (is(what, "object")) entry.value = plugin_value_object(12345);
                            if (is(what, "url")) { request.address = PLUGIN_ADDRESS_URL; request.target = bad; }
                            host->perform(host, call->token, &request, hear, 0);
                            reply_value(call->token, plugin_value_string(last, strlen(last)));
                            """),
                    .init(name: "bytes", parameters: ["value": "bytes"], body: "reply_int(call->token, 1);"),
                    .init(name: "list", parameters: ["value": "list"], body: "reply_int(call->token, 1);"),
                    .init(name: "map", parameters: ["value": "map"], body: "reply_int(call->token, 1);"),
                    .init(name: "object", parameters: ["value": "object"], body: "reply_int(call->token, 1);"),
                    .init(name: "any", parameters: ["value": "any"], body: "reply_int(call->token, 1);"),
                    .init(
                        name: "two", parameters: ["first": "int", "second": "string"],
                        body: "reply_int(call->token, 1);"),
                    .init(name: "long", parameters: ["nine_long": "string"], body: "reply_int(call->token, 1);"),
                    .init(
                        name: "async", manifest: "\"async\":true,", parameters: ["name": "string"],
                        body: "reply_int(call->token, 1);"),
                    .init(
                        name: "result", parameters: ["what": "string"],
                        body: """
                            const plugin_value *what = arguments;
                            plugin_value result = plugin_value_null();
                            plugin_entry entry = {{"\\xFF", 1}, plugin_value_int(1)};
                            plugin_value empty[] = {plugin_value_string(0, 0), plugin_value_bytes(0, 0),
                                plugin_value_list(0, 0), plugin_value_map(0, 0)};
                            if (is(what, "null")) { status = host->resolve(host, call->token, 0); return; }
                            if (is(what, "text")) result = plugin_value_string("12345678\\xE6\\xBC", 10);
                            if (is(what, "key")) result = plugin_value_map(&entry, 1);
                            if (is(what, "kind")) result.kind = 4000000000u;
                            if (is(what, "depth128")) result = *nest(128, plugin_value_int(1));
                            if (is(what, "depth129")) result = *nest(129, plugin_value_int(1));
                            if (is(what, "depth129empty")) result = *nest(128, plugin_value_list(0, 0));
                            if (is(what, "nullText")) result = plugin_value_string(0, 1);
                            if (is(what, "nullList")) result = plugin_value_list(0, UINT32_MAX);
                            if (is(what, "object")) result = plugin_value_object(0);
                            if (is(what, "emptyStrings")) result = plugin_value_list(empty, 4);
                            status = host->resolve(host, call->token, &result);
                            """),
                    .init(name: "lastStatus", body: "reply_int(call->token, status);"),
                    .init(
                        name: "reject", parameters: ["what": "string"],
                        body: """
                            plugin_error error = {text("bad"), text("Bad."), {0, 0}};
                            if (is(arguments, "null")) { host->reject(host, call->token, 0); return; }
                            if (is(arguments, "broken")) error.message = plugin_string_make("\\xFFx", 2);
                            if (is(arguments, "missing")) error = (plugin_error){{0, 5}, {0, UINT64_MAX}, {0, 0}};
                            if (is(arguments, "other")) error.source = text("Elsewhere");
                            host->reject(host, call->token, &error);
                            """),
                    .init(
                        name: "nulls",
                        body: """
                            plugin_request request = ask("B", "greet");
                            host->perform(host, call->token, &request, 0, 0);
                            host->call(host, call->token, &request, 0, 0);
                            host->call(host, call->token, 0, hear, 0);
                            memset(last, 0, sizeof last);
                            host->perform(host, call->token, 0, hear, 0);
                            host->on_cancel(host, call->token, 0, 0);
                            reply_value(call->token, plugin_value_string(last, strlen(last)));
                            """),
                    .init(
                        name: "names",
                        body: """
                            plugin_string none = {0, 5}, huge = {0, UINT64_MAX}, bad = {"\\xFF", 1};
                            int64_t found = host->get_extension(host, none) || host->get_extension(host, huge)
                                || host->get_extension(host, bad) || host->get_extension(host, text("pluginhost.log/2"))
                                || host->object_create(host, none, 0, 0) || host->object_create(host, bad, 0, 0);
                            reply_int(call->token, found);
                            """),
                    .init(
                        name: "log",
                        body: """
                            const plugin_log *log = host->get_extension(host, text(PLUGIN_LOG_EXTENSION));
                            log->write(host, call->token, PLUGIN_LOG_INFO, text("line 1"));
                            log->write(host, 0, 4000000000u, plugin_string_make("line \\xFF", 6));
                            log->write(host, 7, 0, plugin_string_make(0, 9));
                            reply_int(call->token, 0);
                            """),
                    .init(name: "silent", body: "kept = call->token;"),
                    .init(name: "keep", manifest: "\"async\":true,", body: "kept = call->token;"),
                    .init(
                        name: "watch", manifest: "\"async\":true,",
                        body: "host->on_cancel(host, call->token, tell, 0); kept = call->token;"),
                    .init(
                        name: "told",
                        body: """
                            plugin_value values[] = {plugin_value_int(told[0]), plugin_value_int(told[1])};
                            reply_value(call->token, plugin_value_list(values, 2));
                            """),
                    .init(name: "keptToken", body: "reply_int(call->token, (int64_t)kept);"),
                    .init(
                        name: "lateReply",
                        body: """
                            plugin_value value = plugin_value_int(1);
                            reply_int(call->token, host->resolve(host, kept, &value));
                            """),
                    .init(
                        name: "elsewhere",
                        body: """
                            pthread_t thread;
                            pthread_create(&thread, 0, reply7, (void *)call->token);
                            pthread_join(thread, 0);
                            """),
                    .init(
                        name: "contested",
                        body: """
                            static unsigned round;
                            if (round++ == 0) start(rival, 0);
                            atomic_store(&contested, call->token);
                            while (atomic_load(&contested) != 0) sched_yield(); // Now both have arrived.
                            for (volatile int wait = round % 64; wait > 0; wait--) {}
                            plugin_value value = plugin_value_int(0);
                            if (host->resolve(host, call->token, &value) == PLUGIN_REPLY_ACCEPTED) taken[0]++;
                            while (!atomic_exchange(&rival_replied, 0)) sched_yield();
                            """),
                    .init(
                        name: "contestedTaken",
                        body: """
                            atomic_store(&contested, 1); // Ends the thread.
                            plugin_value values[] = {plugin_value_int(taken[0]), plugin_value_int(taken[1])};
                            reply_value(call->token, plugin_value_list(values, 2));
                            """),
                    .init(name: "racing", body: "start(reply7, (void *)call->token); sched_yield();"),
                    .init(
                        name: "twice",
                        body: """
                            reply_int(call->token, 1);
                            plugin_value value = plugin_value_int(2);
                            status = host->resolve(host, call->token, &value);
                            """),
                    .init(
                        name: "manyReplies", manifest: "\"async\":true,",
                        body: "for (int i = 0; i < 8; i++) start(reply_and_count, (void *)call->token);"),
                    .init(name: "accepted", body: "reply_int(call->token, accepted);"),
                    .init(
                        name: "handlers",
                        body: """
                            int before = told[0];
                            host->on_cancel(host, call->token, tell, 0);
                            host->on_cancel(host, 1, tell, 0);
                            reply_int(call->token, told[0] - before);
                            """),
                    .init(
                        name: "cancelOwn",
                        body: """
                            plugin_request request = ask("Careless", "keep");
                            plugin_token token = host->call(host, call->token, &request, hear, 0);
                            host->cancel(host, token);
                            host->cancel(host, token);
                            reply_value(call->token, plugin_value_string(last, strlen(last)));
                            """),
                ])
        ])

    /// A module that uses tokens of other calls.
    static let thief = CModule(
        name: "Thief",
        code: """
            static int64_t told;
            static void tell(void *data, int32_t cancelled) { (void)data; told += cancelled ? 1000000 : 0; }
            static void ignore(void *data, const plugin_value *value, const plugin_error *error) {
                (void)data, (void)value, (void)error;
            }
            """,
        targets: [
            .init(
                name: "Thief",
                actions: [
                    .init(
                        name: "resolve", parameters: ["token": "int"],
                        body: "reply_int(call->token, host->resolve(host, (plugin_token)arguments[0].as.integer, 0));"),
                    .init(
                        name: "reject", parameters: ["token": "int"],
                        body: "reply_int(call->token, host->reject(host, (plugin_token)arguments[0].as.integer, 0));"),
                    .init(
                        name: "onCancel", parameters: ["token": "int"],
                        body: """
                            host->on_cancel(host, (plugin_token)arguments[0].as.integer, tell, 0);
                            reply_int(call->token, told);
                            """),
                    .init(
                        name: "garbage",
                        body: """
                            uint64_t random = 88172645463325252u; int64_t taken = 0;
                            for (int i = 0; i < 2000; i++) {
                                random ^= random << 13; random ^= random >> 7; random ^= random << 17;
                                plugin_token tokens[] = {0, UINT64_MAX, random, random >> 23, i, (uint64_t)i << 41 | 2};
                                for (int t = 0; t < 6; t++) {
                                    plugin_token token = tokens[t];
                                    if (token == call->token) continue;
                                    taken += host->resolve(host, token, 0) == 0;
                                    taken += host->reject(host, token, 0) == 0;
                                    host->on_cancel(host, token, tell, 0);
                                    if (t != 5) host->cancel(host, token);
                                    plugin_request request = ask("Nobody", "x");
                                    if (i % 100 == 0) host->perform(host, token, &request, ignore, 0);
                                }
                            }
                            reply_int(call->token, taken + told);
                            """),
                ])
        ])
}
