// The page: asks for the state of the host, listens to its events, and shows both.
import { ask, post, readEvents, token } from "./connection.js";
import { badge, Details, errorText, perSecond } from "./details.js";
import { PagedList } from "./lists.js";
import { Figures, Plot } from "./plots.js";
import { brief, isolated, make, moment, number } from "./text.js";

const SECOND = 1000;
const MOST_EVENTS = 200;
/** The shortest times between two requests for the state and for the routes, and the longest for the state. */
const STATE_PAUSE = SECOND;
const ROUTES_PAUSE = 3 * SECOND;
const STATE_AGE = 10 * SECOND;

const byId = (id) => document.getElementById(id);
let state = { modules: [], generations: [], problems: [], allowsChanges: false };
let figures = new Figures();
let selected = "";
/** Ends the stream of events. */
let session = new AbortController();
/** Why the session was ended. */
let reason;
let isConnected = false;

// MARK: Modules

const keyOf = (module) => `${module.name ?? ""}\n${module.file}`;
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

const details = new Details(byId("details-content"), byId("details-title"), { figures, changed: () => refreshSoon() });

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
    details.figures = figures;
    details.show(module, state);
}

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

// MARK: The head

const summary = (() => {
    const plot = new Plot("rate");
    const values = {};
    for (const title of ["Active", "Not active", "Calls per second", "In flight"]) {
        values[title] = make("span", { className: "figure" }, "–");
        const content = make("dd", {}, values[title]);
        if (title === "Calls per second") content.append(plot.element);
        byId("summary").append(make("div", {}, make("dt", {}, title), content));
    }
    return { plot, values };
})();

function showSummary() {
    const isUp = (module) => ["active", "registered", "library"].includes(module.state);
    const up = state.modules.filter(isUp).length;
    set(summary.values.Active, number(up));
    set(summary.values["Not active"], number(state.modules.length - up));
    summary.values["Not active"].classList.toggle("error", up < state.modules.length);
    set(byId("problems-link"), state.problems.length ? `Problems (${number(state.problems.length)})` : "Problems");
    document.title = up < state.modules.length ? `(${state.modules.length - up}) Plugin host` : "Plugin host";
}

function set(element, text) {
    if (element.textContent !== text) element.textContent = text;
}

// MARK: State

let pending;
let lastState = 0;
let asked = 0;
let answered = 0;

/** Asks for the state, but not more often than once a second. */
function refreshSoon() {
    if (pending) return;
    pending = setTimeout(() => refresh().catch(interrupt), Math.max(100, lastState + STATE_PAUSE - performance.now()));
}

async function refresh() {
    clearTimeout(pending);
    pending = undefined;
    lastState = performance.now();
    const mine = ++asked;
    const answer = await ask("page/state");
    // A later question may have been answered first.
    if (mine < answered) return;
    answered = mine;
    for (const module of answer.modules) {
        module.key = keyOf(module);
        module.searched = `${module.name ?? ""} ${module.file} ${module.state}`.toLowerCase();
    }
    state = answer;
    byId("content").hidden = false;
    byId("resolve-local").hidden = !state.allowsChanges;
    showStates();
    showModules();
    showSummary();
    if (selected) showDetails();
    else selectFromAddress();
    problems.show(state.problems.map((problem, index) => ({ ...problem, key: `${index} ${problem.message}` })), state.problems.length);
}

const problems = new PagedList(byId("problem-list"), {
    caption: "Problems", columns: ["Problem"], key: (problem) => problem.key,
    row: (problem) => ({ cells: [make("td", {}, errorText(problem))] }), nouns: ["problem", "problems"], empty: "There are none.",
});

// MARK: Figures

async function tick() {
    if (!isConnected || document.hidden) return;
    const answer = await ask("page/statistics");
    figures.take(answer.actions, performance.now());
    modules.forEachShown((item, update) => update());
    set(summary.values["Calls per second"], perSecond(figures.all.last));
    set(summary.values["In flight"], number(answer.inFlight));
    summary.plot.draw(figures.all);
    const module = state.modules.find((one) => one.key === selected);
    if (module) details.draw(module.name);
    if (performance.now() - lastState > STATE_AGE) refreshSoon();
    if (routesAreOld) loadRoutes();
}

async function tickForever() {
    for (;;) {
        const start = performance.now();
        try { await tick(); } catch (error) { interrupt(error); }
        await delay(Math.max(100, SECOND - (performance.now() - start)));
    }
}

const delay = (time) => new Promise((resolve) => { setTimeout(resolve, time); });

// MARK: Routes

let all = [];
let routesAreOld = true;
let routesAreVisible = false;
let lastRoutes = -ROUTES_PAUSE;
let isLoading = false;

const routes = new PagedList(byId("route-list"), {
    caption: "Routes", columns: ["Pattern", "Leads to", "Declared by", "Notes"], key: (route) => route.pattern, row: routeRow,
    nouns: ["route", "routes"], empty: "There is no such route.",
});

