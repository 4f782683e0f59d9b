// What happens to the modules.
import { brief, byId, isolated, make, moment, number } from "./text.js";

const MOST_EVENTS = 200;

const events = make("ol", { className: "events" });
const noEvents = make("p", { className: "quiet" }, "Nothing has happened yet.");
byId("event-list").replaceChildren(noEvents, events);
let waiting = [];

export function addEvent(name, data) {
    waiting.push({ name, data });
    if (waiting.length > MOST_EVENTS) waiting.shift();
    if (waiting.length === 1) requestAnimationFrame(showEvents);
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
