/// Modules that the page in the browser shows.
enum PageModules {
    static let hostile: CModule = {
        var module = CModule(name: "Hostile")
        let markup = #"<img src=x onerror=\"window.hacked=1\"> \u202eevil\u202c \u0007"#
        module.targets = [
            .init(
                name: "Hostile", manifest: "\"summary\": \"\(markup)\", ",
                actions: [
                    .init(
                        name: "run", manifest: "\"remote\": true, \"summary\": \"\(markup)\", ",
                        body: "plugin_fail(host, call, \"bad\", \"<script>window.hacked = 1</script>\\u202e\");"),
                    .init(
                        name: "long", manifest: "\"remote\": true, ",
                        body: """
                            char *text = malloc(1 << 20);
                            memset(text, 'x', (1 << 20) - 1);
                            text[(1 << 20) - 1] = 0;
                            reply(call, text);
                            free(text);
                            """),
                ])
        ]
        return module
    }()

    /// - Parameter needed: The file without which it does not start.
    static func late(needing needed: String) -> CModule {
        var module = CModule(name: "Late")
        module.setUp = "if (access(\"\(needed)\", F_OK) != 0) return refuse(call, \"It is not there.\");"
        return module
    }

    static let crashing: CModule = {
        var module = CModule(name: "Crashing")
        module.targets = [
            .init(name: "Crashing", actions: [.init(name: "crash", manifest: "\"remote\": true, ", body: "abort();")])
        ]
        return module
    }()
}

extension PageModules {
    /// Streams that pause until a file exists, and parameters that are not declared.
    static let live: CModule = {
        var module = CModule(name: "Live")
        let remote = "\"remote\": true, "
        module.code = """
            static void ignore(void *data, const plugin_value *value, const plugin_error *error) {
                (void)data, (void)value, (void)error;
            }
            static void call_back(const plugin_call *call, plugin_object object) {
                plugin_request request = plugin_request_object(object, text("call"), NULL, 0);
                host->perform(host, call->token, &request, ignore, NULL);
            }
            """
        module.targets = [
            .init(
                name: "Live",
                actions: [
                    .init(
                        name: "watch", manifest: remote, parameters: ["then": "object", "file": "string"],
                        body: """
                            char path[200] = {0};
                            memcpy(path, arguments[1].as.string, arguments[1].count < 199 ? arguments[1].count : 199);
                            call_back(call, arguments[0].as.object);
                            for (int i = 0; i < 12000 && access(path, F_OK) != 0; i++) usleep(10000);
                            call_back(call, arguments[0].as.object);
                            reply(call, "over");
                            """),
                    .init(
                        name: "take", manifest: remote + "\"rest\": true, ", parameters: ["id": "string"],
                        body: "reply_value(call->token, plugin_value_list(arguments, count));"),
                ])
        ]
        return module
    }()
}

/// A script that keeps the timers of the page that wait for the next try from firing while `window.isFrozen` is true.
/// The long timers, after which a hidden page closes its connection, fire early.
let frozenTimers = """
    window.frozen = 0;
    const setTimer = window.setTimeout;
    window.setTimeout = (run, time, ...rest) => {
        if (time === 10000) return setTimer(run, 50, ...rest);
        if (window.isFrozen && time > 300) { window.frozen += 1; return setTimer(run, 1e9, ...rest); }
        return setTimer(run, time, ...rest);
    };
    """

/// A script that makes the page visible or hidden, as its argument says.
let showPage = """
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => arguments[0] });
    document.dispatchEvent(new Event('visibilitychange'));
    """

/// A script that replies in place of the gateway: a thousand modules that are called all the time, and ten thousand
/// routes. It records when the list is shown, and how long each task of the page took.
let manyModules = """
    window.longTasks = []; window.answers = 0;
    new PerformanceObserver(list => { for (const e of list.getEntries()) window.longTasks.push(e.duration) })
        .observe({ type: 'longtask', buffered: true });
    new MutationObserver((_, observer) => {
        if (document.querySelector('#module-list tbody tr')) { window.firstList = performance.now(); observer.disconnect(); }
    }).observe(document, { childList: true, subtree: true });
    const original = window.fetch;
    const modules = Array.from({ length: 1000 }, (_, i) => ({
        name: 'Module' + i, version: '1.0.0', state: i % 100 ? 'active' : 'failed', file: '/plugins/' + i + '.so',
        generation: i + 1, since: Date.now() - i * 1000,
        error: i % 100 ? undefined : { code: 'setUpFailed', message: 'No.' },
    }));
    const state = {
        ready: true, allowsChanges: false, event: 'x-0', inFlight: 3, retired: 0, problems: [], changes: [], modules,
        generations: modules.map((m, i) => ({
            number: i + 1, name: m.name, version: '1.0.0', state: 'active', created: m.since, since: m.since,
            reason: 'serves.', calls: 0, objects: 0,
        })),
    };
    const routes = { routes: Array.from({ length: 10000 }, (_, i) => ({
        pattern: 'app://shop/' + i + '/:id', action: 'Module' + (i % 1000) + '/item', owner: 'the module Module' + (i % 1000),
    })) };
    // The texts are made in advance, since this work is not part of the page's.
    const texts = { 'page/state': JSON.stringify(state), 'page/routes': JSON.stringify(routes) };
    const figures = [0, 100, 200, 300, 400, 500, 600].map(calls => JSON.stringify({ inFlight: 3, actions:
        modules.map((m, i) => [m.name, m.name + '/item', calls + i, 0, 0.1, 1.5, 2, calls + i, 2 * calls + i]) }));
    window.fetch = async (path, options) => {
        if (path === 'page/statistics') texts[path] = figures[window.answers++ % figures.length];
        if (texts[path]) return new Response(texts[path], { headers: { 'Content-Type': 'application/json' } });
        return original(path, options);
    };
    """

/// A script that confirms a change in the dialog. The request for a retry is not sent before `goOn()` is called.
let slowRetry = """
    const original = window.fetch;
    window.fetch = async (path, options) => {
        if (path === 'page/retry') {
            window.fetch = original;
            await new Promise(resolve => { window.goOn = resolve; });
        }
        return original(path, options);
    };
    document.getElementById('dialog-do').click();
    """

/// A script that fills the fields of the form of an action with its argument, a list of texts, and sends the form.
func sendForm(_ action: String) -> String {
    """
    const form = document.querySelector(`details[data-action="\(action)"] form`);
    const inputs = [...form.querySelectorAll('.field input, .field textarea, .field select')];
    arguments[0].forEach((value, index) => {
        inputs[index].value = value;
        inputs[index].dispatchEvent(new Event('input', { bubbles: true }));
    });
    form.requestSubmit();
    """
}
