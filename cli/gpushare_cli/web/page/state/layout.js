// Where each card is drawn: racks side by side, nodes one below the other, cards in a row. Pure.

/**
 * @typedef {import("./model.js").ClusterNode} ClusterNode
 * @typedef {import("./model.js").Rack} Rack
 * @typedef {{cell: number, height: number, gap: number, row: number, label: number, title: number,
 *   space: number, line: number}} Geometry
 *   ``cell``: width of a card; ``row``: from a node to the next; ``label``: of nodes' names; 0: they have none
 * @typedef {{title: string, short: string, total: number, x: number, y: number, width: number, height: number,
 *   nodes: ClusterNode[]}} Column
 * @typedef {{geometry: Geometry, columns: Column[], width: number, height: number}} Layout
 */

/** Widths and heights of a card, from those of 5,000 nodes to those of three. */
/** @type {Array<[number, number]>} */
const CELLS = [
  [2, 1], [2, 2], [3, 2], [4, 2], [5, 2], [4, 3], [5, 3], [6, 3], [6, 4], [7, 4], [7, 5], [8, 6], [10, 8], [12, 12],
  [14, 14], [18, 16], [22, 18], [28, 18], [36, 18], [48, 20], [64, 24], [80, 30], [100, 38], [124, 48],
];
export const NAMED_FROM = 12;
export const BARS_FROM = 28;
const MAX_BAR = 54;
const MIN_BAR = 30;
const ROWS = 48;
const LETTER = 7.4;
const MAX_LABEL = 200;
const TITLE_LETTER = 7.2;
const MAX_TITLE = 40;
/** The title of nodes without the label, where there is little room. */
const REST = "none";
/** @type {Record<string, [number, number]>} */
const SIZES = { small: [4, 3], medium: [14, 14], large: [80, 30] };

/**
 * @typedef {{racks: Rack[], letters: number, cards: number, same: number, hasTitles: boolean}} Measured
 *   ``letters`` of the longest name of a node; ``cards``: the most of a node; ``same``: letters with which all
 *   names of racks begin
 */

/**
 * @param {Rack[]} racks
 * @returns {Measured}
 */
function measured(racks) {
  let [letters, cards] = [0, 1];
  for (const rack of racks) {
    for (const node of rack.nodes) {
      letters = Math.max(letters, node.name.length);
      cards = Math.max(cards, node.cards.length);
    }
  }
  const names = racks.filter((rack) => !rack.isRest).map((rack) => rack.name);
  return { racks, letters, cards, same: commonStart(names).length, hasTitles: racks.some((rack) => rack.name) };
}

/**
 * @param {[number, number]} cell width and height
 * @param {Measured} found
 * @param {number} lines of cards of a node
 * @returns {Geometry}
 */
function geometryOf([cell, height], { letters, cards, hasTitles }, lines) {
  const isBar = cell >= BARS_FROM;
  const gap = isBar ? 3 : cell < 6 ? 0 : 1;
  const label = cell >= NAMED_FROM ? Math.min(MAX_LABEL, Math.ceil(letters * LETTER) + 14) : 0;
  const row = lines * (height + (lines > 1 ? gap : 0)) + (isBar ? (lines > 1 ? 9 : 6) : 1);
  const title = hasTitles ? (cell < 6 ? 15 : 18) : 0;
  return { cell, height, gap, row, label, title, space: space(cell), line: Math.ceil(cards / lines) };
}

/** @param {number} cell */
function space(cell) {
  return cell < 6 ? 9 : cell < NAMED_FROM ? 12 : 20;
}

/**
 * Returns the layout with the largest cards that need no scrolling, or with those of a size.
 * @param {Rack[]} racks
 * @param {number} width of what can be seen
 * @param {number} height of what can be seen
 * @param {string} size
 * @returns {Layout}
 */
export function layoutOf(racks, width, height, size) {
  const found = measured(racks);
  if (size in SIZES) return arranged(found, width, SIZES[size], height);
  let best = arranged(found, width, CELLS[0], height);
  for (const cell of CELLS.slice(1)) {
    const larger = arranged(found, width, cell, height);
    if (larger.height <= height && larger.width <= width) best = larger;
  }
  return best.columns.length === 1 ? widened(found, best, width, height) : best;
}

