// A form for each remote action, made from what its manifest declares.
import { showAnswer } from "./answers.js";
import { send, token } from "./connection.js";
import { brief, bytes, isolated, make, shellWord, visibleJSON } from "./text.js";

/** The longest command that is shown. */
const LONGEST_COMMAND = 4000;
const LARGEST_FILE = 64 << 20;

let forms = 0;

/** Makes the form of an action. `types` are the records and enumerations of its module. */
export function actionForm(target, action, types) {
    const prefix = `form-${++forms}`;
    const fields = action.parameters.map((parameter, index) => new Field(parameter, types, `${prefix}-${index}`));
    if (action.rest) fields.push(new RestField(action.parameters.map((parameter) => parameter.name), `${prefix}-rest`));
    const commands = new Commands(target, action, fields);
    const answer = make("div", { className: "answer", "aria-live": "polite" });
    const call = make("button", { type: "submit" }, "Call");
    const stop = make("button", { type: "button", hidden: true }, "Stop");
    const form = make("form", { className: "action-form", noValidate: true },
        ...fields.map((field) => field.element), make("div", { className: "buttons" }, call, stop), answer, commands.element);
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
        answer.replaceChildren(make("p", { className: "quiet progress" }, "Calling…"));
        const start = performance.now();
        try {
            const response = await send(path(target, action), { method: "POST", ...body, signal: controller.signal });
            await showAnswer(answer, response, start, controller.signal);
        } catch (error) {
            const text = controller.signal.aborted ? "Stopped: nobody waits for the answer any more." : error.message;
            // What has arrived of a stream stays.
            answer.querySelector(".progress")?.remove();
            if (!answer.querySelector(".stream")) answer.replaceChildren();
            answer.append(make("p", { className: "error" }, isolated(text)));
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
        case "object": return make("input", { type: "text", placeholder: "name of the events", maxLength: 64, ...initial });
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
        // A callback: each of its calls becomes an event of this name.
        case "object": return text.trim() === "" ? this.#absent : JSON.stringify(text.trim());
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

    /** The members of the request's body; `file` is what stands for a file. */
    entries(file) {
        const json = this.file ? file : this.json;
        return json === undefined ? [] : [`${JSON.stringify(this.name)}: ${json}`];
    }

    /** The words of `pluginhost call`. */
    get words() {
        const word = this.#word;
        return word === undefined ? [] : [shellWord(`${this.name}=${word}`)];
    }

    get #word() {
        if (this.file) return `@${this.file.name}`;
        const json = this.json;
        if (json === undefined) return undefined;
        if (this.type === "object") throw new Invalid("It takes a callback, which pluginhost call cannot pass.");
        return this.type === "string" ? JSON.parse(json) : this.declared?.cases ? spoken(json) : visibleJSON(json);
    }

    complain() {
        this.input.setAttribute("aria-invalid", "true");
        this.input.focus();
    }
}

/** The input for the parameters that an action accepts in addition to those that it declares. */
class RestField {
    type = "rest";

    constructor(declared, id) {
        this.declared = declared;
        this.input = make("textarea", { rows: 2, placeholder: "{\"name\": value}", className: "code", spellcheck: false, autocomplete: "off", id });
        const note = make("span", { className: "quiet", id: `${id}-note` }, "parameters that the action does not declare, as a JSON object; optional");
        this.input.setAttribute("aria-describedby", note.id);
        this.input.addEventListener("input", () => this.input.removeAttribute("aria-invalid"));
        this.element = make("div", { className: "field" }, make("label", { htmlFor: id }, "Further parameters"), " ", note, this.input);
    }

    get json() { return this.entries().length > 0 ? this.input.value : undefined; }

    /** The members between the braces, as they were written: numbers of 64 bits stay what they are. */
    entries() {
        const text = this.input.value.trim();
        if (text === "") return [];
        const given = this.#given(text);
        const twice = Object.keys(given).find((name) => this.declared.includes(name));
        if (twice !== undefined) throw new Invalid(`${brief(twice)} has a field of its own.`, this);
        const members = text.slice(1, -1).trim();
        return members === "" ? [] : [members];
    }

    get words() {
        const text = this.input.value.trim();
        if (text === "") return [];
        // A text that would be read as another value is written as JSON.
        return Object.entries(this.#given(text)).map(([name, value]) => shellWord(`${name}=${visibleJSON(JSON.stringify(value))}`));
    }

    #given(text) {
        let given;
        try { given = JSON.parse(text); } catch (error) {
            throw new Invalid(`The further parameters are not valid JSON: ${brief(error.message, 120)}`, this);
        }
        if (typeof given !== "object" || given === null || Array.isArray(given)) {
            throw new Invalid("The further parameters must be a JSON object: {\"name\": value}.", this);
        }
        return given;
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
    for (const field of fields) entries.push(...field.entries(field.file && `"${await base64(field.file)}"`));
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
        for (const [element, command] of [[this.curl, () => this.#curl()], [this.call, () => this.#call()]]) {
            try {
                const text = command();
                element.textContent = text.length > LONGEST_COMMAND ? "The command is too long to be shown." : text;
            } catch (error) {
                if (!(error instanceof Invalid)) throw error;
                element.textContent = error.message;
            }
        }
    }

    #curl() {
        const url = shellWord(new URL(path(this.target, this.action), document.baseURI).href);
        const secret = token.value ? "-H \"Authorization: Bearer $TOKEN\" " : "";
        const alone = fileAlone(this.fields);
        if (alone) {
            return `curl ${secret}-H 'Content-Type: application/octet-stream' --data-binary ${shellWord(`@${alone.file.name}`)} ${url}`;
        }
        const entries = this.fields.flatMap((field) => field.entries(field.file && `"…the base64 of ${field.file.name}…"`));
        return `curl ${this.fields.some((field) => field.type === "object" && field.json) ? "-N " : ""}${secret}-H 'Content-Type: application/json' -d ${shellWord(visibleJSON(`{${entries.join(", ")}}`))} ${url}`;
    }

    #call() {
        const words = this.fields.flatMap((field) => field.words);
        return ["pluginhost call", shellWord(this.target), shellWord(this.action.name), ...words].join(" ");
    }
}
