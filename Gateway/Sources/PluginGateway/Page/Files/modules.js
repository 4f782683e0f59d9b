// The list of modules, and which one is chosen.
import { badge, Details, perSecond } from "./details.js";
import { PagedList } from "./lists.js";
import { Plot } from "./plots.js";
import { figures, refreshSoon, state, whenChanged, whenCounted } from "./state.js";
import { brief, byId, isolated, later, make, moment, number } from "./text.js";

let selected = "";
const fileName = (path) => path.slice(path.lastIndexOf("/") + 1);

const modules = new PagedList(byId("module-list"), {
    caption: "Modules", columns: ["Module", "State", "Calls per second", "Since, and why"], key: (module) => module.key,
    row: moduleRow, nouns: ["module", "modules"], empty: "There is no such module.",
});

function moduleRow(module) {
    const button = make("button", { type: "button", className: "name" }, isolated(brief(module.name ?? fileName(module.file), 60)));
    button.addEventListener("click", () => select(module.key, true));
    const version = make("span", { className: "quiet" });
    const plot = new Plot("rate");
    const rate = make("span", { className: "figure" });
    const cells = [make("td", {}, button, " ", version), make("td"), make("td", {}, rate, plot.element), make("td", { className: "why" })];
    let shown = "";
    return {
        cells,
        update(item, row) {
            const isSelected = item.key === selected;
            row.className = isSelected ? "selected" : "";
            if (isSelected) button.setAttribute("aria-current", "true");
            else button.removeAttribute("aria-current");
            const text = JSON.stringify([item.version, item.state, item.since, item.error, item.note, item.problems?.length]);
            if (text !== shown) {
                shown = text;
                version.replaceChildren(item.version ? isolated(brief(item.version, 30)) : "");
                cells[1].replaceChildren(badge(item.state));
                cells[3].replaceChildren(moment(item.since));
                const why = item.error?.message ?? item.problems?.[0]?.message ?? item.note;
                if (why) cells[3].append(" ", make("span", { className: item.error || item.problems ? "error" : "quiet" }, isolated(brief(why, 140))));
            }
            const ring = item.state === "active" ? figures.modules.get(item.name) : undefined;
            const figure = ring ? perSecond(ring.last) : "–";
            if (rate.textContent !== figure) rate.textContent = figure;
            plot.draw(ring);
        },
    };
}

function showModules() {
    const words = byId("module-filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = byId("module-state").value;
    modules.show(state.modules.filter((module) =>
        (!wanted || module.state === wanted)
        && words.every((word) => module.searched.includes(word))), state.modules.length);
}

function showStates() {
    const counts = new Map();
    for (const module of state.modules) counts.set(module.state, (counts.get(module.state) ?? 0) + 1);
    const choice = byId("module-state");
    const value = choice.value;
    const options = [["", `all (${number(state.modules.length)})`], ...[...counts].sort().map(([name, count]) => [name, `${name} (${number(count)})`])];
    if (value && !counts.has(value)) options.push([value, `${value} (0)`]);
    const text = JSON.stringify(options);
    if (choice.dataset.shown === text) return;
    choice.dataset.shown = text;
    choice.replaceChildren(...options.map(([name, title]) => make("option", { value: name }, brief(title))));
    choice.value = value;
}

const details = new Details(byId("details-content"), byId("details-title"), { figures, changed: refreshSoon });

function select(key, isByPerson) {
    selected = key;
    showModules();
    showDetails();
    history.replaceState(null, "", `#module=${encodeURIComponent(key.split("\n")[0] || key.split("\n")[1])}`);
    if (isByPerson && matchMedia("(max-width: 1099px)").matches) {
        byId("details").scrollIntoView();
        byId("details").focus({ preventScroll: true });
    }
}

function showDetails() {
    if (!selected) return;
    // A module whose file has been renamed is still the same module.
    const name = selected.split("\n")[0];
    const module = state.modules.find((one) => one.key === selected) ?? (name && state.modules.find((one) => one.name === name));
    if (module && module.key !== selected) selected = module.key;
    details.show(module, state);
}

/** Chooses the module that the address names. */
function selectFromAddress() {
    const match = /^#module=(.+)$/.exec(location.hash);
    if (!match) return;
    let name;
    try { name = decodeURIComponent(match[1]); } catch { return; }
    const module = state.modules.find((one) => one.name === name) ?? state.modules.find((one) => one.file === name);
    if (!module || module.key === selected) return;
    selected = module.key;
    showModules();
    modules.reveal(selected);
    showDetails();
}

byId("module-filter").addEventListener("input", later(showModules));
byId("module-state").addEventListener("change", showModules);
addEventListener("hashchange", selectFromAddress);

whenChanged(() => {
    showStates();
    showModules();
    if (selected) showDetails();
    else selectFromAddress();
});

whenCounted(() => {
    modules.forEachShown((item, update) => update());
    const module = state.modules.find((one) => one.key === selected);
    if (module) details.draw(module.name);
});