/**
 * Returns a layout of one column with bars as wide as there is room.
 * @param {Measured} found
 * @param {Layout} layout
 * @param {number} width
 * @param {number} height
 */
function widened(found, layout, width, height) {
  const { geometry, columns } = layout;
  if (geometry.cell < BARS_FROM) return layout;
  for (const lines of [2, 1]) {
    const line = Math.ceil(found.cards / lines);
    const cell = Math.floor((width - geometry.label + geometry.gap) / line) - geometry.gap;
    const rows = Math.floor((height - geometry.title) / columns[0].nodes.length / lines) - 9;
    const bars = arranged(found, width, [cell, Math.min(MAX_BAR, rows)], height, lines);
    if (rows >= MIN_BAR && bars.height <= height) return bars;
  }
  return layout;
}

/**
 * @param {Measured} found
 * @param {number} width
 * @param {[number, number]} cell width and height
 * @param {number} visible height
 * @param {number} [lines] of cards of a node
 * @returns {Layout}
 */
function arranged(found, width, cell, visible, lines = 1) {
  const geometry = geometryOf(cell, found, lines);
  const columns = found.racks.flatMap((rack) => columnsOf(rack, geometry, visible, found.same));
  let [x, y, line, widest] = [0, 0, 0, 0];
  for (const column of columns) {
    if (x && x + column.width > width) [x, y, line] = [0, y + line + geometry.space, 0];
    [column.x, column.y] = [x, y];
    x += column.width + geometry.space;
    line = Math.max(line, column.height);
    widest = Math.max(widest, x - geometry.space);
  }
  return { geometry, columns, width: widest, height: columns.length ? y + line : 0 };
}

/**
 * Returns with what all names begin, up to a separator: rack- of rack-01 and rack-02.
 * @param {string[]} names
 */
export function commonStart(names) {
  if (names.length < 2) return "";
  const same = names.reduce((start, name) => {
    let end = 0;
    while (end < start.length && start[end] === name[end]) end += 1;
    return start.slice(0, end);
  });
  return same.replace(/[a-z0-9]*$/i, "");
}

/**
 * Returns a rack, in columns of the same height where it has many nodes.
 * @param {Rack} rack
 * @param {Geometry} geometry
 * @param {number} visible
 * @param {number} same letters with which all racks' names begin
 * @returns {Column[]}
 */
function columnsOf(rack, geometry, visible, same) {
  const fitting = Math.max(8, Math.floor((visible - geometry.title) / geometry.row));
  const parts = Math.ceil(rack.nodes.length / (rack.name ? ROWS : Math.min(ROWS, fitting)));
  const rows = Math.ceil(rack.nodes.length / parts);
  const cards = rack.nodes.reduce((most, node) => Math.max(most, node.cards.length), 1);
  const own = geometry.label + Math.min(cards, geometry.line) * (geometry.cell + geometry.gap) - geometry.gap;
  const short = rack.isRest ? REST : rack.name.slice(same);
  const width = Math.max(own, Math.min(MAX_TITLE, Math.ceil(short.length * TITLE_LETTER)));
  return Array.from({ length: parts }, (_, part) => {
    const nodes = rack.nodes.slice(part * rows, (part + 1) * rows);
    const height = geometry.title + nodes.length * geometry.row;
    const title = part ? "" : rack.name;
    return { title, short, total: rack.nodes.length, x: 0, y: 0, width, height, nodes };
  });
}

/**
 * Returns the card at a place of the layout.
 * @param {Layout} layout
 * @param {number} x
 * @param {number} y
 * @returns {import("./model.js").Card | null}
 */
export function cardAt(layout, x, y) {
  const { geometry } = layout;
  for (const column of layout.columns) {
    const [dx, dy] = [x - column.x - geometry.label, y - column.y - geometry.title];
    if (dx < 0 || dy < 0 || x >= column.x + column.width || y >= column.y + column.height) continue;
    const node = column.nodes[Math.floor(dy / geometry.row)];
    const line = Math.floor((dy % geometry.row) / (geometry.height + geometry.gap));
    const at = Math.floor(dx / (geometry.cell + geometry.gap));
    return at < geometry.line ? (node?.cards[line * geometry.line + at] ?? null) : null;
  }
  return null;
}
