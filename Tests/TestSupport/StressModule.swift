import Foundation

/// A module that is compiled once, and then copied with other names and numbers in its bytes, so that thousands of
/// versions need no compiler.
///
/// Every answer contains the module's name, its number, and the sum of that number and the argument. These three
/// identify the module, the version and the call to which the answer belongs.
struct StressModule: Hashable {
    /// The last part of the module's name and of its targets' names; two digits.
    var place: Int
    /// The number of this version; the version is `1.NUMBER.0`.
    var number: Int
    /// Which of two actions the module has; the module's route leads to this action.
    var isOdd = false
    /// Whether the module hands over its count to its successor.
    var keepsCount = false
    /// Whether the module refuses its `init`.
    var failsToStart = false
    /// Whether the module refuses the state of its predecessor.
    var refusesState = false

    /// The name, such as `Stress07`.
    var name: String { Self.name(place) }
    static func name(_ place: Int) -> String { "Stress" + (place < 10 ? "0\(place)" : "\(place)") }

    /// The numbers of versions, which all have the same number of digits.
    static let numbers = 1_000_000_001...1_999_999_999

    /// The reply of `answer`.
    static func answer(_ place: Int, _ number: Int, _ n: Int) -> String {
        "\(name(place)) \(number) \(sum(number, n))"
    }
    static func sum(_ number: Int, _ n: Int) -> Int { number &* 31 &+ n &* 1_000_003 }

    /// The bytes of the module's file.
    func bytes() throws -> Data {
        var bytes = try Self.template(isOdd, keepsCount)
        func patch(_ placeholder: String, _ text: String) {
            precondition(placeholder.utf8.count == text.utf8.count)
            var from = bytes.startIndex
            while let range = bytes.range(of: Data(placeholder.utf8), in: from..<bytes.endIndex) {
                bytes.replaceSubrange(range, with: Data(text.utf8))
                from = range.upperBound
            }
        }
        patch("StressQQ", name)
        patch("1000000000", String(number))
        if failsToStart { patch("start=0", "start=1") }
        if refusesState { patch("state=0", "state=1") }
        return bytes
    }

    /// Puts the module into a folder by a rename.
    func put(into folder: String, as file: String) throws { try Self.put(bytes(), into: folder, as: file) }

    static func put(_ bytes: Data, into folder: String, as file: String) throws {
        let new = "\(folder)/.\(file).\(UInt64.random(in: 0 ... .max))"
        try write(bytes, to: new)
        guard rename(new, "\(folder)/\(file)") == 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
    }

