// A form for each remote action, made from what its manifest declares.
import { problem, send, token } from "./connection.js";
import { brief, bytes, isolated, make, milliseconds, number, shellWord, visibleJSON } from "./text.js";

/** The longest answer that is read, and the longest command that is shown. */
const LONGEST_ANSWER = 1 << 20;
const LONGEST_COMMAND = 4000;
const LARGEST_FILE = 64 << 20;

let forms = 0;

/** Makes the form of an action. `types` are the records and enumerations of its module. */
export function actionForm(target, action, types) {
    const prefix = `form-${++forms}`;
    const fields = action.parameters.map((parameter, index) => new Field(parameter, types, `${prefix}-${index}`));
    const commands = new Commands(target, action, fields);
    const answer = make("div", { className: "answer", "aria-live": "polite" });
    const call = make("button", { type: "submit" }, "Call");
    const stop = make("button", { type: "button", hidden: true }, "Stop");
    const form = make("form", { className: "action-form", noValidate: true },
        ...fields.map((field) => field.element), make("div", { className: "buttons" }, call, stop), answer, commands.element);
    if (action.rest) form.prepend(make("p", { className: "quiet" }, "It takes further parameters, which this form does not have."));
    form.setAttribute("aria-label", `Call ${brief(target)}/${brief(action.name)}`);
    form.addEventListener("input", () => commands.show());
    form.addEventListener("submit", async (event) => {
        event.preventDefault();
        let body;
        try {
            body = await requestBody(fields);
        } catch (error) {
            if (!(error instanceof Invalid)) throw error;
            answer.replaceChildren(make("p", { className: "error" }, error.message));
            error.field?.complain(error.message);
            return;
        }
        const controller = new AbortController();
        const abort = () => controller.abort();
        stop.addEventListener("click", abort);
        [call.disabled, stop.hidden] = [true, false];
        answer.replaceChildren(make("p", { className: "quiet" }, "Calling…"));
        const start = performance.now();
        try {
            const response = await send(path(target, action), { method: "POST", ...body, signal: controller.signal });
            answer.replaceChildren(...await shown(response, start));
        } catch (error) {
            const text = controller.signal.aborted ? "Stopped: nobody waits for the answer any more." : error.message;
            answer.replaceChildren(make("p", { className: "error" }, isolated(text)));
        } finally {
            stop.removeEventListener("click", abort);
            [call.disabled, stop.hidden] = [false, true];
        }
    });
    commands.show();
    return form;
}

function path(target, action) {
    return `call/${encodeURIComponent(target)}/${encodeURIComponent(action.name)}`;
}

/** A value that cannot be sent. */
class Invalid extends Error {
    constructor(message, field) {
        super(message);
        this.field = field;
    }
}

// Fields

/** The input of a parameter. */
class Field {
    constructor(parameter, types, id) {
        Object.assign(this, { parameter, id });
        this.name = parameter.name;
        this.isOptional = parameter.type.endsWith("?");
        this.type = this.isOptional ? parameter.type.slice(0, -1) : parameter.type;
        this.declared = types.find((type) => type.name === this.type);
        this.input = this.#makeInput();
        this.input.id = id;
        const facts = [parameter.type];
        if (parameter.required) this.input.required = true;
        else facts.push(parameter.default === undefined ? "optional" : `default ${brief(parameter.default, 40)}`);
        const label = make("label", { htmlFor: id }, isolated(this.name), " ");
        const note = make("span", { className: "quiet", id: `${id}-note` }, isolated(facts.join(", "), { short: 120 }));
        if (parameter.summary) note.append(" – ", isolated(parameter.summary));
        this.input.setAttribute("aria-describedby", note.id);
        // An empty field is not sent, so an empty text is asked for with a checkbox.
        if (this.type === "string" && this.#canBeAbsent) {
            this.empty = make("input", { type: "checkbox", id: `${id}-empty` });
            this.emptyLabel = make("label", { className: "check", htmlFor: `${id}-empty` }, this.empty, " empty text");
        }
        this.element = make("div", { className: "field" }, label, note, this.input, this.emptyLabel);
        this.input.addEventListener("input", () => this.input.removeAttribute("aria-invalid"));
    }

