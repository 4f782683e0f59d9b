// Texts of modules. They become text nodes, never markup, and cannot change the direction of what stands beside them.

/** The longest text that is shown without “Show all”, and the longest that can be shown at all. */
const SHORT = 300;
const LONG = 200_000;

// Control characters, marks of direction, separators of lines, invisible characters.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;

/** The text with an escape for each character that cannot be seen. */
export function visible(text) {
    return String(text).replace(HIDDEN, escape);
}

function escape(character) {
    return `\\u{${character.codePointAt(0).toString(16).toUpperCase()}}`;
}

/** The text on one line, cut off. */
export function brief(text, longest = 80) {
    const all = visible(String(text).slice(0, 4 * longest)).replace(/[\n\t]/g, " ");
    return all.length > longest || String(text).length > 4 * longest ? `${all.slice(0, longest)}…` : all;
}

/** Makes an element. `entries` are properties, or attributes if the element has no such property. */
export function make(name, entries = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(entries)) {
        if (value === undefined || value === null) continue;
        if (key in element && key !== "list") element[key] = value;
        else element.setAttribute(key, value);
    }
    element.append(...children.filter((child) => child !== undefined && child !== null));
    return element;
}

export const byId = (id) => document.getElementById(id);

/** Changes the text of an element, if it is another one. */
export function set(element, text) {
    if (element.textContent !== text) element.textContent = text;
}

/** Returns a function that calls another one a moment after it was called for the last time. */
export function later(show) {
    let timer;
    return () => {
        clearTimeout(timer);
        timer = setTimeout(show, 100);
    };
}

/** An element with a text of a module, isolated from the direction of its surroundings. Long texts are cut off. */
export function isolated(text, { short = SHORT, className = "" } = {}) {
    const whole = String(text);
    const element = make("bdi", { className });
    const append = (part) => {
        let last = 0;
        for (const match of part.matchAll(HIDDEN)) {
            element.append(part.slice(last, match.index), make("span", { className: "escape" }, escape(match[0])));
            last = match.index + match[0].length;
        }
        element.append(part.slice(last));
    };
    append(cut(whole, short));
    if (whole.length <= short) return element;
    const button = make("button", { type: "button", className: "more" }, `Show all (${number(whole.length)} characters)`);
    const holder = make("span", { className: "long" }, element, "… ", button);
    button.addEventListener("click", () => {
        element.replaceChildren();
        append(cut(whole, LONG));
        element.tabIndex = -1;
        element.focus({ preventScroll: true });
        button.remove();
        if (whole.length > LONG) holder.append(`(the first ${number(LONG)} characters)`);
    });
    return holder;
}

/** The beginning of a text, without half of a character at its end. */
function cut(text, length) {
    if (text.length <= length) return text;
    const code = text.charCodeAt(length - 1);
    return text.slice(0, code >= 0xd800 && code < 0xdc00 ? length - 1 : length);
}

// Figures

const grouped = new Intl.NumberFormat("en");

export function number(value) {
    return grouped.format(value);
}

export function milliseconds(value) {
    if (value === null || value === undefined) return "–";
    if (value < 1) return `${Math.max(1, Math.round(value * 1000))} µs`;
    if (value < 1000) return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
    return `${(value / 1000).toFixed(1)} s`;
}

export function bytes(value) {
    if (value < 1024) return `${value} B`;
    if (value < 1 << 20) return `${(value / 1024).toFixed(0)} KiB`;
    return `${(value / (1 << 20)).toFixed(1)} MiB`;
}

/** A moment, in milliseconds since 1970: the time of day, with the date if it is not today. */
export function moment(value) {
    const time = new Date(value);
    const today = new Date().toDateString() === time.toDateString();
    const text = today ? time.toLocaleTimeString("en-GB") : `${time.toISOString().slice(0, 10)} ${time.toLocaleTimeString("en-GB")}`;
    return make("time", { dateTime: time.toISOString(), title: time.toISOString() }, text);
}

// Commands

/** One word for a shell. What cannot be seen is written as an escape of bash. */
export function shellWord(text) {
    if (/^[A-Za-z0-9_@%+=:,./-]+$/.test(text)) return text;
    if (text.search(HIDDEN) < 0) return `'${text.replaceAll("'", "'\\''")}'`;
    const escaped = text.replaceAll("\\", "\\\\").replaceAll("'", "\\'").replace(HIDDEN, (character) => {
        const code = character.codePointAt(0);
        return code < 0x80 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
    });
    return `$'${escaped.replaceAll("\n", "\\n")}'`;
}

/** JSON in which characters that cannot be seen are escapes. They can only stand in its strings. */
export function visibleJSON(text) {
    return text.replace(HIDDEN, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
