// The page: asks for the state of the host, listens to its events, and shows both.
import { addEvent } from "./events.js";
import "./log.js";
import "./modules.js";
import "./resolve.js";
import { loadRoutes, routesAreOld } from "./routes.js";
import { isConnected, run } from "./session.js";
import { countForever, refresh, refreshSoon, whenChanged } from "./state.js";
import "./summary.js";
import { byId } from "./text.js";

whenChanged(() => { byId("content").hidden = false; });

document.addEventListener("visibilitychange", () => {
    if (!document.hidden && isConnected) refreshSoon();
});

run({
    refresh,
    opened() {
        refreshSoon();
        routesAreOld();
        loadRoutes();
    },
    event(name, data) {
        addEvent(name, data);
        refreshSoon();
        routesAreOld();
    },
});
countForever();
