// The changes of modules that were made from the page.
import { PagedList } from "./lists.js";
import { state, whenChanged } from "./state.js";
import { brief, byId, isolated, make, moment } from "./text.js";

const WORDS = { remove: "removed", rollback: "rolled back", retry: "retried" };

const log = new PagedList(byId("change-list"), {
    caption: "Changes made from this page", columns: ["When", "Who", "What", "Result"], key: (change) => String(change.number), row: changeRow,
    nouns: ["change", "changes"], empty: "Nobody has changed anything yet.",
});

function changeRow(change) {
    const what = make("td", {}, `${WORDS[change.kind] ?? brief(change.kind)} `, isolated(brief(change.module)));
    if (change.version) what.append(" to ", isolated(brief(change.version, 30)));
    if (change.force) what.append(make("span", { className: "quiet" }, " although others depended on it"));
    const result = change.error
        ? make("span", { className: "error" }, isolated(brief(change.error.message, 200)), " ", make("code", { className: "quiet" }, isolated(change.error.code)))
        : make("span", { className: "badge active" }, "done");
    const who = change.caller ? isolated(brief(change.caller)) : make("span", { className: "quiet" }, change.address ? isolated(change.address) : "unknown");
    return { cells: [make("td", {}, moment(change.time)), make("td", {}, who), what, make("td", {}, result)] };
}

whenChanged(() => {
    byId("changes").hidden = !state.allowsChanges;
    byId("changes-link").hidden = !state.allowsChanges;
    log.show(state.changes, state.changes.length);
});
