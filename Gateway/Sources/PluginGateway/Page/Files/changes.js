// Changes of modules: each is confirmed in a dialog that shows what it would do.
import { post } from "./connection.js";
import { brief, isolated, make } from "./text.js";

const byId = (id) => document.getElementById(id);

/**
 * Asks for a change, and makes it if that is confirmed. Returns whether it was made.
 *
 * @param options `path` and `body` of the request; `title` and `label` of the dialog; `versions`, one of which can be chosen;
 *     `canForce`, whether modules that depend on it may be stopped, too.
 */
export function confirmChange({ path, body, title, label, versions = [], canForce = false }) {
    const [dialog, content, cancel, act] = ["dialog", "dialog-content", "dialog-cancel", "dialog-do"].map(byId);
    byId("dialog-title").textContent = title;
    act.textContent = label;
    const effects = make("div", { "aria-live": "polite" });
    const choice = make("select", { id: "dialog-version" },
        ...versions.map(({ value, text }) => make("option", { value }, brief(text))));
    const force = make("input", { type: "checkbox", id: "dialog-force" });
    const forced = make("label", { className: "check", htmlFor: "dialog-force", hidden: true }, force, " Do it although others depend on it");
    content.replaceChildren(effects);
    if (versions.length > 1) {
        content.prepend(make("div", { className: "field" }, make("label", { htmlFor: "dialog-version" }, "Version"), choice));
    }
    if (canForce) content.append(forced);

    return new Promise((resolve) => {
        let steps;
        let look = 0;
        let isOpen = true;
        const whole = () => ({ ...body, ...(versions.length ? { version: choice.value } : {}), ...(force.checked ? { force: true } : {}) });
        const fail = (error) => {
            effects.replaceChildren(make("p", { className: "error" }, isolated(error.message)));
            if (error.code === "required") forced.hidden = false;
        };
        const ask = async () => {
            const mine = ++look;
            act.disabled = true;
            effects.replaceChildren(make("p", { className: "quiet" }, "Looking at what it would do…"));
            try {
                const plan = await post(path, { ...whole(), dryRun: true });
                if (mine !== look) return;
                steps = plan.steps;
                effects.replaceChildren(make("p", {}, "This would happen:"),
                    make("ol", {}, ...steps.map((step) => make("li", {}, isolated(step)))));
                act.disabled = false;
            } catch (error) {
                if (mine === look) fail(error);
            }
        };
        const controls = [cancel, choice, force];
        const setRunning = (isRunning) => { for (const control of controls) control.disabled = isRunning; };
        const go = async () => {
            act.disabled = true;
            setRunning(true);
            try {
                await post(path, { ...whole(), expected: steps });
                close(true);
            } catch (error) {
                if (!isOpen) return;
                setRunning(false);
                cancel.focus();
                if (error.code !== "conflict") return fail(error);
                await ask();
                if (isOpen) effects.prepend(make("p", { className: "error" }, isolated(error.message)));
            }
        };
        // Escape does not hide a change that runs.
        const stay = (event) => { if (cancel.disabled && (event.type === "cancel" || event.key === "Escape")) event.preventDefault(); };
        const close = (isDone) => {
            if (!isOpen) return;
            isOpen = false;
            look += 1;
            setRunning(false);
            dialog.removeEventListener("cancel", stay);
            document.removeEventListener("keydown", stay);
            act.removeEventListener("click", go);
            cancel.removeEventListener("click", leave);
            dialog.removeEventListener("close", leave);
            dialog.close();
            resolve(isDone);
        };
        const leave = () => close(false);
        act.addEventListener("click", go);
        cancel.addEventListener("click", leave);
        dialog.addEventListener("cancel", stay);
        document.addEventListener("keydown", stay);
        dialog.addEventListener("close", leave);
        choice.addEventListener("change", ask);
        force.addEventListener("change", ask);
        dialog.showModal();
        cancel.focus();
        ask();
    });
}
