// What stands at the head of the page, and the list of problems.
import { errorText, perSecond } from "./details.js";
import { PagedList } from "./lists.js";
import { Plot } from "./plots.js";
import { figures, state, whenChanged, whenCounted } from "./state.js";
import { byId, make, milliseconds, number, set } from "./text.js";

const summary = (() => {
    const plots = { "Calls per second": new Plot("rate"), "Latency over HTTP": new Plot("latency") };
    const values = {};
    for (const title of ["Active", "Not active", "Calls per second", "Latency over HTTP", "In flight"]) {
        values[title] = make("span", { className: "figure" }, "–");
        const content = make("dd", {}, values[title]);
        if (plots[title]) content.append(plots[title].element);
        byId("summary").append(make("div", {}, make("dt", {}, title), content));
    }
    return { plots, values };
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

const problems = new PagedList(byId("problem-list"), {
    caption: "Problems", columns: ["Problem"], key: (problem) => problem.key,
    row: (problem) => ({ cells: [make("td", {}, errorText(problem))] }), nouns: ["problem", "problems"], empty: "There are none.",
});

whenChanged(() => {
    showSummary();
    problems.show(state.problems.map((problem, index) => ({ ...problem, key: `${index} ${problem.message}` })), state.problems.length);
});

whenCounted((inFlight) => {
    set(summary.values["Calls per second"], perSecond(figures.all.last));
    set(summary.values["Latency over HTTP"], milliseconds(figures.latency.last));
    set(summary.values["In flight"], number(inFlight));
    summary.plots["Calls per second"].draw(figures.all);
    summary.plots["Latency over HTTP"].draw(figures.latency);
});
