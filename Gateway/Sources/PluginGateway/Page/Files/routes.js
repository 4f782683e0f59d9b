// The list of routes.
import { ask } from "./connection.js";
import { errorText } from "./details.js";
import { PagedList } from "./lists.js";
import { interrupt, isConnected } from "./session.js";
import { whenCounted } from "./state.js";
import { byId, isolated, later, make, number } from "./text.js";

/** The shortest time between two requests for the routes, in milliseconds. */
const PAUSE = 3000;

let all = [];
let isOld = true;
let isVisible = false;
let last = -PAUSE;
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

/** Requests the routes if their list is visible. There can be thousands. */
export async function loadRoutes() {
    if (isLoading || !isVisible || performance.now() - last < PAUSE) return;
    [isLoading, isOld] = [true, false];
    try {
        const answer = await ask("page/routes");
        for (const route of answer.routes) route.searched = `${route.pattern} ${route.action} ${route.owner}`.toLowerCase();
        all = answer.routes;
        showRoutes();
    } catch (error) {
        isOld = true;
        interrupt(error);
    } finally {
        isLoading = false;
        last = performance.now();
    }
}

new IntersectionObserver((entries) => {
    isVisible = entries.at(-1).isIntersecting;
    if (isVisible && isOld && isConnected) loadRoutes();
}).observe(byId("routes"));

/** Notes that the routes may have changed. */
export function routesAreOld() {
    isOld = true;
}

byId("route-filter").addEventListener("input", later(showRoutes));
byId("route-kind").addEventListener("change", showRoutes);
whenCounted(() => { if (isOld) loadRoutes(); });
