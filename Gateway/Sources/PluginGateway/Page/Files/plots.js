// Small plots that move. Each has the figures of the last minute.

const LENGTH = 60;
const SVG = "http://www.w3.org/2000/svg";

/** The last figures, the newest at the end. */
export class Ring {
    #values = [];

    add(value) {
        this.#values.push(value);
        if (this.#values.length > LENGTH) this.#values.shift();
    }

    get values() { return this.#values; }
    get last() { return this.#values.at(-1) ?? null; }
    get highest() { return this.#values.reduce((highest, value) => Math.max(highest, value ?? 0), 0); }
}

/** The figures of all actions: what is asked for once a second, and the differences between two answers. */
export class Figures {
    /** By module and action, as JSON of both. */
    actions = new Map();
    /** By module. */
    modules = new Map();
    all = new Ring();
    /** The mean duration of the calls over HTTP. */
    latency = new Ring();
    #time = 0;

    /** Takes an answer of `page/statistics`. */
    take(rows, time) {
        const seconds = this.#time ? Math.max(0.1, (time - this.#time) / 1000) : 0;
        this.#time = time;
        const sums = new Map();
        let [total, remoteCalls, remoteTime] = [0, 0, 0];
        for (const [module, action, calls, errors, median, percentile99, maximum, remote, sum] of rows) {
            const key = `${module}\n${action}`;
            let known = this.actions.get(key);
            if (!known) {
                known = { module, action, calls: seconds ? 0 : calls, remote: seconds ? 0 : remote, sum: seconds ? 0 : sum, rate: new Ring(), latency: new Ring() };
                this.actions.set(key, known);
            }
            // The figures begin again with the gateway.
            const difference = calls < known.calls ? calls : calls - known.calls;
            const [latest, took] = remote < known.remote ? [remote, sum] : [remote - known.remote, sum - known.sum];
            remoteCalls += latest;
            remoteTime += took;
            Object.assign(known, { calls, errors, median, percentile99, maximum, remote, sum });
            if (!seconds) continue;
            known.rate.add(difference / seconds);
            // Without calls, it stays where it was.
            known.latency.add(latest > 0 ? took / latest : known.latency.last);
            if (isAction(action)) {
                sums.set(module, (sums.get(module) ?? 0) + difference / seconds);
                total += difference / seconds;
            }
        }
        if (!seconds) return;
        for (const module of sums.keys()) if (!this.modules.has(module)) this.modules.set(module, new Ring());
        for (const [module, ring] of this.modules) ring.add(sums.get(module) ?? 0);
        this.all.add(total);
        this.latency.add(remoteCalls > 0 ? remoteTime / remoteCalls : this.latency.last);
    }

    of(module) {
        return [...this.actions.values()].filter((action) => action.module === module);
    }
}

/** Whether it is a call: not a hook, a subscriber or an interceptor. */
export function isAction(name) {
    return !/^[@!~]/.test(name);
}

/** A plot of a ring. It is an ornament of the figure beside it, so it is hidden from screen readers. */
export class Plot {
    element = document.createElementNS(SVG, "svg");
    #line = document.createElementNS(SVG, "polyline");
    #drawn = "";

    constructor(className = "") {
        this.element.setAttribute("viewBox", `0 0 ${LENGTH - 1} 20`);
        this.element.setAttribute("preserveAspectRatio", "none");
        this.element.setAttribute("class", `plot ${className}`);
        this.element.setAttribute("aria-hidden", "true");
        this.#line.setAttribute("vector-effect", "non-scaling-stroke");
        this.element.append(this.#line);
    }

    draw(ring) {
        const values = ring?.values ?? [];
        const highest = ring?.highest || 1;
        const start = LENGTH - values.length;
        const points = values.map((value, index) => `${start + index},${(19 - 18 * ((value ?? 0) / highest)).toFixed(1)}`).join(" ");
        if (points === this.#drawn) return;
        this.#drawn = points;
        this.#line.setAttribute("points", points);
    }
}
