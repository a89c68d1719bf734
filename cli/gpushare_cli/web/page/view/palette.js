// How a card looks: a colour, how full it is, and a letter or a pattern for those who see no colours.

/**
 * @typedef {import("../state/model.js").Card} Card
 * @typedef {{paper: string, track: string, dim: string, ink: string, muted: string, news: string,
 *   ramp: string[], unknown: string, ok: string, sick: string, cordoned: string, closed: string,
 *   classes: Record<string, string>, kinds: string[], other: string}} Theme
 * @typedef {{fill: string, level: number, letter: string, pattern: "" | "cross" | "hollow" | "stripes"}} Look
 *   ``level``: how much of the cell is filled, from 0 to 1
 * @typedef {{look: Look, text: string}} LegendEntry
 */

/** @type {Theme} */
export const LIGHT = {
  paper: "#fbfaf7",
  track: "#e9e6de",
  dim: "#f1efe9",
  ink: "#1d1f24",
  muted: "#6a6c74",
  news: "#0f9d8a",
  ramp: ["#e9e6de", "#d3dcea", "#b7c8e2", "#97b0d7", "#7796c8", "#597bb6", "#3f619f", "#2a4884", "#172f63"],
  unknown: "#c9c4b6",
  ok: "#8fb3a3",
  sick: "#c23a2b",
  cordoned: "#b5791a",
  closed: "#8b8d94",
  classes: { Memory: "#4a6fae", Slices: "#2f8f83", Exclusive: "#7a4f9c", Mixed: "#c9a24b" },
  kinds: ["#4a6fae", "#cb7440", "#4f9168", "#9b5697", "#b59a32", "#35909b", "#b54e66", "#7468b5", "#7d8a36", "#8b6a53"],
  other: "#a9a69d",
};

/** @type {Theme} */
export const DARK = {
  paper: "#14161a",
  track: "#262a31",
  dim: "#1b1e23",
  ink: "#eceae4",
  muted: "#959aa5",
  news: "#3fd6bf",
  ramp: ["#262a31", "#273751", "#2d4873", "#365a94", "#4670b3", "#5f8bcf", "#80a9e4", "#a9c8f4", "#d8e7ff"],
  unknown: "#3a3e46",
  ok: "#4c7a69",
  sick: "#ff6f5c",
  cordoned: "#e3b04d",
  closed: "#7d828c",
  classes: { Memory: "#6f97d8", Slices: "#4fb8aa", Exclusive: "#b18ad6", Mixed: "#d9bd72" },
  kinds: ["#6f97d8", "#e29263", "#6fb78a", "#c480bf", "#d2bb5b", "#58b6c1", "#dc7a8f", "#9d92de", "#a5b35d", "#b8947b"],
  other: "#70747d",
};

/** @type {Record<string, string>} */
const CLASS_LETTERS = { Memory: "M", Slices: "S", Exclusive: "E", Mixed: "X" };
/** @type {Record<string, [Look["pattern"], string]>} */
const STATES = { Sick: ["cross", "S"], Cordoned: ["hollow", "C"], Closed: ["stripes", "N"] };
const FIRST_LETTER = 65;
/** How many namespaces have a colour. */
export const COLORS = LIGHT.kinds.length;

/** Says how each card looks, by what it is coloured by. */
export class Palette {
  /**
   * @param {Theme} theme
   * @param {string} color held, used, health, class or namespace
   * @param {string[]} namespaces those that have a colour, by its place
   * @param {number} total of namespaces
   */
  constructor(theme, color, namespaces, total) {
    this.theme = theme;
    this.color = color;
    this.ranks = new Map(namespaces.map((name, rank) => [name, rank]));
    this.ranks.delete("");
    this.others = total - this.ranks.size;
  }

  /**
   * @param {Card} card
   * @returns {Look}
   */
  look(card) {
    const { theme } = this;
    if (this.color === "health") return this.health(card.state);
    const [pattern] = STATES[card.state] ?? [""];
    if (this.color === "used") {
      const used = card.used;
      if (used === null) return { fill: theme.unknown, level: 1, letter: "?", pattern };
      return { fill: this.shade(used), level: used, letter: "", pattern };
    }
    if (this.color === "class") {
      const fill = theme.classes[card.serves] ?? theme.other;
      return { fill, level: 1, letter: CLASS_LETTERS[card.serves] ?? "?", pattern };
    }
    if (this.color === "namespace") {
      const { namespace } = card;
      if (!namespace) return { fill: theme.track, level: 0, letter: "", pattern };
      return { fill: this.ofNamespace(namespace), level: 1, letter: this.letter(namespace), pattern };
    }
    return { fill: this.shade(card.held), level: card.held, letter: "", pattern };
  }

  /**
   * @param {string} state
   * @returns {Look}
   */
  health(state) {
    const { theme } = this;
    const fill = { Sick: theme.sick, Cordoned: theme.cordoned, Closed: theme.closed }[state] ?? theme.ok;
    const [pattern, letter] = STATES[state] ?? ["", ""];
    return { fill, level: 1, letter, pattern };
  }

  /** @param {number} level */
  shade(level) {
    const { ramp } = this.theme;
    return level <= 0 ? ramp[0] : ramp[Math.max(1, Math.min(ramp.length - 1, Math.ceil(level * (ramp.length - 1))))];
  }

  /** @param {string} namespace */
  ofNamespace(namespace) {
    const rank = this.ranks.get(namespace);
    return rank === undefined ? this.theme.other : this.theme.kinds[rank];
  }

  /** @param {string} namespace */
  letter(namespace) {
    const rank = this.ranks.get(namespace);
    return rank === undefined ? "" : String.fromCharCode(FIRST_LETTER + rank);
  }

  /** @returns {LegendEntry[]} */
  legend() {
    return [...this.ofColor(), ...this.ofStates()];
  }

  /** @returns {LegendEntry[]} */
  ofColor() {
    const { theme } = this;
    if (this.color === "health") return [{ look: this.health("Open"), text: "takes pods" }];
    if (this.color === "class") {
      return Object.entries(theme.classes).map(([name, fill]) => ({
        look: { fill, level: 1, letter: CLASS_LETTERS[name], pattern: "" },
        text: name === "Mixed" ? "Mixed, open to all" : name,
      }));
    }
    if (this.color === "namespace") {
      /** @type {LegendEntry[]} */
      const known = [...this.ranks.keys()].map((name) => ({
        look: { fill: this.ofNamespace(name), level: 1, letter: this.letter(name), pattern: "" },
        text: name,
      }));
      const rest = { fill: theme.other, level: 1, letter: "", pattern: /** @type {const} */ ("") };
      return this.others > 0 ? [...known, { look: rest, text: this.others === 1 ? "1 other" : `${this.others} others` }] : known;
    }
    /** @type {LegendEntry[]} */
    const steps = [0, 0.25, 0.5, 0.75, 1].map((level) => ({
      look: { fill: this.shade(level), level: 1, letter: "", pattern: "" },
      text: level === 0 ? "0%" : level === 1 ? `100% ${this.color}` : "",
    }));
    const unknown = { fill: theme.unknown, level: 1, letter: "?", pattern: /** @type {const} */ ("") };
    return this.color === "used" ? [...steps, { look: unknown, text: "not measured" }] : steps;
  }

  /** @returns {LegendEntry[]} */
  ofStates() {
    return Object.keys(STATES).map((state) => ({
      look: this.color === "health" ? this.health(state) : { ...this.health(state), fill: this.theme.track, letter: "" },
      text: { Sick: "sick", Cordoned: "cordoned", Closed: "node takes no pods" }[state] ?? state,
    }));
  }
}
