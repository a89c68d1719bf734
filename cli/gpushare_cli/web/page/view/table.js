// The same as the map for those who search, copy, type, or listen: a row for each card, drawn as far as seen.

import { ORDER } from "../state/model.js";
import { counted, memory } from "../state/text.js";
import { button, byId, el } from "./dom.js";

/**
 * @typedef {import("../state/model.js").Card} Card
 * @typedef {{key: string, title: string, text: (card: Card, group: string) => string, isNumber?: boolean,
 *   value?: (card: Card) => number, isLargestFirst?: boolean}} TableColumn
 *   ``text``: with the label of racks; ``isLargestFirst``: at the first click on its title
 */

const ROW = 28;
const BEYOND = 8;
const PAGE = 20;

/** @type {TableColumn[]} */
const COLUMNS = [
  { key: "node", title: "Node", text: (card) => card.node.name },
  { key: "card", title: "Card", text: (card) => String(card.index), isNumber: true, value: (card) => card.index },
  { key: "rack", title: "Rack", text: (card, group) => card.node.group(group) ?? "" },
  { key: "model", title: "Model", text: (card) => card.model },
  { key: "class", title: "Class", text: (card) => card.serves },
  { key: "state", title: "State", text: (card) => card.state },
  {
    key: "held",
    title: "Held",
    text: (card) => `${card.heldUnits}/${card.units}`,
    isNumber: true,
    value: (card) => card.held,
    isLargestFirst: true,
  },
  {
    key: "free",
    title: "Free",
    text: (card) => String(card.freeUnits),
    isNumber: true,
    value: (card) => card.freeUnits,
    isLargestFirst: true,
  },
  {
    key: "used",
    title: "Used",
    text: (card) => (card.usedBytes === null ? "?" : memory(card.usedBytes)),
    isNumber: true,
    value: (card) => card.usedBytes ?? -1,
    isLargestFirst: true,
  },
  {
    key: "pods",
    title: "Pods",
    text: (card) => card.holders.map((holder) => `${holder.namespace}/${holder.name}`).join(", "),
    value: (card) => card.holders.length,
    isLargestFirst: true,
  },
];

export class CardTable {
  #holder = byId("table", HTMLDivElement);
  /** @type {Card[]} */
  #cards = [];
  #sort = "node";
  #group = "";
  #current = 0;
  #head = el("div", { role: "row", class: "head", "aria-rowindex": "1" });
  #body = el("div", { role: "rowgroup", class: "body" });
  #scroll = el("div", { class: "scroll", role: "table", "aria-label": "All cards" });
  #status = el("span", { role: "status" });
  #count = "";

