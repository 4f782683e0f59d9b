// The state of the host as the gateway reports it, and the figures.
import { ask } from "./connection.js";
import { Figures } from "./plots.js";
import { interrupt, isConnected } from "./session.js";

const SECOND = 1000;
/** The shortest and the longest time between two requests for the state. */
const PAUSE = SECOND;
const AGE = 10 * SECOND;

export let state = { modules: [], generations: [], problems: [], changes: [], allowsChanges: false };
export const figures = new Figures();

const [shows, draws] = [[], []];

/** Calls `show` after each change of the state. */
export function whenChanged(show) { shows.push(show); }

/** Calls `draw` about once a second, when there are new figures. */
export function whenCounted(draw) { draws.push(draw); }

let pending;
let last = 0;
let asked = 0;
let answered = 0;

/** Asks for the state, but not more often than once a second. */
export function refreshSoon() {
    if (pending) return;
    pending = setTimeout(() => refresh().catch(interrupt), Math.max(100, last + PAUSE - performance.now()));
}

export async function refresh() {
    clearTimeout(pending);
    pending = undefined;
    last = performance.now();
    const mine = ++asked;
    const answer = await ask("page/state");
    // A later request may have been answered first.
    if (mine < answered) return;
    answered = mine;
    for (const module of answer.modules) {
        module.key = `${module.name ?? ""}\n${module.file}`;
        module.searched = `${module.name ?? ""} ${module.file} ${module.state}`.toLowerCase();
    }
    state = answer;
    for (const show of shows) show();
}

async function count() {
    if (!isConnected || document.hidden) return;
    const answer = await ask("page/statistics");
    figures.take(answer.actions, performance.now());
    for (const draw of draws) draw(answer.inFlight);
    if (performance.now() - last > AGE) refreshSoon();
}

/** Asks for the figures once a second. */
export async function countForever() {
    for (;;) {
        const start = performance.now();
        try { await count(); } catch (error) { interrupt(error); }
        await new Promise((resolve) => { setTimeout(resolve, Math.max(100, SECOND - (performance.now() - start))); });
    }
}