    get #canBeAbsent() { return !this.parameter.required || this.isOptional; }

    #makeInput() {
        if (this.declared?.cases || this.type === "bool") {
            const cases = this.declared?.cases ?? ["true", "false"];
            const options = cases.map((text) => make("option", { value: text }, brief(spoken(text))));
            if (this.#canBeAbsent) options.unshift(make("option", { value: "" }, "–"));
            return make("select", {}, ...options);
        }
        const initial = { spellcheck: false, autocomplete: "off" };
        switch (this.type) {
        case "int": return make("input", { type: "text", inputMode: "numeric", placeholder: this.parameter.default ?? "", ...initial });
        case "double": return make("input", { type: "text", inputMode: "decimal", placeholder: this.parameter.default ?? "", ...initial });
        case "string": return make("textarea", { rows: 1, placeholder: this.parameter.default ? spoken(this.parameter.default) : "", ...initial });
        case "bytes": return make("input", { type: "file" });
        default: {
            const input = make("textarea", { rows: 2, placeholder: "JSON", className: "code", ...initial });
            if (this.declared?.fields && this.parameter.required) {
                input.value = skeleton(this.declared);
                input.rows = Math.min(12, this.declared.fields.length + 2);
            }
            return input;
        }
        }
    }

    get file() { return this.type === "bytes" ? this.input.files[0] : undefined; }

    /** The value as JSON text; `undefined` if there is none. Files have none. */
    get json() {
        const text = this.input.value;
        switch (this.type) {
        case "bytes": return this.file ? undefined : this.#absent;
        case "string":
            return text === "" && this.#canBeAbsent && !this.empty?.checked ? this.#absent : JSON.stringify(text);
        default: break;
        }
        if (text.trim() === "") return this.#absent;
        if (this.input.localName === "select") return text;
        const word = text.trim();
        if (this.type === "int") {
            if (!/^-?(0|[1-9][0-9]*)$/.test(word) || BigInt.asIntN(64, BigInt(word)) !== BigInt(word)) {
                throw new Invalid(`${brief(this.name)} must be a whole number of 64 bits.`, this);
            }
            return word;
        }
        try { JSON.parse(word); } catch (error) {
            throw new Invalid(
                this.type === "double" ? `${brief(this.name)} must be a number, such as 2.5.`
                    : `${brief(this.name)} is not valid JSON: ${brief(error.message, 120)}`, this);
        }
        if (this.type === "double" && typeof JSON.parse(word) !== "number") {
            throw new Invalid(`${brief(this.name)} must be a number, such as 2.5.`, this);
        }
        return word;
    }

    get #absent() {
        if (!this.parameter.required) return undefined;
        if (this.isOptional) return "null";
        throw new Invalid(`${brief(this.name)} is required.`, this);
    }

    /** The value as `pluginhost call` reads it after the equals sign. */
    get word() {
        if (this.file) return `@${this.file.name}`;
        const json = this.json;
        if (json === undefined) return undefined;
        return this.type === "string" ? JSON.parse(json) : this.declared?.cases ? spoken(json) : visibleJSON(json);
    }

    complain() {
        this.input.setAttribute("aria-invalid", "true");
        this.input.focus();
    }
}

/** The text of a JSON string; other JSON as it is. */
function spoken(json) {
    return json.startsWith("\"") ? JSON.parse(json) : json;
}

/** A record with a value of the right kind in each field. */
function skeleton(record) {
    const entries = record.fields.filter((field) => !field.type.endsWith("?")).map((field) => {
        const kind = field.type;
        const value = kind === "string" || kind === "bytes" ? "\"\"" : kind === "int" || kind === "double" ? "0"
            : kind === "bool" ? "false" : kind.startsWith("list") ? "[]" : kind.startsWith("map") ? "{}" : "null";
        return `  ${JSON.stringify(field.name)}: ${value}`;
    });
    return `{\n${entries.join(",\n")}\n}`;
}

// Requests

/** The field whose file is the whole body, as the gateway accepts it for the only parameter of the kind bytes. */
function fileAlone(fields) {
    const files = fields.filter((field) => field.type === "bytes");
    if (files.length !== 1 || !files[0].file) return undefined;
    return fields.every((field) => field === files[0] || field.json === undefined) ? files[0] : undefined;
}

