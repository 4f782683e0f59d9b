// The connection of the page: its stream of events, what is said when it is lost, and the token.
import { readEvents, token } from "./connection.js";
import { brief, byId, make, set } from "./text.js";

const SECOND = 1000;

export let isConnected = false;
/** Ends the stream of events. */
let session = new AbortController();
/** Why the session was ended. */
let reason;

/** A browser has few connections to one server, so a hidden page closes its own after a while. */
const UNSEEN = 10 * SECOND;
const hidden = new Error("The page is hidden.");
let wake = () => {};

/** Ends the connection because of an error; a new one is made. */
export function interrupt(error) {
    if (!isConnected || session.signal.aborted) return;
    reason = error;
    session.abort();
}

/**
 * Keeps the page connected. `refresh` asks for the state, `opened` is called for each new stream of events, `event` for each
 * event.
 */
export async function run({ refresh, opened, event }) {
    let lastEvent = "";
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
                    opened();
                },
                event(id, name, data) {
                    if (id) lastEvent = id;
                    event(name, data);
                },
                signal: session.signal,
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

/** Waits until the page is visible. */
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
        : "The connection to the gateway is lost. What you see may be out of date.";
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
        // Pages must not all reconnect at the same moment.
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

let unseen;
document.addEventListener("visibilitychange", () => {
    clearTimeout(unseen);
    if (document.hidden) unseen = setTimeout(() => interrupt(hidden), UNSEEN);
});
