// What a URL leads to.
import { post } from "./connection.js";
import { errorText } from "./details.js";
import { interrupt } from "./session.js";
import { state, whenChanged } from "./state.js";
import { byId, isolated, make, set } from "./text.js";

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

whenChanged(() => { byId("resolve-local").hidden = !state.allowsChanges; });