    static func write(_ bytes: Data, to path: String, _ flags: Int32 = O_TRUNC) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0o755)
        guard descriptor >= 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
        defer { close(descriptor) }
        let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
        guard count == bytes.count else { throw POSIXError(.EIO) }
    }

    // MARK: The template

    private static func template(_ isOdd: Bool, _ keepsCount: Bool) throws -> Data {
        try Data(contentsOf: URL(fileURLWithPath: module(isOdd, keepsCount).build(["-pthread", "-Wl,-s"])))
    }

    private static func module(_ isOdd: Bool, _ keepsCount: Bool) -> CModule {
        let opened = isOdd ? "openedOdd" : "openedEven"
        var module = CModule(name: "StressQQ")
        let number = "[{\"name\": \"n\", \"type\": \"int\", \"required\": true}]"
        let hooks =
            keepsCount ? "\"init\", \"tearDown\", \"suspend\", \"resume\", \"unsuspend\"" : "\"init\", \"tearDown\""
        module.manifest = """
            {"name": "StressQQ", "version": "1.1000000000.0", "hooks": [\(hooks)],
             "targets": [{"name": "StressQQ", "actions": [
                {"name": "answer", "parameters": \(number)},
                {"name": "\(opened)", "parameters": \(number)},
                {"name": "later", "async": true, "parameters": \(number)},
                {"name": "slow", "parameters": [{"name": "microseconds", "type": "int", "required": true}]},
                {"name": "count"},
                {"name": "make"},
                {"name": "back", "parameters": [{"name": "callback", "type": "object", "required": true},
                    {"name": "n", "type": "int", "required": true}]},
                {"name": "relay", "parameters": [{"name": "target", "type": "string", "required": true},
                    {"name": "n", "type": "int", "required": true}]}]}],
             "types": [{"name": "StressQQThing", "actions": [{"name": "get", "parameters": \(number)}]}],
             "routes": [{"pattern": "app://stress/StressQQ/:n", "action": "StressQQ/\(opened)"}],
             "services": [{"name": "StressQQService", "version": "1.1000000000.0", "target": "StressQQ"}],
             "events": [{"name": "stress.event", "parameters": [{"name": "n", "type": "int"}]}]}
            """
        module.code = code
        module.body = "answer(call, arguments[0].as.integer); return;"
        module.actions = [
            (opened, "answer(call, arguments[0].as.integer); return;"),
            (
                "later",
                """
                struct reply *reply = malloc(sizeof *reply);
                *reply = (struct reply){call->token, arguments[0].as.integer};
                pthread_t thread;
                if (pthread_create(&thread, NULL, run_later, reply) == 0) pthread_detach(thread);
                else refuse(call, "no thread");
                """
            ),
            ("slow", "usleep((unsigned)arguments[0].as.integer); answer(call, arguments[0].as.integer);"),
            (
                "count",
                """
                if (__atomic_load_n(&is_suspended, __ATOMIC_SEQ_CST)) { refuse(call, "suspended"); return; }
                plugin_value total = plugin_value_int(__atomic_add_fetch(&count_of_calls, 1, __ATOMIC_SEQ_CST));
                host->resolve(host, call->token, &total);
                """
            ),
            (
                "make",
                """
                plugin_object object = host->object_create(host, (plugin_string)TEXT("StressQQThing"), NULL, destroy);
                plugin_value value = plugin_value_object(object);
                host->resolve(host, call->token, &value);
                host->object_release(host, object);
                """
            ),
            (
                "back",
                """
                plugin_entry entry = {.value = arguments[1]};
                plugin_request request = {.size = sizeof request, .address = PLUGIN_ADDRESS_OBJECT,
                    .object = arguments[0].as.object, .action = PLUGIN_STRING("call"), .parameters = &entry,
                    .parameter_count = 1};
                host->perform(host, call->token, &request, pass_on, (void *)call->token);
                """
            ),
            (
                "relay",
                """
                plugin_entry entry = {.value = arguments[1]};
                plugin_request request = {.size = sizeof request,
                    .target = {arguments[0].as.string, arguments[0].count}, .action = PLUGIN_STRING("answer"),
                    .parameters = &entry, .parameter_count = 1};
                host->perform(host, call->token, &request, pass_on, (void *)call->token);
                """
            ),
        ]
        module.moreFunctions = """
            {TEXT("StressQQThing#get"), action_answer, NULL}, {TEXT("!stress.event"), heard, NULL},
            {TEXT("@init"), begin, NULL}, {TEXT("@tearDown"), end, NULL},
            """
        if keepsCount {
            module.moreFunctions += """
                {TEXT("@suspend"), suspend, NULL}, {TEXT("@resume"), resume, NULL}, {TEXT("@unsuspend"), unsuspend, NULL},
                """
        }
        return module
    }

    private static let code = """
        /* Patched in copies. Volatile, so that the compiler does not rely on the present values. */
        static const volatile char stamp[] = "1000000000";
        static const volatile char starting[] = "start=0";
        static const volatile char resuming[] = "state=0";
        static const char module_name[] = "StressQQ";
        static int64_t count_of_calls;
        static int is_suspended;
        static int is_torn_down;
        static int64_t number(void) {
            int64_t number = 0;
            for (int place = 0; place < 10; place++) number = number * 10 + (stamp[place] - '0');
            return number;
        }
        static void answer_token(plugin_token token, int64_t n) {
            char text[96];
            if (__atomic_load_n(&is_torn_down, __ATOMIC_SEQ_CST)) {
                plugin_error error = {PLUGIN_STRING("tornDown"), PLUGIN_STRING("It was torn down."), {NULL, 0}};
                host->reject(host, token, &error);
                return;
            }
            int64_t sum = (int64_t)((uint64_t)number() * 31 + (uint64_t)n * 1000003);
            int count = snprintf(text, sizeof text, "%.8s %lld %lld", module_name, (long long)number(), (long long)sum);
            plugin_value value = plugin_value_string(text, (uint32_t)count);
            host->resolve(host, token, &value);
        }
        static void answer(const plugin_call *call, int64_t n) { answer_token(call->token, n); }
        struct reply { plugin_token token; int64_t n; };
        static void *run_later(void *data) {
            struct reply reply = *(struct reply *)data;
            free(data);
            usleep(300);
            answer_token(reply.token, reply.n);
            return NULL;
        }
        static void destroy(void *instance) { (void)instance; }
        /* Tells the program which module has heard the event. */
        static void told(void *data, const plugin_value *value, const plugin_error *error) {
            (void)value;
            if (error) host->reject(host, (plugin_token)data, error);
            else host->resolve(host, (plugin_token)data, NULL);
        }
        static void heard(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
            (void)data, (void)count;
            plugin_entry entries[2] = {{.value = arguments[0]},
                {.value = plugin_value_string(module_name, sizeof module_name - 1)}};
            plugin_request request = {.size = sizeof request, .target = PLUGIN_STRING("Listener"),
                .action = PLUGIN_STRING("heard"), .parameters = entries, .parameter_count = 2};
            host->perform(host, call->token, &request, told, (void *)call->token);
        }
        static void begin(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
            (void)data, (void)arguments, (void)count;
            if (starting[6] == '1') refuse(call, "not today"); else reply(call, "");
        }
        static void end(void *data, const plugin_call *call, const plugin_value *arguments, uint32_t count) {
            (void)data, (void)arguments, (void)count;
            __atomic_store_n(&is_torn_down, 1, __ATOMIC_SEQ_CST);
            reply(call, "");
        }
        static void __attribute__((unused)) suspend(void *data, const plugin_call *call, const plugin_value *arguments,
                                                    uint32_t count) {
            (void)data, (void)arguments, (void)count;
            plugin_value total = plugin_value_int(__atomic_load_n(&count_of_calls, __ATOMIC_SEQ_CST));
            __atomic_store_n(&is_suspended, 1, __ATOMIC_SEQ_CST);
            host->resolve(host, call->token, &total);
        }
        static void __attribute__((unused)) resume(void *data, const plugin_call *call, const plugin_value *arguments,
                                                   uint32_t count) {
            (void)data, (void)count;
            if (resuming[6] == '1') { refuse(call, "not this state"); return; }
            __atomic_store_n(&count_of_calls, arguments[0].as.integer, __ATOMIC_SEQ_CST);
            reply(call, "");
        }
        static void __attribute__((unused)) unsuspend(void *data, const plugin_call *call, const plugin_value *arguments,
                                                      uint32_t count) {
            (void)data, (void)arguments, (void)count;
            __atomic_store_n(&is_suspended, 0, __ATOMIC_SEQ_CST);
            reply(call, "");
        }
        """
}
