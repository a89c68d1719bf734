// The map: all cards on one canvas as large as what can be seen of it.

import { BARS_FROM, cardAt, layoutOf } from "../state/layout.js";
import { drawBar, drawBox, drawPattern, endOf } from "./cells.js";
import { byId, shown } from "./dom.js";

/**
 * @typedef {import("../state/model.js").Card} Card
 * @typedef {import("../state/model.js").Rack} Rack
 * @typedef {import("../state/layout.js").Layout} Layout
 * @typedef {import("../state/layout.js").Column} Column
 * @typedef {import("./palette.js").Palette} Palette
 * @typedef {{racks: Rack[], palette: Palette, matches: ((card: Card) => boolean) | null, size: string,
 *   selected: string}} MapContent
 */

const BOX_FROM = 9;
const PAD = 2;
const BETWEEN_TITLES = 4;
/** How much of a card that does not match is hidden, from 0 to 1. */
const VEIL = 0.82;
const FLASH_MILLISECONDS = 1600;
/** Where more cards change at a time, none of them is news. */
const MAX_FLASHES = 60;

export class CardMap {
  #holder = byId("map", HTMLDivElement);
  #canvas = byId("canvas", HTMLCanvasElement);
  #spacer = byId("spacer", HTMLDivElement);
  /** @type {MapContent | null} */
  #content = null;
  /** @type {Layout | null} */
  #layout = null;
  /** @type {Map<string, number>} IDs of cards -> until when they are marked as changed, in milliseconds */
  #flashes = new Map();
  #frame = 0;
  #timer = 0;
  /** Where the pointer is: on the canvas, and in the window. */
  /** @type {{x: number, y: number, clientX: number, clientY: number} | null} */
  #pointer = null;
  /** Milliseconds that the last drawing took. */
  lastDraw = 0;