function routeRow() {
    const cells = [0, 1, 2, 3].map(() => make("td"));
    let shown;
    return {
        cells,
        update(route) {
            if (shown === route) return;
            shown = route;
            cells[0].replaceChildren(make("code", {}, isolated(route.pattern, { short: 120 })));
            cells[1].replaceChildren(make("code", {}, isolated(route.action, { short: 120 })));
            cells[2].replaceChildren(isolated(route.owner, { short: 120 }));
            const notes = [];
            if (route.problem) notes.push(errorText(route.problem));
            if (route.overlaps) {
                const list = make("details", {}, make("summary", {}, `overlaps with ${number(route.overlapCount ?? route.overlaps.length)}`),
                    make("ul", {}, ...route.overlaps.map((pattern) => make("li", {}, make("code", {}, isolated(pattern))))));
                notes.push(list);
            }
            if (route.incomplete) notes.push(make("span", { className: "quiet" }, "not compared with all others"));
            if (route.summary) notes.push(isolated(route.summary));
            cells[3].replaceChildren(...notes.flatMap((note) => [note, " "]));
        },
    };
}

function showRoutes() {
    const words = byId("route-filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const kind = byId("route-kind").value;
    routes.show(all.filter((route) =>
        (kind !== "overlaps" || route.overlaps) && (kind !== "problems" || route.problem)
        && words.every((word) => route.searched.includes(word))), all.length);
}

/** Asks for the routes if somebody looks at them. There can be thousands. */
async function loadRoutes() {
    if (isLoading || !routesAreVisible || performance.now() - lastRoutes < ROUTES_PAUSE) return;
    [isLoading, routesAreOld] = [true, false];
    try {
        const answer = await ask("page/routes");
        for (const route of answer.routes) route.searched = `${route.pattern} ${route.action} ${route.owner}`.toLowerCase();
        all = answer.routes;
        showRoutes();
    } catch (error) {
        routesAreOld = true;
        interrupt(error);
    } finally {
        isLoading = false;
        lastRoutes = performance.now();
    }
}

new IntersectionObserver((entries) => {
    routesAreVisible = entries.at(-1).isIntersecting;
    if (routesAreVisible && routesAreOld && isConnected) loadRoutes();
}).observe(byId("routes"));

// MARK: Events

const events = make("ol", { className: "events" });
const noEvents = make("p", { className: "quiet" }, "Nothing has happened yet.");
byId("event-list").replaceChildren(noEvents, events);
let waiting = [];
let lastEvent = "";

function addEvent(id, name, data) {
    if (id) lastEvent = id;
    waiting.push({ name, data });
    if (waiting.length > MOST_EVENTS) waiting.shift();
    if (waiting.length === 1) requestAnimationFrame(showEvents);
    refreshSoon();
    routesAreOld = true;
}

function showEvents() {
    const rows = waiting.map(({ name, data }) => {
        const parts = [data.time ? moment(data.time) : "", " ", make("span", { className: `badge ${/^[a-zA-Z]+$/.test(name) ? name : ""}` }, brief(name)), " "];
        const names = data.module ? [data.module] : (data.modules ?? []).slice(0, 20);
        for (const one of names) parts.push(isolated(brief(one)), " ");
        if (data.version) {
            parts.push(data.previousVersion ? isolated(`${brief(data.previousVersion, 30)} → ${brief(data.version, 30)}`) : isolated(brief(data.version, 30)), " ");
        }
        if (data.count) parts.push(`${number(data.count)} events were not kept `);
        if (data.routes !== undefined) parts.push(`${number(data.routes)} routes `);
        if (data.code) parts.push(make("code", { className: "error" }, isolated(brief(data.code))));
        return make("li", {}, ...parts);
    }).reverse();
    waiting = [];
    events.prepend(...rows);
    while (events.childElementCount > MOST_EVENTS) events.lastChild.remove();
    noEvents.hidden = true;
}

// MARK: The connection

/** A browser has few connections to one server, so a page that nobody sees gives its own back after a while. */
const UNSEEN = 10 * SECOND;
const hidden = new Error("Nobody sees the page.");
let wake = () => {};

function interrupt(error) {
    if (!isConnected || session.signal.aborted) return;
    reason = error;
    session.abort();
}

async function run() {
    let pause = SECOND / 2;
    for (;;) {
        if (document.hidden) await seen();
        try {
            session = new AbortController();
            reason = undefined;
            await refresh();
            // The first time, all events that the gateway keeps.
            await readEvents(lastEvent || "page-0", {
                opened() {
                    pause = SECOND / 2;
                    connected();
                },
                event: addEvent, signal: session.signal,
            });
        } catch (thrown) {
            const error = reason ?? thrown;
            isConnected = false;
            if (error === hidden) {
                await seen();
                continue;
            }
            if (error.status === 401) {
                await login();
                pause = SECOND / 2;
                continue;
            }
            await lost(error, pause);
            pause = Math.min(2 * pause, 10 * SECOND);
        }
    }
}

/** Waits until the page is seen. */
function seen() {
    return new Promise((resolve) => {
        const look = () => {
            if (document.hidden) return;
            document.removeEventListener("visibilitychange", look);
            resolve();
        };
        document.addEventListener("visibilitychange", look);
        look();
    });
}

function connected() {
    isConnected = true;
    set(byId("connection"), "Connected");
    byId("connection").className = "good";
    document.body.classList.remove("stale");
    const hadFocus = [byId("banner"), byId("login")].some((element) => element.contains(document.activeElement));
    byId("banner").hidden = true;
    byId("login").hidden = true;
    if (hadFocus) byId("modules").focus({ preventScroll: true });
    refreshSoon();
    routesAreOld = true;
    loadRoutes();
}

const now = make("button", { type: "button" }, "Try now");
now.addEventListener("click", () => wake());

/** Says that the connection is lost, and waits. */
async function lost(error, pause) {
    set(byId("connection"), "Not connected");
    byId("connection").className = "bad";
    document.body.classList.add("stale");
    const banner = byId("banner");
    const text = error.status ? `The gateway does not answer as expected: ${brief(error.message, 300)}`
        : "The connection to the gateway is lost. What you see may be old.";
    const left = make("span", { "aria-hidden": "true" }, ` Trying again in ${Math.ceil(pause / SECOND)} s. `);
    if (banner.hidden || banner.dataset.text !== text) {
        banner.dataset.text = text;
        banner.replaceChildren(make("span", {}, text), left, now);
        banner.hidden = false;
    } else {
        banner.children[1].replaceWith(left);
    }
    await new Promise((resolve) => {
        wake = resolve;
        // Not all pages come back at the same moment.
        setTimeout(resolve, pause * (0.75 + Math.random() / 2));
    });
}

/** Asks for a token. */
function login() {
    const hadToken = token.value !== "";
    token.value = "";
    set(byId("connection"), "A token is needed");
    byId("connection").className = "bad";
    document.body.classList.add("stale");
    byId("banner").hidden = true;
    set(byId("login-reason"), hadToken
        ? "The gateway does not accept the token: it has expired, or is not one of its tokens. Enter another one."
        : "This gateway serves only those who have one of its tokens.");
    byId("login").hidden = false;
    const input = byId("token");
    input.focus();
    return new Promise((resolve) => {
        byId("login-form").addEventListener("submit", (event) => {
            event.preventDefault();
            token.value = input.value.trim();
            input.value = "";
            set(byId("login-reason"), "Trying…");
            resolve();
        }, { once: true });
    });
}

// MARK: Inputs

function later(show) {
    let timer;
    return () => {
        clearTimeout(timer);
        timer = setTimeout(show, 100);
    };
}

byId("module-filter").addEventListener("input", later(showModules));
byId("module-state").addEventListener("change", showModules);
byId("route-filter").addEventListener("input", later(showRoutes));
byId("route-kind").addEventListener("change", showRoutes);
addEventListener("hashchange", selectFromAddress);
let unseen;
document.addEventListener("visibilitychange", () => {
    clearTimeout(unseen);
    if (document.hidden) unseen = setTimeout(() => interrupt(hidden), UNSEEN);
    else if (isConnected) refreshSoon();
});

byId("local").addEventListener("change", () => {
    set(byId("resolve-hint"), byId("local").checked
        ? "No action is called. The answer is the one for the program itself; a module that the URL leads to is started."
        : "Nothing is called. The answer is the one for a caller from outside.");
});

byId("resolve-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const answer = byId("resolve-answer");
    try {
        const body = { url: byId("url").value };
        if (byId("local").checked && state.allowsChanges) body.local = true;
        answer.replaceChildren(...explanation(await post("page/resolve", body)));
    } catch (error) {
        if (error.status === 401) interrupt(error);
        answer.replaceChildren(make("p", { className: "error" }, isolated(error.message)));
    }
});

function explanation(found) {
    const list = make("dl", { className: "facts" });
    const add = (title, content) => { if (content) list.append(make("dt", {}, title), make("dd", {}, content)); };
    add("Leads to", found.action ? make("code", {}, isolated(found.action)) : "nothing");
    add("Module", found.module && isolated(found.module));
    add("Route", found.route && make("code", {}, isolated(found.route)));
    add("Fallback", found.fallback && isolated(found.fallback));
    add("Parameters", found.parameters !== "{}" && make("code", {}, isolated(found.parameters)));
    add("Demands", found.demands && isolated(found.demands.join(", ")));
    add("But", found.error && errorText(found.error));
    if (found.others.length === 0) return [list];
    const others = found.others.map((other) => make("li", {}, make("code", {}, isolated(other.pattern)), " → ",
        make("code", {}, isolated(other.action)), " ", make("span", { className: "quiet" }, isolated(other.reason))));
    return [list, make("h3", {}, found.incomplete ? "Some of the other routes that match" : "Other routes that match"), make("ul", {}, ...others)];
}

run();
tickForever();
