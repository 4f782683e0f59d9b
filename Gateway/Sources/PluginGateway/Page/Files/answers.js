// The result of an action: a value, bytes, or a stream that is shown as it arrives.
import { problem } from "./connection.js";
import { brief, isolated, make, milliseconds, number } from "./text.js";

/** The longest answer that is read, and the longest element of a stream, in bytes. */
const LONGEST_ANSWER = 1 << 20;
/** How many elements of a stream are shown at once. */
const MOST_ELEMENTS = 500;

/** Shows an answer in an element. Returns when all of it has arrived. */
export async function showAnswer(element, response, start, signal) {
    if (!response.ok) {
        const error = await problem(response);
        element.replaceChildren(make("p", { className: "error" }, `${response.status} `, isolated(error.code), ": ", isolated(error.message)));
        return;
    }
    const type = response.headers.get("Content-Type") ?? "";
    if (type.startsWith("application/jsonl")) return showStream(element, response, start, signal, "\n", lineOf);
    if (type.startsWith("text/event-stream")) return showStream(element, response, start, signal, "\n\n", eventOf);
    const { content, isWhole } = await read(response);
    const head = make("p", { className: "quiet" },
        `${response.status}, ${milliseconds(performance.now() - start)}, ${number(content.size)} bytes${isWhole ? "" : ", and more that was not read"}`);
    if (type.startsWith("application/octet-stream")) {
        const link = make("a", { href: URL.createObjectURL(content), download: "result.bin" }, "Save the bytes");
        setTimeout(() => URL.revokeObjectURL(link.href), 600_000);
        element.replaceChildren(head, make("p", {}, link));
        return;
    }
    const text = await content.text();
    element.replaceChildren(head, make("pre", { className: "result", tabIndex: 0 }, isolated(indented(text), { short: 10_000 })));
}

// Streams

/** One line of a cursor. */
function lineOf(text) {
    let error;
    if (text.startsWith("{\"error\":")) {
        try { ({ error } = JSON.parse(text)); } catch { /* It is an element. */ }
    }
    return error?.code && error.message ? { name: "error", data: text } : { data: text };
}

/** One event; `undefined` for a heartbeat. */
function eventOf(block) {
    const fields = {};
    for (const line of block.split("\n")) {
        const colon = line.indexOf(": ");
        if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
    }
    return fields.event && { name: fields.event, data: fields.data ?? "" };
}

/** Shows the elements of a stream as they arrive; only the last ones if there are many. */
async function showStream(element, response, start, signal, separator, elementOf) {
    const head = make("p", { className: "quiet", role: "status" });
    const list = make("ol", { className: "stream", role: "log", tabIndex: 0 });
    list.setAttribute("aria-label", "Elements received so far");
    let [count, waiting, isOver, frame] = [0, [], false, 0];
    const draw = () => {
        frame = 0;
        const isAtEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 5;
        list.append(...waiting.map(({ name, data }) => make("li", { className: name === "error" ? "error" : "" },
            name && make("span", { className: `badge ${name === "error" ? "failed" : ""}` }, brief(name, 64)), name && " ", isolated(data))));
        waiting = [];
        while (list.childElementCount > MOST_ELEMENTS) list.firstElementChild.remove();
        if (isAtEnd) list.scrollTop = list.scrollHeight;
        const cut = count > MOST_ELEMENTS ? `the last ${number(MOST_ELEMENTS)} of ` : "";
        head.textContent = `${response.status}, ${milliseconds(performance.now() - start)}, ${cut}${number(count)} elements${isOver ? "" : " so far"}`;
    };
    draw();
    element.replaceChildren(head, list);
    const add = (text) => {
        const one = text && elementOf(text);
        if (!one) return;
        count += 1;
        waiting.push(one);
        if (waiting.length > MOST_ELEMENTS) waiting.shift();
        if (!frame) frame = requestAnimationFrame(draw);
    };
    try {
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        let rest = "";
        for (;;) {
            const { value, done } = await reader.read();
            if (done) break;
            const parts = (rest + value).split(separator);
            rest = parts.pop();
            for (const part of parts) add(part);
            if (rest.length > LONGEST_ANSWER) {
                await reader.cancel();
                throw new Error("The stream has an element of more than 1 MiB, which is not shown.");
            }
        }
        add(rest);
        isOver = true;
    } finally {
        isOver ||= signal.aborted;
        if (frame) cancelAnimationFrame(frame);
        draw();
    }
}

// Single answers

/** Reads an answer up to a limit. */
async function read(response) {
    const parts = [];
    let size = 0;
    const reader = response.body.getReader();
    for (;;) {
        const { value, done } = await reader.read();
        if (done) return { content: new Blob(parts), isWhole: true };
        parts.push(value);
        size += value.length;
        if (size > LONGEST_ANSWER) {
            await reader.cancel();
            return { content: new Blob(parts), isWhole: false };
        }
    }
}

/** JSON on several lines, if that changes none of its numbers. */
function indented(text) {
    if (text.length > 100_000 || /[0-9]{15}/.test(text)) return text;
    try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}