async function requestBody(fields) {
    const alone = fileAlone(fields);
    for (const field of fields) {
        if (field.file?.size > LARGEST_FILE) throw new Invalid(`The file for ${brief(field.name)} is larger than ${bytes(LARGEST_FILE)}.`, field);
    }
    if (alone) return { headers: { "Content-Type": "application/octet-stream" }, body: alone.file };
    const entries = [];
    for (const field of fields) {
        const json = field.file ? `"${await base64(field.file)}"` : field.json;
        if (json !== undefined) entries.push(`${JSON.stringify(field.name)}: ${json}`);
    }
    return { headers: { "Content-Type": "application/json" }, body: `{${entries.join(", ")}}` };
}

async function base64(file) {
    const url = await new Promise((resolve, reject) => {
        const reader = new FileReader();
        reader.onload = () => resolve(reader.result);
        reader.onerror = () => reject(new Invalid("The file cannot be read."));
        reader.readAsDataURL(file);
    });
    return url.slice(url.indexOf(",") + 1);
}

/** The same call in a terminal. */
class Commands {
    constructor(target, action, fields) {
        Object.assign(this, { target, action, fields });
        this.curl = make("pre", { tabIndex: 0 });
        this.call = make("pre", { tabIndex: 0 });
        this.element = make("details", { className: "commands" }, make("summary", {}, "In a terminal"),
            make("h5", {}, "curl"), this.curl, make("h5", {}, "pluginhost"), this.call,
            make("p", { className: "quiet" }, "“pluginhost call” reaches a host that “pluginhost run” has started; add --attach PATH for its socket."));
    }

    show() {
        try {
            const [curl, call] = [this.#curl(), this.#call()];
            this.curl.textContent = curl.length > LONGEST_COMMAND ? "It is too long to be shown." : curl;
            this.call.textContent = call.length > LONGEST_COMMAND ? "It is too long to be shown." : call;
        } catch (error) {
            if (!(error instanceof Invalid)) throw error;
            this.curl.textContent = this.call.textContent = error.message;
        }
    }

    #curl() {
        const url = shellWord(new URL(path(this.target, this.action), document.baseURI).href);
        const secret = token.value ? "-H \"Authorization: Bearer $TOKEN\" " : "";
        const alone = fileAlone(this.fields);
        if (alone) {
            return `curl ${secret}-H 'Content-Type: application/octet-stream' --data-binary ${shellWord(`@${alone.file.name}`)} ${url}`;
        }
        const entries = this.fields.flatMap((field) => {
            const json = field.file ? `"…the base64 of ${field.file.name}…"` : field.json;
            return json === undefined ? [] : [`${JSON.stringify(field.name)}: ${json}`];
        });
        return `curl ${secret}-H 'Content-Type: application/json' -d ${shellWord(visibleJSON(`{${entries.join(", ")}}`))} ${url}`;
    }

    #call() {
        const words = this.fields.flatMap((field) => {
            const word = field.word;
            return word === undefined ? [] : [shellWord(`${field.name}=${word}`)];
        });
        return ["pluginhost call", shellWord(this.target), shellWord(this.action.name), ...words].join(" ");
    }
}

// Answers

/** What is shown of an answer. */
async function shown(response, start) {
    if (!response.ok) {
        const error = await problem(response);
        return [
            make("p", { className: "error" }, `${response.status} `, isolated(error.code), ": ", isolated(error.message)),
        ];
    }
    const type = response.headers.get("Content-Type") ?? "";
    const { content, isWhole } = await read(response);
    const head = make("p", { className: "quiet" },
        `${response.status}, ${milliseconds(performance.now() - start)}, ${number(content.size)} bytes${isWhole ? "" : ", and more that was not read"}`);
    if (type.startsWith("application/octet-stream")) {
        const link = make("a", { href: URL.createObjectURL(content), download: "result.bin" }, "Save the bytes");
        setTimeout(() => URL.revokeObjectURL(link.href), 600_000);
        return [head, make("p", {}, link)];
    }
    const text = await content.text();
    return [head, make("pre", { className: "result", tabIndex: 0 }, isolated(indented(text), { short: 10_000 }))];
}

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
