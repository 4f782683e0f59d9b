// Lists of any length: one page at a time is in the document.
import { make, number } from "./text.js";

const PAGE = 50;

export class PagedList {
    #items = [];
    #rows = new Map();
    #start = 0;

    /**
     * @param holder The element that gets the list.
     * @param columns The titles of the columns.
     * @param key A text for each item, by which its row is known.
     * @param row Makes the row of an item: a list of cells, and a function `update` that gets the item.
     * @param nouns What one item is, and what several are.
     * @param empty What is shown if there are no items.
     */
    constructor(holder, { caption, columns, key, row, nouns, empty }) {
        Object.assign(this, { key, row, nouns });
        this.body = make("tbody");
        const head = make("tr", {}, ...columns.map((title) => make("th", { scope: "col" }, title)));
        this.titles = columns;
        this.table = make("table", {}, make("caption", { className: "unseen" }, caption), make("thead", {}, head), this.body);
        this.count = make("p", { className: "count", role: "status" });
        this.back = make("button", { type: "button" }, "Previous");
        this.on = make("button", { type: "button" }, "Next");
        this.back.addEventListener("click", () => this.#turn(-PAGE));
        this.on.addEventListener("click", () => this.#turn(PAGE));
        this.pager = make("div", { className: "pager" }, this.back, this.on);
        this.none = make("p", { className: "quiet" }, empty);
        holder.replaceChildren(this.count, this.table, this.none, this.pager);
    }

    #turn(by) {
        this.#start += by;
        this.#draw();
        // A button that cannot be used any more loses the focus.
        if (by < 0 ? this.back.disabled : this.on.disabled) (by < 0 ? this.on : this.back).focus({ preventScroll: true });
        this.table.scrollIntoView({ block: "nearest" });
    }

    /** Shows items. `total` is how many there are without the filter. */
    show(items, total) {
        this.#items = items;
        this.total = total;
        this.#draw();
    }

    /** Turns to the page with an item. */
    reveal(key) {
        const place = this.#items.findIndex((item) => this.key(item) === key);
        if (place < 0) return;
        this.#start = place - (place % PAGE);
        this.#draw();
    }

    /** Calls `use` with each item in the document and its row. */
    forEachShown(use) {
        for (const { item, row, update } of this.#rows.values()) use(item, () => update?.(item, row));
    }

    #draw() {
        const count = this.#items.length;
        this.#start = Math.max(0, Math.min(this.#start, count - 1));
        this.#start -= this.#start % PAGE;
        const shown = this.#items.slice(this.#start, this.#start + PAGE);
        const focused = this.body.contains(document.activeElement) ? document.activeElement : undefined;
        const before = this.#rows;
        this.#rows = new Map();
        let place = this.body.firstElementChild;
        for (const item of shown) {
            const key = this.key(item);
            if (this.#rows.has(key)) continue;
            let known = before.get(key);
            if (!known) {
                const made = this.row(item);
                made.cells.forEach((cell, index) => cell.setAttribute("data-title", this.titles[index]));
                known = { row: make("tr", {}, ...made.cells), update: made.update };
            }
            before.delete(key);
            known.item = item;
            known.update?.(item, known.row);
            this.#rows.set(key, known);
            if (known.row === place) place = place.nextElementSibling;
            else this.body.insertBefore(known.row, place);
        }
        for (const { row } of before.values()) row.remove();
        // A row that was moved has lost the focus.
        if (focused?.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
        const end = this.#start + shown.length;
        const range = count > PAGE ? `${number(this.#start + 1)} to ${number(end)} of ${number(count)}` : number(count);
        const noun = this.nouns[this.total === 1 ? 0 : 1];
        const text = count === this.total ? `${range} ${noun}` : `${range} that match, of ${number(this.total)} ${noun}`;
        if (this.count.textContent !== text) this.count.textContent = text;
        this.count.hidden = this.total === 0;
        this.table.hidden = count === 0;
        this.none.hidden = count !== 0;
        this.pager.hidden = count <= PAGE;
        this.back.disabled = this.#start === 0;
        this.on.disabled = end >= count;
    }
}