  /**
   * @param {(key: string) => void} onSort
   * @param {(card: Card) => void} onChoose
   */
  constructor(onSort, onChoose) {
    this.onSort = onSort;
    this.onChoose = onChoose;
    const head = el("div", { role: "rowgroup" }, this.#head);
    this.#scroll.append(head, this.#body);
    const copy = button("Copy as text", () => void this.#copy(), { class: "quiet" });
    this.#holder.replaceChildren(el("p", { class: "bar" }, this.#status, copy), this.#scroll);
    this.#scroll.addEventListener("scroll", () => this.#draw());
    this.#scroll.addEventListener("keydown", (event) => this.#typed(event));
    // Not on each row: one that is replaced between press and release of a button gets no click.
    this.#body.addEventListener("click", (event) => {
      if (!getSelection()?.toString()) this.#choose(Math.floor((event.clientY - this.#body.getBoundingClientRect().top) / ROW));
    });
    new ResizeObserver(() => this.#draw()).observe(this.#scroll);
  }

  /**
   * @param {Card[]} cards in order of node and card
   * @param {string} sort key of a column, with - before it for the other way round
   * @param {string} group label of racks
   */
  show(cards, sort, group) {
    const current = sort === this.#sort ? this.#cards[this.#current] : undefined;
    if (!current) this.#current = 0;
    this.#sort = sort;
    this.#group = group;
    this.#cards = sorted(cards, sort, group);
    const at = current ? this.#cards.findIndex((card) => card.index === current.index && card.node.name === current.node.name) : -1;
    this.#current = at >= 0 ? at : Math.min(this.#current, Math.max(0, cards.length - 1));
    this.#scroll.setAttribute("aria-rowcount", String(cards.length + 1));
    this.#body.style.height = `${cards.length * ROW}px`;
    const count = counted(cards.length, "card");
    if (this.#count !== count) this.#status.textContent = this.#count = count;
    this.#heads();
    this.#draw();
  }

  focus() {
    this.#draw();
    this.#focusRow();
  }

  #heads() {
    if (this.#head.dataset.sort === this.#sort) return;
    this.#head.dataset.sort = this.#sort;
    const wasFocused = this.#head.contains(document.activeElement) ? document.activeElement?.textContent : null;
    this.#head.replaceChildren(
      ...COLUMNS.map((column) => {
        const isSorted = this.#sort.replace("-", "") === column.key;
        const isDescending = this.#sort.startsWith("-") !== (column.isLargestFirst ?? false);
        const next = isSorted && !this.#sort.startsWith("-") ? `-${column.key}` : column.key;
        return el(
          "div",
          {
            role: "columnheader",
            class: `c-${column.key}${column.isNumber ? " number" : ""}`,
            "aria-sort": !isSorted ? null : isDescending ? "descending" : "ascending",
          },
          button(column.title, () => this.onSort(next), {}),
        );
      }),
    );
    for (const made of this.#head.querySelectorAll("button")) if (made.textContent === wasFocused) made.focus();
  }

  /** Rows that are the same stay, with what is marked in them; that with the focus stays though it is not seen. */
  #draw() {
    const first = Math.max(0, Math.floor(this.#scroll.scrollTop / ROW) - BEYOND);
    const last = Math.min(this.#cards.length, first + Math.ceil(this.#scroll.clientHeight / ROW) + 2 * BEYOND);
    const hadFocus = this.#body.contains(document.activeElement);
    const places = Array.from({ length: Math.max(0, last - first) }, (_, index) => first + index);
    if (this.#cards.length && this.#current < first) places.unshift(this.#current);
    if (this.#current >= last && this.#current < this.#cards.length) places.push(this.#current);
    const before = new Map([...this.#body.children].map((row) => [row.getAttribute("data-at"), row]));
    const rows = places.map((at) => {
      const [made, known] = [this.#row(at), before.get(String(at))];
      known?.setAttribute("tabindex", at === this.#current ? "0" : "-1");
      return known?.isEqualNode(made) ? known : made;
    });
    const kept = new Set(rows);
    for (const row of before.values()) if (!kept.has(row)) row.remove();
    let next = this.#body.firstElementChild;
    for (const row of rows) {
      if (row === next) next = next.nextElementSibling;
      else this.#body.insertBefore(row, next);
    }
    if (hadFocus) this.#focusRow(false);
  }

  /** @param {number} at */
  #row(at) {
    const card = this.#cards[at];
    const row = el(
      "div",
      {
        role: "row",
        tabindex: at === this.#current ? "0" : "-1",
        "aria-rowindex": String(at + 2),
        class: `row s-${card.state.toLowerCase()}`,
        "data-at": String(at),
      },
      ...COLUMNS.map((column) =>
        el(
          "div",
          { role: "cell", class: `c-${column.key}${column.isNumber ? " number" : ""}` },
          column.text(card, this.#group),
        ),
      ),
    );
    row.style.top = `${at * ROW}px`;
    return row;
  }

  /** @param {number} at */
  #choose(at) {
    const card = this.#cards[at];
    if (!card) return;
    this.#current = at;
    this.onChoose(card);
  }

  /** @param {KeyboardEvent} event */
  #typed(event) {
    if (!this.#body.contains(document.activeElement)) return;
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: PAGE, PageUp: -PAGE, Home: -Infinity, End: Infinity };
    const step = steps[/** @type {keyof typeof steps} */ (event.key)];
    if (event.key === "Enter") this.#choose(this.#current);
    if (step === undefined) return;
    event.preventDefault();
    this.#current = Math.max(0, Math.min(this.#cards.length - 1, this.#current + step));
    this.#focusRow();
  }

  #focusRow(canScroll = true) {
    const top = this.#current * ROW;
    const seen = this.#scroll.clientHeight - 2 * ROW;
    if (canScroll && (top < this.#scroll.scrollTop || top > this.#scroll.scrollTop + seen)) {
      this.#scroll.scrollTop = top - seen / 2;
      this.#draw();
    }
    const row = this.#body.querySelector(`[data-at="${this.#current}"]`);
    if (row instanceof HTMLElement) row.focus({ preventScroll: true });
  }

  async #copy() {
    const lines = this.#cards.map((card) => COLUMNS.map((column) => column.text(card, this.#group)).join("\t"));
    await navigator.clipboard.writeText([COLUMNS.map((column) => column.title).join("\t"), ...lines].join("\n"));
    this.#status.textContent = `${this.#count}, ${counted(lines.length, "row")} copied`;
  }
}

/**
 * @param {Card[]} cards
 * @param {string} sort
 * @param {string} group
 * @returns {Card[]}
 */
export function sorted(cards, sort, group) {
  const isBackwards = sort.startsWith("-");
  const column = COLUMNS.find((each) => each.key === sort.replace("-", "")) ?? COLUMNS[0];
  if (column.key === "node") return isBackwards ? [...cards].reverse() : cards;
  const { value, text } = column;
  const sign = column.isLargestFirst ? -1 : 1;
  const order = value
    ? (/** @type {Card} */ one, /** @type {Card} */ other) => sign * (value(one) - value(other))
    : (/** @type {Card} */ one, /** @type {Card} */ other) => ORDER.compare(text(one, group), text(other, group));
  const found = [...cards].sort(order);
  return isBackwards ? found.reverse() : found;
}
