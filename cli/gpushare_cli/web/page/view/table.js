// The same as the map for those who search, copy, type, or listen: a row for each card, drawn as far as seen.

import { ORDER } from "../state/model.js";
import { memory } from "../state/text.js";
import { button, byId, el } from "./dom.js";

/**
 * @typedef {import("../state/model.js").Card} Card
 * @typedef {{key: string, title: string, text: (card: Card) => string, isNumber?: boolean,
 *   value?: (card: Card) => number}} TableColumn
 */

const ROW = 28;
const BEYOND = 8;
const PAGE = 20;

/** @type {TableColumn[]} */
const COLUMNS = [
  { key: "node", title: "Node", text: (card) => card.node.name },
  { key: "card", title: "Card", text: (card) => String(card.index), isNumber: true, value: (card) => card.index },
  { key: "rack", title: "Rack", text: () => "" },
  { key: "model", title: "Model", text: (card) => card.model },
  { key: "class", title: "Class", text: (card) => card.serves },
  { key: "state", title: "State", text: (card) => card.state },
  {
    key: "held",
    title: "Held",
    text: (card) => `${card.heldUnits}/${card.units}`,
    isNumber: true,
    value: (card) => -card.held,
  },
  {
    key: "free",
    title: "Free",
    text: (card) => String(card.freeUnits),
    isNumber: true,
    value: (card) => -card.freeUnits,
  },
  {
    key: "used",
    title: "Used",
    text: (card) => (card.usedBytes === null ? "?" : memory(card.usedBytes)),
    isNumber: true,
    value: (card) => -(card.usedBytes ?? -1),
  },
  {
    key: "pods",
    title: "Pods",
    text: (card) => card.holders.map((holder) => `${holder.namespace}/${holder.name}`).join(", "),
    value: (card) => -card.holders.length,
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
    new ResizeObserver(() => this.#draw()).observe(this.#scroll);
  }

  /**
   * @param {Card[]} cards in order of node and card
   * @param {string} sort key of a column, with - before it for the other way round
   * @param {string} group label of racks
   */
  show(cards, sort, group) {
    this.#sort = sort;
    this.#group = group;
    this.#cards = sorted(cards, sort, group);
    this.#current = Math.min(this.#current, Math.max(0, cards.length - 1));
    this.#scroll.setAttribute("aria-rowcount", String(cards.length + 1));
    this.#body.style.height = `${cards.length * ROW}px`;
    this.#status.textContent = cards.length === 1 ? "1 card" : `${cards.length.toLocaleString("en")} cards`;
    this.#heads();
    this.#draw();
  }

  focus() {
    this.#draw();
    this.#focusRow();
  }

  #heads() {
    const wasFocused = document.activeElement?.closest(".head") ? document.activeElement.textContent : null;
    this.#head.replaceChildren(
      ...COLUMNS.map((column) => {
        const isSorted = this.#sort.replace("-", "") === column.key;
        const direction = this.#sort.startsWith("-") ? "descending" : "ascending";
        const next = isSorted && !this.#sort.startsWith("-") ? `-${column.key}` : column.key;
        return el(
          "div",
          {
            role: "columnheader",
            class: `c-${column.key}${column.isNumber ? " number" : ""}`,
            "aria-sort": isSorted ? direction : null,
          },
          button(column.title, () => this.onSort(next), {}),
        );
      }),
    );
    for (const made of this.#head.querySelectorAll("button")) if (made.textContent === wasFocused) made.focus();
  }

  #draw() {
    const first = Math.max(0, Math.floor(this.#scroll.scrollTop / ROW) - BEYOND);
    const last = Math.min(this.#cards.length, first + Math.ceil(this.#scroll.clientHeight / ROW) + 2 * BEYOND);
    const hadFocus = this.#body.contains(document.activeElement);
    const rows = [];
    for (let at = first; at < last; at += 1) rows.push(this.#row(at));
    this.#body.replaceChildren(...rows);
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
          column.key === "rack" ? (card.node.group(this.#group) ?? "") : column.text(card),
        ),
      ),
    );
    row.style.top = `${at * ROW}px`;
    row.addEventListener("click", () => {
      if (!getSelection()?.toString()) this.#choose(at);
    });
    return row;
  }

  /** @param {number} at */
  #choose(at) {
    this.#current = at;
    this.onChoose(this.#cards[at]);
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
    const columns = COLUMNS;
    const lines = this.#cards.map((card) =>
      columns
        .map((column) => (column.key === "rack" ? (card.node.group(this.#group) ?? "") : column.text(card)))
        .join("\t"),
    );
    await navigator.clipboard.writeText([columns.map((column) => column.title).join("\t"), ...lines].join("\n"));
    this.#status.textContent = `${this.#cards.length.toLocaleString("en")} rows copied`;
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
  const { value } = column;
  const text = column.key === "rack" ? (/** @type {Card} */ card) => card.node.group(group) ?? "" : column.text;
  const order = value
    ? (/** @type {Card} */ one, /** @type {Card} */ other) => value(one) - value(other)
    : (/** @type {Card} */ one, /** @type {Card} */ other) => ORDER.compare(text(one), text(other));
  const found = [...cards].sort(order);
  return isBackwards ? found.reverse() : found;
}
