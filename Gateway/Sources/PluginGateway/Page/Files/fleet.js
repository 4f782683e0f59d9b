// The fleet that this host is a part of: its hosts with what they serve, and the rollout. Hidden if there is no fleet.
import { ask } from "./connection.js";
import { brief, isolated, make } from "./text.js";

const PAUSE = 3_000;
const MOST_HOSTS = 100;
const section = document.getElementById("fleet");
const content = document.getElementById("fleet-content");
let shown = "";

const STATES = { rollingBack: "rolling back", rolledBack: "rolled back" };
const stateName = (state) => STATES[state] ?? state;
const words = (text, longest) => isolated(brief(text ?? "", longest));

function table(caption, columns, rows) {
    const head = make("thead", {}, make("tr", {}, ...columns.map((name) => make("th", { scope: "col" }, name))));
    const body = make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell)))));
    return make("div", { className: "scroll" }, make("table", {}, make("caption", {}, caption), head, body));
}

function hosts(fleet) {
    const all = Object.entries(fleet.hosts ?? {}).sort();
    const rows = all.slice(0, MOST_HOSTS).map(([name, host]) => [
        words(name === fleet.self ? `${name} (this one)` : name, 80), words(host.address, 60), words(host.state, 20),
        words((host.modules ?? []).map((module) => `${module.name} ${module.version}`).join(", "), 200),
        words(host.problem, 200),
    ]);
    return table(`${all.length} ${all.length === 1 ? "host" : "hosts"}`, ["Host", "Address", "State", "Modules", "Problem"], rows);
}

function rollout(record) {
    const title = `Rollout of ${record.module} ${record.release?.version}: ${stateName(record.state)}`;
    const rows = Object.entries(record.steps ?? {}).sort().slice(0, MOST_HOSTS).map(([name, step]) => [
        words(name, 80), words(stateName(step.state), 20),
        step.observed ? `${step.observed.calls} calls, ${step.observed.errors} failed` : "", words(step.reason, 200),
    ]);
    const parts = [table(brief(title, 200), ["Host", "Step", "Observed", "Reason"], rows)];
    if (record.reason) parts.unshift(make("p", { className: "error" }, words(record.reason, 300)));
    return parts;
}

function show(fleet) {
    section.hidden = !fleet;
    document.getElementById("fleet-link").hidden = !fleet;
    const text = JSON.stringify(fleet);
    if (!fleet || text === shown) return;
    shown = text;
    const parts = [hosts(fleet)];
    if (!fleet.isKnown) parts.unshift(make("p", { className: "error" }, "etcd does not answer. This is the last known state."));
    if (fleet.rollout) parts.push(...rollout(fleet.rollout));
    for (const problem of (fleet.problems ?? []).slice(0, 20)) parts.push(make("p", { className: "error" }, words(problem, 300)));
    content.replaceChildren(...parts);
}

async function refresh() {
    // The rest of the page asks for a token first.
    if (!document.hidden && !document.getElementById("content").hidden) {
        try { show(await ask("page/fleet")); } catch { /* The rest of the page says so. */ }
    }
    setTimeout(refresh, PAUSE);
}

refresh();
