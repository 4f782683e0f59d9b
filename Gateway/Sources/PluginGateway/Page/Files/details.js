// The details of one module: its state, generations, calls, actions, and what can be done with it.
import { confirmChange } from "./changes.js";
import { ask } from "./connection.js";
import { actionForm } from "./forms.js";
import { PagedList } from "./lists.js";
import { Plot } from "./plots.js";
import { brief, bytes, isolated, make, milliseconds, moment, number } from "./text.js";

/** How many actions have a row at once. */
const MOST_ACTIONS = 200;

export class Details {
    #key;
    #status = make("div");
    #bar = make("div", { className: "buttons" });
    #calls = make("div");
    #actions = make("div");
    /** The rows of the actions, with the texts that they were made from. */
    #rows = new Map();
    #shown = "";
    #made = "";

    constructor(holder, title, { figures, changed }) {
        Object.assign(this, { holder, title, figures, changed });
        this.list = new PagedList(this.#calls, {
            caption: "Calls by action", columns: ["Action", "Calls", "Errors", "Calls per second", "Latency over HTTP", "99th percentile"],
            key: (action) => action.action, row: callRow, nouns: ["function", "functions"], empty: "Nothing was called yet.",
        });
    }

    /** Shows a module, or what is new about it. */
    show(module, state) {
        if (!module) {
            this.#key = undefined;
            this.title.textContent = "Details";
            this.holder.replaceChildren(make("p", { className: "quiet" }, "Choose a module."));
            return;
        }
        const name = module.name ?? module.file;
        if (this.#key !== module.key) {
            this.#key = module.key;
            this.#shown = this.#made = "";
            this.#rows = new Map();
            this.#actions.replaceChildren();
            this.title.replaceChildren(isolated(brief(name)));
            this.holder.replaceChildren(this.#status, this.#bar,
                make("h3", {}, "Calls"), this.#calls, make("h3", {}, "Actions"), this.#actions);
        }
        const generations = state.generations.filter((generation) => generation.name === module.name)
            .sort((one, other) => (one.state === "retired") - (other.state === "retired") || other.number - one.number);
        const text = JSON.stringify([module, generations]);
        if (text !== this.#shown) {
            this.#shown = text;
            this.#status.replaceChildren(...statusOf(module, generations));
        }
        const made = JSON.stringify([module.state, module.version, module.generation, generations.length, state.allowsChanges]);
        if (made !== this.#made) {
            this.#made = made;
            this.#load(module, state.allowsChanges);
        }
        this.draw(module.name);
    }

    /** Draws the figures again. */
    draw(name) {
        if (!this.#key || !name) return this.list.show([], 0);
        const actions = this.figures.of(name).sort((one, other) => (one.action < other.action ? -1 : 1));
        this.list.show(actions, actions.length);
    }

    async #load(module, allowsChanges) {
        const key = this.#key;
        let known = { targets: [], values: [], kept: [] };
        if (module.name) {
            try {
                known = await ask(`page/module?name=${encodeURIComponent(module.name)}`);
            } catch (error) {
                if (key !== this.#key) return;
                this.#actions.replaceChildren(make("p", { className: "error" }, isolated(error.message)));
                this.#made = "";
                return;
            }
        }
        if (key !== this.#key) return;
        this.#showActions(known, module);
        this.#showBar(module, known.kept, allowsChanges);
    }

    // What can be done

    #showBar(module, kept, allowsChanges) {
        if (!allowsChanges) {
            this.#bar.replaceChildren(make("p", { className: "quiet" },
                "This page cannot change modules. If the gateway is started with --allow-changes, it can remove, roll back and retry them."));
            return;
        }
        const name = module.name;
        const buttons = [];
        const add = (label, options) => {
            const button = make("button", { type: "button" }, `${label}…`);
            button.addEventListener("click", async () => {
                const body = { module: name ?? module.file };
                if (await confirmChange({ body, title: `${label} ${brief(name ?? module.file)}?`, label, ...options })) this.changed();
            });
            buttons.push(button);
        };
        const isOfFolder = !module.file.startsWith("(");
        if (name && isOfFolder && module.state !== "failed") add("Remove", { path: "page/remove", canForce: true });
        const versions = kept.filter((version) => !version.serving).map((version) => ({ value: version.version, text: version.version }));
        if (name && versions.length > 0) add("Roll back", { path: "page/rollback", canForce: true, versions });
        if (module.state === "failed") add("Retry", { path: "page/retry" });
        if (module.state === "active" && module.process) add("Restart", { path: "page/retry" });
        const focused = [...this.#bar.children].find((button) => button === document.activeElement);
        this.#bar.replaceChildren(...buttons);
        // The focus returns to where it was, or to what is left.
        if (focused) (buttons.find((button) => button.textContent === focused.textContent) ?? buttons[0] ?? this.title.parentElement).focus({ preventScroll: true });
    }

    // Actions

    #showActions(known, module) {
        const open = new Set([...this.#actions.querySelectorAll("details[open]")].map((details) => details.dataset.action));
        const before = this.#rows;
        // A module that does not serve for a while has no actions. Their forms are kept until it serves again.
        if (known.targets.length > 0) this.#rows = new Map();
        const values = JSON.stringify(known.values);
        const kept = (key, text, makeElement) => {
            const row = before.get(key)?.text === text ? before.get(key) : { text, element: makeElement() };
            this.#rows.set(key, row);
            return row.element;
        };
        const children = [];
        let left = MOST_ACTIONS;
        for (const target of known.targets) {
            children.push(kept(target.name, JSON.stringify([target.name, target.summary]), () => targetHeading(target)));
            for (const action of target.actions.slice(0, left)) {
                children.push(kept(`${target.name}/${action.name}`, JSON.stringify(action) + values,
                    () => actionRow(target.name, action, known.values, open)));
            }
            left -= Math.min(left, target.actions.length);
        }
        const count = known.targets.reduce((sum, target) => sum + target.actions.length, 0);
        if (count > MOST_ACTIONS) children.push(make("p", { className: "quiet" }, `${number(count - MOST_ACTIONS)} further actions are not shown.`));
        if (children.length === 0) {
            children.push(make("p", { className: "quiet" }, module.state === "active" ? "It has no actions." : "It does not serve, so nothing can be called."));
        }
        const wanted = new Set(children);
        for (const child of [...this.#actions.children]) if (!wanted.has(child)) child.remove();
        // An element that stays in its place keeps the focus.
        let place = this.#actions.firstElementChild;
        for (const child of children) {
            if (child === place) place = place.nextElementSibling;
            else this.#actions.insertBefore(child, place);
        }
    }
}

function targetHeading(target) {
    const heading = make("h4", {}, isolated(target.name));
    if (target.summary) heading.append(" ", make("span", { className: "quiet" }, isolated(target.summary)));
    return heading;
}

function actionRow(target, action, types, open) {
    const signature = action.parameters.map((parameter) => `${parameter.name}: ${parameter.type}`).join(", ");
    const summary = make("summary", {}, make("code", {}, isolated(brief(action.name))), " ",
        make("span", { className: "quiet" }, isolated(`(${brief(signature, 120)})${action.result ? ` → ${brief(action.result)}` : ""}`)));
    if (!action.remote) {
        return make("p", { className: "local" }, ...summary.childNodes, " ",
            make("span", { className: "tag", title: "Its manifest does not declare it remote." }, "not remote: only code in the host can call it"));
    }
    const details = make("details", { className: "action" }, summary);
    details.dataset.action = `${target}/${action.name}`;
    const fill = () => {
        if (!details.open || details.childElementCount > 1) return;
        if (action.summary) details.append(make("p", {}, isolated(action.summary)));
        details.append(actionForm(target, action, types));
    };
    details.addEventListener("toggle", fill);
    if (open.has(details.dataset.action)) details.open = true;
    return details;
}

function callRow(action) {
    const [rate, latency] = [new Plot("rate"), new Plot("latency")];
    const cells = [make("code", {}, isolated(brief(action.action))), "", "", make("span", { className: "figure" }), make("span", { className: "figure wide" }), ""]
        .map((content) => make("td", {}, content));
    const [, calls, errors, second, time, percentile] = cells;
    second.append(rate.element);
    time.append(latency.element);
    time.title = "The mean of the last second with calls over HTTP, in the last minute";
    return {
        cells,
        update(item) {
            calls.textContent = number(item.calls);
            errors.textContent = number(item.errors);
            errors.className = item.errors > 0 ? "error" : "";
            second.firstChild.textContent = perSecond(item.rate.last);
            time.firstChild.textContent = milliseconds(item.latency.last);
            percentile.textContent = milliseconds(item.percentile99);
            percentile.title = `median ${milliseconds(item.median)}, longest ${milliseconds(item.maximum)}, of all calls so far`;
            rate.draw(item.rate);
            latency.draw(item.latency);
        },
    };
}

export function perSecond(rate) {
    if (rate === null || rate === undefined) return "–";
    return rate > 0 && rate < 10 ? rate.toFixed(1) : number(Math.round(rate));
}

export function badge(state) {
    return make("span", { className: `badge ${/^[a-z]+$/.test(state) ? state : ""}` }, brief(state));
}

// State

function statusOf(module, generations) {
    const facts = [
        ["State", make("span", {}, badge(module.state), " since ", moment(module.since))],
        ["Version", module.version && isolated(module.version)],
        ["File", make("code", {}, isolated(module.file))],
        ["Process", module.process && `${module.process}${module.memory ? `, ${bytes(module.memory)}` : ""}`],
        ["Restarts", module.restarts && number(module.restarts)],
        ["Why", module.error && errorText(module.error)],
        ["Note", module.note && isolated(module.note)],
    ];
    const list = make("dl", { className: "facts" });
    for (const [title, content] of facts) if (content) list.append(make("dt", {}, title), make("dd", {}, content));
    for (const problem of module.problems ?? []) list.append(make("dt", {}, "Problem"), make("dd", {}, errorText(problem)));
    const parts = [list];
    if (generations.length > 0) {
        const rows = generations.slice(0, 20).map((generation) => make("tr", {},
            cell("Generation", number(generation.number)), cell("Version", isolated(generation.version)),
            cell("State", badge(generation.state)), cell("Since", moment(generation.since)),
            cell("Use", isolated(generation.crash ?? generation.reason))));
        const head = make("tr", {}, ...["Generation", "Version", "State", "Since", "Use"].map((title) => make("th", { scope: "col" }, title)));
        parts.push(make("h3", {}, "Generations"),
            make("table", {}, make("caption", { className: "unseen" }, "Generations"), make("thead", {}, head), make("tbody", {}, ...rows)));
        const words = generations.find((generation) => generation.lastWords)?.lastWords;
        if (words) parts.push(make("h3", {}, "Last words"), make("pre", { tabIndex: 0 }, isolated(words.join("\n"), { short: 2000 })));
    }
    return parts;
}

function cell(title, content) {
    return make("td", { "data-title": title }, content);
}

export function errorText(error) {
    return make("span", { className: "error" }, isolated(error.message), " ", make("code", { className: "quiet" }, isolated(error.code)));
}