  /**
   * @param {(card: Card | null, x: number, y: number) => void} onPoint
   * @param {(card: Card) => void} onChoose
   */
  constructor(onPoint, onChoose) {
    new ResizeObserver(() => this.#arrange()).observe(this.#holder);
    this.onPoint = onPoint;
    this.#holder.addEventListener("scroll", () => {
      this.#later();
      this.#pointed();
    });
    this.#canvas.addEventListener("pointermove", ({ offsetX: x, offsetY: y, clientX, clientY }) => {
      this.#pointer = { x, y, clientX, clientY };
      this.#pointed();
    });
    this.#canvas.addEventListener("pointerleave", () => {
      this.#pointer = null;
      onPoint(null, 0, 0);
    });
    this.#canvas.addEventListener("click", (event) => {
      const card = this.#at(event.offsetX, event.offsetY);
      if (card) onChoose(card);
    });
  }

  /** What is under the pointer may change while the pointer rests. */
  #pointed() {
    if (!this.#pointer) return;
    const { x, y, clientX, clientY } = this.#pointer;
    this.onPoint(this.#at(x, y), clientX, clientY);
  }

  /**
   * @param {MapContent} content
   * @param {Card[]} [changed]
   */
  show(content, changed = []) {
    this.#content = content;
    if (changed.length <= MAX_FLASHES && !matchMedia("(prefers-reduced-motion: reduce)").matches) {
      for (const card of changed) this.#flashes.set(card.id, performance.now() + FLASH_MILLISECONDS);
    }
    this.#arrange();
    this.#pointed();
  }

  #arrange() {
    if (!this.#content || this.#holder.hidden) return;
    // In a narrow window the map is as high as its content, as far as there is room.
    this.#holder.style.removeProperty("--content");
    const [width, height] = [this.#holder.clientWidth, this.#holder.clientHeight];
    if (!width || !height) return;
    this.#layout = layoutOf(this.#content.racks, width - 2 * PAD, height - 2 * PAD, this.#content.size);
    this.#spacer.style.width = `${this.#layout.width + 2 * PAD}px`;
    this.#spacer.style.height = `${this.#layout.height + 2 * PAD}px`;
    this.#holder.style.setProperty("--content", `${this.#layout.height + 2 * PAD}px`);
    const [seenWidth, seenHeight] = [this.#holder.clientWidth, this.#holder.clientHeight];
    const density = devicePixelRatio || 1;
    this.#canvas.width = Math.round(seenWidth * density);
    this.#canvas.height = Math.round(seenHeight * density);
    this.#canvas.style.width = `${seenWidth}px`;
    this.#canvas.style.height = `${seenHeight}px`;
    this.draw();
  }

  #later() {
    this.#frame ||= requestAnimationFrame(() => this.draw());
  }

  /** Whether cards are bars with their pods. */
  get hasBars() {
    return (this.#layout?.geometry.cell ?? 0) >= BARS_FROM;
  }

  draw() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const context = this.#canvas.getContext("2d", { alpha: false });
    if (!context || !this.#content || !this.#layout) return;
    const began = performance.now();
    const density = devicePixelRatio || 1;
    context.setTransform(density, 0, 0, density, 0, 0);
    context.fillStyle = this.#content.palette.theme.paper;
    context.fillRect(0, 0, this.#canvas.width, this.#canvas.height);
    context.translate(PAD - this.#holder.scrollLeft, PAD - this.#holder.scrollTop);
    const drawing = new Drawing(context, this.#content, this.#layout);
    drawing.all(this.#holder.scrollTop, this.#holder.scrollTop + this.#holder.clientHeight);
    this.#drawFlashes(drawing);
    this.lastDraw = performance.now() - began;
  }

  /** @param {Drawing} drawing */
  #drawFlashes(drawing) {
    const now = performance.now();
    for (const [id, until] of this.#flashes) {
      if (until <= now) this.#flashes.delete(id);
    }
    clearTimeout(this.#timer);
    if (!this.#flashes.size) return;
    drawing.rings(new Set(this.#flashes.keys()), drawing.content.palette.theme.news);
    this.#timer = setTimeout(() => this.#later(), Math.min(...this.#flashes.values()) - now);
  }

  /**
   * @param {number} x of the canvas
   * @param {number} y of the canvas
   * @returns {Card | null}
   */
  #at(x, y) {
    if (!this.#layout) return null;
    return cardAt(this.#layout, x - PAD + this.#holder.scrollLeft, y - PAD + this.#holder.scrollTop);
  }
}

class Drawing {
  /**
   * @param {CanvasRenderingContext2D} context
   * @param {MapContent} content
   * @param {Layout} layout
   */
  constructor(context, content, layout) {
    this.context = context;
    this.content = content;
    this.layout = layout;
  }

  /**
   * Draws what is between two heights.
   * @param {number} top
   * @param {number} bottom
   */
  all(top, bottom) {
    const columns = this.layout.columns.filter((column) => column.y < bottom && column.y + column.height > top);
    for (const column of columns) this.#title(column);
    if (this.layout.geometry.label) for (const column of columns) this.#labels(column);
    if (this.layout.geometry.cell < BOX_FROM) this.#dots(columns);
    else for (const column of columns) this.#cells(column);
    if (this.content.selected) this.rings(new Set([this.content.selected]), this.content.palette.theme.ink);
  }

  /** @param {Column} column */
  #title(column) {
    if (!column.title) return;
    const { context } = this;
    const { theme } = this.content.palette;
    const room = column.width + this.layout.geometry.space - BETWEEN_TITLES;
    context.save();
    context.beginPath();
    context.rect(column.x, column.y, room, this.layout.geometry.title);
    context.clip();
    context.font = '600 11px Inter, "Segoe UI", system-ui, sans-serif';
    context.textAlign = "left";
    context.textBaseline = "alphabetic";
    context.fillStyle = theme.ink;
    const isWide = context.measureText(shown(column.title)).width <= room;
    const title = isWide ? shown(column.title) : endOf(context, shown(column.short), room);
    context.fillText(title, column.x, column.y + 12);
    const width = context.measureText(title).width + 6;
    context.fillStyle = theme.muted;
    context.font = '400 11px Inter, "Segoe UI", system-ui, sans-serif';
    if (width + 24 < room) context.fillText(String(column.total), column.x + width, column.y + 12);
    context.restore();
  }

  /** @param {Column} column */
  #labels(column) {
    const { context } = this;
    const { geometry } = this.layout;
    context.font = `400 ${Math.min(12, geometry.height)}px ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", monospace`;
    context.textAlign = "left";
    context.textBaseline = "middle";
    column.nodes.forEach((node, row) => {
      context.fillStyle = node.closed ? this.content.palette.theme.muted : this.content.palette.theme.ink;
      const y = column.y + geometry.title + row * geometry.row + geometry.height / 2 + 0.5;
      context.fillText(endOf(context, shown(node.name), geometry.label - 12), column.x, y);
    });
  }

  /**
   * Cards of a few pixels: those of one colour after the other, and neighbours as one, which is quicker.
   * @param {Column[]} columns
   */
  #dots(columns) {
    const { context, content } = this;
    const { cell, height } = this.layout.geometry;
    /** @type {Map<string, number[]>} places and widths */
    const byColor = new Map();
    /** @type {Array<[import("./palette.js").Look, number, number]>} */
    const marked = [];
    let [fill, endX, lastY] = ["", -1, -1];
    /** @type {number[]} */
    let places = [];
    for (const column of columns) {
      this.#each(column, (card, x, y) => {
        const isDim = content.matches !== null && !content.matches(card);
        const look = content.palette.look(card);
        const color = isDim ? content.palette.theme.dim : look.fill;
        if (color === fill && x === endX && y === lastY) {
          places[places.length - 1] += cell;
        } else {
          places = byColor.get(color) ?? [];
          if (!places.length) byColor.set(color, places);
          places.push(x, y, cell);
          fill = color;
        }
        [endX, lastY] = [x + cell, y];
        if (look.pattern && !isDim) marked.push([look, x, y]);
      });
    }
    for (const [color, found] of byColor) {
      context.fillStyle = color;
      for (let at = 0; at < found.length; at += 3) context.fillRect(found[at], found[at + 1], found[at + 2], height);
    }
    for (const [look, x, y] of marked) {
      drawPattern(context, content.palette.theme, look, { x, y, width: cell, height });
    }
  }

  /** @param {Column} column */
  #cells(column) {
    const { context, content } = this;
    const { cell, height } = this.layout.geometry;
    this.#each(column, (card, x, y) => {
      const box = { x, y, width: cell, height };
      if (cell >= BARS_FROM) drawBar(context, content.palette, card, box);
      else drawBox(context, content.palette.theme, content.palette.look(card), box);
      if (content.matches === null || content.matches(card)) return;
      // Over all of it: names have a rim, which would hide them if each were faint by itself.
      context.globalAlpha = VEIL;
      context.fillStyle = content.palette.theme.paper;
      context.fillRect(x, y, cell, height);
      context.globalAlpha = 1;
    });
  }

  /**
   * @param {Set<string>} ids of cards
   * @param {string} color
   */
  rings(ids, color) {
    const { context } = this;
    const { cell, height } = this.layout.geometry;
    context.strokeStyle = color;
    context.lineWidth = cell < BOX_FROM ? 1.5 : 2;
    const around = cell < BOX_FROM ? 2 : 1.5;
    const names = new Set([...ids].map((id) => id.slice(0, id.lastIndexOf("/"))));
    for (const column of this.layout.columns) {
      if (!column.nodes.some((node) => names.has(node.name))) continue;
      this.#each(column, (card, x, y) => {
        if (!names.has(card.node.name) || !ids.has(card.id)) return;
        context.strokeRect(x - around, y - around, cell + 2 * around, height + 2 * around);
      });
    }
  }

  /**
   * @param {Column} column
   * @param {(card: Card, x: number, y: number) => void} draw
   */
  #each(column, draw) {
    const { cell, height, gap, row, label, title, line } = this.layout.geometry;
    let top = column.y + title;
    for (const node of column.nodes) {
      let [x, y] = [column.x + label, top];
      for (let at = 0; at < node.cards.length; at += 1) {
        if (at && at % line === 0) [x, y] = [column.x + label, y + height + gap];
        draw(node.cards[at], x, y);
        x += cell + gap;
      }
      top += row;
    }
  }
}
