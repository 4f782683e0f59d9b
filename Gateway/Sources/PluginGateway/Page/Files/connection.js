// Requests to the gateway, and its stream of events.

const KEY = `pluginhost-token ${location.pathname}`;

/** An error that the gateway answered. */
export class Problem extends Error {
    constructor(status, problem) {
        super(problem.detail ?? `The gateway answered with status ${status}.`);
        Object.assign(this, { status, code: problem.code ?? "", module: problem.module });
    }
}

export const token = {
    get value() { return sessionStorage.getItem(KEY) ?? ""; },
    set value(text) { if (text) sessionStorage.setItem(KEY, text); else sessionStorage.removeItem(KEY); },
    /** Whether the gateway has asked for one. */
    isNeeded: false,
};

/** Sends a request. `path` is relative to the page. Throws a `Problem` if the gateway refuses the token. */
export async function send(path, options = {}) {
    const headers = { ...options.headers };
    if (token.value) headers.Authorization = `Bearer ${token.value}`;
    const response = await fetch(path, { ...options, headers, cache: "no-store", credentials: "same-origin" });
    if (response.status === 401) {
        token.isNeeded = true;
        throw await problem(response);
    }
    return response;
}

export async function problem(response) {
    let content = {};
    try { content = await response.json(); } catch { /* It is not from the gateway. */ }
    return new Problem(response.status, content);
}

/** Reads JSON. */
export async function ask(path) {
    const response = await send(path, { signal: AbortSignal.timeout(30_000) });
    if (!response.ok) throw await problem(response);
    return response.json();
}

/** Posts an object and reads the answer. */
export async function post(path, content) {
    const response = await send(path, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(content),
    });
    if (!response.ok) throw await problem(response);
    return response.json();
}

/** The gateway's heartbeats come every 15 seconds, unless the program has set another time. */
const SILENCE = 60_000;

/** Reads `events` until the stream ends. An `EventSource` cannot send a token. */
export async function readEvents(last, { opened, event, signal }) {
    const controller = new AbortController();
    const end = () => controller.abort();
    signal.addEventListener("abort", end);
    let timer;
    const wait = () => {
        clearTimeout(timer);
        timer = setTimeout(() => controller.abort(), SILENCE);
    };
    wait();
    try {
        const response = await send("events", { headers: { "Last-Event-ID": last }, signal: controller.signal });
        if (!response.ok) throw await problem(response);
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        let rest = "";
        for (let isFirst = true; ; isFirst = false) {
            const { value, done } = await reader.read();
            if (done) throw new Error("The gateway has closed the stream of events.");
            wait();
            if (isFirst) opened();
            const blocks = (rest + value).split("\n\n");
            rest = blocks.pop();
            for (const block of blocks) {
                const fields = {};
                for (const line of block.split("\n")) {
                    const colon = line.indexOf(": ");
                    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
                }
                if (fields.event) event(fields.id, fields.event, JSON.parse(fields.data));
            }
        }
    } finally {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        controller.abort();
    }
}
