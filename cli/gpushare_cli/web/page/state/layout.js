// Where each card is drawn: racks side by side, nodes one below the other, cards in a row. Pure.

/**
 * @typedef {import("./model.js").ClusterNode} ClusterNode
 * @typedef {import("./model.js").Rack} Rack
 * @typedef {{cell: number, height: number, gap: number, row: number, label: number, title: number}} Geometry
 *   ``cell``: width of a card; ``row``: from a node to the next; ``label``: of nodes' names; 0: they have none
 * @typedef {{title: string, total: number, x: number, y: number, width: number, height: number,
 *   nodes: ClusterNode[]}} Column
 * @typedef {{geometry: Geometry, columns: Column[], width: number, height: number}} Layout
 */

/** Widths of a card, from those of 5,000 nodes to those of three. */
const CELLS = [2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 18, 22, 28, 36, 48, 64, 80, 100, 124, 150];
export const NAMED_FROM = 12;
export const BARS_FROM = 28;
const SPACE = 14;
const ROWS = 48;
/** @type {Record<string, number>} */
const SIZES = { small: 4, medium: 14, large: 80 };

/**
 * @param {number} cell
 * @param {number} letters in the longest name of a node
 * @param {boolean} hasTitles
 * @returns {Geometry}
 */
export function geometryOf(cell, letters, hasTitles) {
  const isBar = cell >= BARS_FROM;
  const height = isBar ? Math.min(34, Math.max(18, Math.round(cell / 3))) : Math.max(2, cell);
  const gap = isBar ? 3 : 1;
  const label = cell >= NAMED_FROM ? Math.min(190, Math.round(letters * 6.7) + 12) : 0;
  return { cell, height, gap, row: height + (isBar ? 5 : gap), label, title: hasTitles ? 20 : 0 };
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
  if (size in SIZES) return arranged(racks, width, SIZES[size], height);
  let best = arranged(racks, width, CELLS[0], height);
  for (const cell of CELLS.slice(1)) {
    const larger = arranged(racks, width, cell, height);
    if (larger.height > height || larger.width > width) break;
    best = larger;
  }
  return best;
}

/**
 * @param {Rack[]} racks
 * @param {number} width
 * @param {number} cell
 * @param {number} visible height
 * @returns {Layout}
 */
function arranged(racks, width, cell, visible) {
  const letters = Math.max(0, ...racks.map((rack) => longest(rack.nodes)));
  const geometry = geometryOf(cell, letters, racks.some((rack) => rack.name));
  const columns = racks.flatMap((rack) => columnsOf(rack, geometry, visible));
  let [x, y, line, widest] = [0, 0, 0, 0];
  for (const column of columns) {
    if (x && x + column.width > width) [x, y, line] = [0, y + line + SPACE, 0];
    [column.x, column.y] = [x, y];
    x += column.width + SPACE;
    line = Math.max(line, column.height);
    widest = Math.max(widest, x - SPACE);
  }
  return { geometry, columns, width: widest, height: columns.length ? y + line : 0 };
}

/** @param {ClusterNode[]} nodes */
function longest(nodes) {
  return nodes.reduce((most, node) => Math.max(most, node.name.length), 0);
}

/**
 * Returns a rack, in columns of the same height where it has many nodes.
 * @param {Rack} rack
 * @param {Geometry} geometry
 * @param {number} visible
 * @returns {Column[]}
 */
function columnsOf(rack, geometry, visible) {
  const fitting = Math.max(8, Math.floor((visible - geometry.title) / geometry.row));
  const parts = Math.ceil(rack.nodes.length / (rack.name ? ROWS : Math.min(ROWS, fitting)));
  const rows = Math.ceil(rack.nodes.length / parts);
  const cards = rack.nodes.reduce((most, node) => Math.max(most, node.cards.length), 1);
  const width = geometry.label + cards * (geometry.cell + geometry.gap) - geometry.gap;
  return Array.from({ length: parts }, (_, part) => {
    const nodes = rack.nodes.slice(part * rows, (part + 1) * rows);
    const height = geometry.title + nodes.length * geometry.row;
    return { title: part ? "" : rack.name, total: rack.nodes.length, x: 0, y: 0, width, height, nodes };
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
    return node?.cards[Math.floor(dx / (geometry.cell + geometry.gap))] ?? null;
  }
  return null;
}
