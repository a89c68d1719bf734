// What the page knows of the cluster: cards of nodes, and lists. Pure: no document, no network.

/**
 * @typedef {{namespace: string, name: string, units: number, askedBytes?: number, usedBytes?: number | null,
 *   state?: string, exceeds?: boolean}} Holder
 * @typedef {{index: number, uuid: string, state?: string, reason?: string, serves?: string, model?: string,
 *   unit?: string, units?: number, heldUnits?: number, freeUnits?: number, memoryBytes?: number,
 *   heldBytes?: number, usedBytes?: number | null, hasProblem?: boolean, holders?: Holder[]}} CardRow
 * @typedef {{name: string, groups?: Record<string, string>, policy?: string, closed?: string,
 *   cards?: CardRow[]}} NodeRow
 * @typedef {{namespace: string, name: string, since?: string, asks?: Record<string, number | null>,
 *   reason?: string}} WaitingPod
 * @typedef {{total: number, pods: WaitingPod[]}} WaitingList
 * @typedef {{severity: string, reason: string, kind: string, sentence: string, total?: number,
 *   names?: string[], detail?: string, command?: string}} Problem
 * @typedef {{readAt: string, trouble: string, message: string}} Freshness
 * @typedef {{server: string, version: string, groupLabels: string[], rackLabel: string, unread: string[],
 *   incomplete: string[]}} Title
 * @typedef {{title?: Title, waiting?: WaitingList, problems?: Problem[], freshness?: Freshness}} Parts
 * @typedef {{version: number, whole: boolean, nodes: NodeRow[], removed: string[], parts: Parts}} Message
 */

/** @type {Holder[]} */
const NOBODY = [];

/** One text for all that are equal: 40,000 cards have few models. */
class Texts {
  /** @type {Map<string, string>} */
  #known = new Map();

  /** @param {string} text */
  of(text) {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    this.#known.set(text, text);
    return text;
  }
}

const texts = new Texts();

/** A card, with every field set: thousands of objects of one shape are small and quick. */
export class Card {
  /**
   * @param {ClusterNode} node
   * @param {CardRow} row
   */
  constructor(node, row) {
    this.node = node;
    this.index = row.index;
    this.uuid = row.uuid;
    this.state = texts.of(row.state ?? "Open");
    this.reason = texts.of(row.reason ?? "");
    this.serves = texts.of(row.serves ?? "");
    this.model = texts.of(row.model ?? "");
    this.unit = texts.of(row.unit ?? "");
    this.units = row.units ?? 0;
    this.heldUnits = row.heldUnits ?? 0;
    this.freeUnits = row.freeUnits ?? 0;
    this.memoryBytes = row.memoryBytes ?? 0;
    this.heldBytes = row.heldBytes ?? 0;
    /** @type {number | null} */
    this.usedBytes = row.usedBytes ?? null;
    this.hasProblem = row.hasProblem ?? false;
    this.holders = row.holders ?? NOBODY;
    for (const holder of this.holders) holder.namespace = texts.of(holder.namespace);
  }

  get id() {
    return `${this.node.name}/${this.index}`;
  }

  /** Of its units, from 0 to 1. */
  get held() {
    return this.units ? Math.min(1, this.heldUnits / this.units) : 0;
  }

  /** Of its memory, from 0 to 1; null: not known. */
  get used() {
    if (this.usedBytes === null || !this.memoryBytes) return null;
    return Math.min(1, this.usedBytes / this.memoryBytes);
  }

  /** The namespace that has most of it; empty: nobody. */
  get namespace() {
    if (!this.holders.length) return "";
    if (this.holders.length === 1) return this.holders[0].namespace;
    /** @type {Map<string, number>} */
    const units = new Map();
    for (const { namespace, units: more } of this.holders) units.set(namespace, (units.get(namespace) ?? 0) + more);
    return [...units].reduce((most, next) => (next[1] > most[1] ? next : most))[0];
  }
}

export class ClusterNode {
  /** @param {NodeRow} row */
  constructor(row) {
    this.name = row.name;
    this.groups = row.groups ?? {};
    this.policy = texts.of(row.policy ?? "");
    this.closed = texts.of(row.closed ?? "");
    this.cards = (row.cards ?? []).map((card) => new Card(this, card));
  }

  /**
   * Returns the value of a label; undefined where the node has none.
   * @param {string} label of any name, also of one that all objects have
   */
  group(label) {
    return Object.hasOwn(this.groups, label) ? this.groups[label] : undefined;
  }
}

export class Cluster {
  constructor() {
    this.version = 0;
    /** @type {Map<string, ClusterNode>} */
    this.nodes = new Map();
    /** @type {Required<Parts>} */
    this.parts = {
      title: { server: "", version: "", groupLabels: [], rackLabel: "", unread: [], incomplete: ["waiting", "problems"] },
      waiting: { total: 0, pods: [] },
      problems: [],
      freshness: { readAt: "", trouble: "", message: "" },
    };
    /** @type {ClusterNode[] | null} */
    this.sorted = null;
  }

  /**
   * Takes over a snapshot or what changed, and returns the cards on which pods, or that themselves, changed.
   * @param {Message} message
   * @returns {Card[]}
   */
  apply(message) {
    /** @type {Card[]} */
    const changed = [];
    if (message.whole) this.nodes.clear();
    for (const name of message.removed) this.nodes.delete(name);
    for (const row of message.nodes) {
      const [before, node] = [this.nodes.get(row.name), new ClusterNode(row)];
      if (before) changed.push(...node.cards.filter((card, at) => differs(card, before.cards[at])));
      this.nodes.set(row.name, node);
    }
    Object.assign(this.parts, message.parts);
    this.version = message.version;
    if (message.whole || message.nodes.length || message.removed.length) this.sorted = null;
    return changed;
  }

  /** In order of name, gpu-2 before gpu-10. */
  get ordered() {
    this.sorted ??= [...this.nodes.values()].sort((one, other) => ORDER.compare(one.name, other.name));
    return this.sorted;
  }
}

/**
 * @param {Card} card
 * @param {Card | undefined} before
 */
function differs(card, before) {
  return card.heldUnits !== before?.heldUnits || card.state !== before.state || card.holders.length !== before.holders.length;
}

export const ORDER = new Intl.Collator("en", { numeric: true });

/**
 * @typedef {{query: string, show: string, namespace: string}} Filter
 */

/** What is shown -> which cards that are. */
/** @type {Record<string, (card: Card) => boolean>} */
const SHOWN = {
  all: () => true,
  free: (card) => card.freeUnits > 0,
  held: (card) => card.heldUnits > 0,
  empty: (card) => card.heldUnits === 0,
  problem: (card) => card.hasProblem || card.state !== "Open",
};

/** Of a query: begins a word that finds the node of exactly this name. */
const NODE = "node:";

/**
 * Returns the query that finds one node: gpu-1, and not gpu-10.
 * @param {string} name
 */
export function nodeQuery(name) {
  return NODE + name;
}

/** @param {Filter} filter */
function queryWords(filter) {
  return lower(filter.query).split(/\s+/).filter(Boolean);
}

/**
 * Returns whether a card is shown: every word of the query is in its names or in those of its holders.
 * @param {Filter} filter
 * @returns {((card: Card) => boolean) | null} null: all are
 */
export function matcher(filter) {
  const words = queryWords(filter);
  const isShown = SHOWN[filter.show] ?? SHOWN.all;
  if (!words.length && !filter.namespace && isShown === SHOWN.all) return null;
  const { namespace } = filter;
  return (card) =>
    isShown(card) &&
    (!namespace || card.holders.some((holder) => holder.namespace === namespace)) &&
    words.every((word) => mentions(card, word));
}

/**
 * @param {Card} card
 * @param {string} word in small letters
 */
function mentions(card, word) {
  if (word.startsWith(NODE)) return card.node.name === word.slice(NODE.length);
  return (
    card.node.name.includes(word) ||
    card.id === word ||
    lower(card.uuid).includes(word) ||
    lower(card.model).includes(word) ||
    lower(card.serves).includes(word) ||
    lower(card.state).includes(word) ||
    Object.values(card.node.groups).some((value) => lower(value).includes(word)) ||
    card.holders.some((holder) => `${holder.namespace}/${holder.name}`.includes(word))
  );
}

/** @param {string} text */
function lower(text) {
  return text.toLowerCase();
}

/**
 * Returns whether a filter is on that pods without a card can pass.
 * @param {Filter} filter
 */
export function isFiltered(filter) {
  return filter.namespace !== "" || queryWords(filter).length > 0;
}

/**
 * Returns the pods that wait in the namespace that is chosen, and have every word of the query in their names.
 * @param {WaitingPod[]} pods
 * @param {Filter} filter
 */
export function waitingPods(pods, filter) {
  const words = queryWords(filter);
  return pods.filter(
    ({ namespace, name }) =>
      (!filter.namespace || namespace === filter.namespace) && words.every((word) => `${namespace}/${name}`.includes(word)),
  );
}

/**
 * @typedef {{cards: number, nodes: number, held: number, units: number, heldBytes: number,
 *   memoryBytes: number, unit: string, sick: number, closed: number}} Sums
 */

/**
 * Returns the sums over the cards that are shown. ``unit`` is empty where they have several.
 * @param {Iterable<ClusterNode>} nodes
 * @param {((card: Card) => boolean) | null} matches
 * @returns {Sums}
 */
export function sums(nodes, matches) {
  /** @type {Set<string>} */
  const units = new Set();
  const sum = { cards: 0, nodes: 0, held: 0, units: 0, heldBytes: 0, memoryBytes: 0, unit: "", sick: 0, closed: 0 };
  for (const node of nodes) {
    const before = sum.cards;
    for (const card of node.cards) {
      if (matches && !matches(card)) continue;
      units.add(card.unit);
      sum.cards += 1;
      sum.held += card.heldUnits;
      sum.units += card.units;
      sum.heldBytes += card.heldBytes;
      sum.memoryBytes += card.memoryBytes;
      if (card.state === "Sick") sum.sick += 1;
      else if (card.state !== "Open") sum.closed += 1;
    }
    if (sum.cards > before) sum.nodes += 1;
  }
  sum.unit = units.size === 1 ? [...units][0] : "";
  return sum;
}

/**
 * Returns the namespaces that hold units, those with most memory first.
 * @param {Iterable<ClusterNode>} nodes
 * @returns {string[]}
 */
export function namespaces(nodes) {
  /** @type {Map<string, number>} */
  const bytes = new Map();
  for (const node of nodes) {
    for (const card of node.cards) {
      for (const holder of card.holders) {
        bytes.set(holder.namespace, (bytes.get(holder.namespace) ?? 0) + (holder.askedBytes ?? 0));
      }
    }
  }
  return [...bytes].sort((one, other) => other[1] - one[1] || ORDER.compare(one[0], other[0])).map(([name]) => name);
}

/**
 * Returns the namespaces that have a colour and a letter, by their places. A namespace keeps its place while it
 * is among the largest, and somewhat below: two of nearly the same size would change colours all the time.
 * @param {string[]} before
 * @param {string[]} names those with most memory first
 * @param {number} count of colours
 * @returns {string[]} empty: a place that is free
 */
export function places(before, names, count) {
  const near = new Set(names.slice(0, 2 * count));
  const kept = before.filter((name) => near.has(name));
  const next = names.filter((name) => !kept.includes(name)).values();
  return Array.from({ length: count }, (_, at) => (near.has(before[at] ?? "") ? (before[at] ?? "") : (next.next().value ?? "")));
}

/**
 * @typedef {{name: string, nodes: ClusterNode[], isRest?: boolean}} Rack
 *   ``isRest``: of nodes without the label
 */

/**
 * Returns the nodes by the value of a label; one group without a name where no label is chosen. Nodes
 * without the label, or with an empty one, come last.
 * @param {ClusterNode[]} nodes in order of name
 * @param {string} label
 * @returns {Rack[]}
 */
export function racks(nodes, label) {
  if (!label) return nodes.length ? [{ name: "", nodes }] : [];
  /** @type {Map<string, ClusterNode[]>} */
  const found = new Map();
  /** @type {ClusterNode[]} */
  const without = [];
  for (const node of nodes) {
    const value = node.group(label);
    if (!value) without.push(node);
    else if (found.has(value)) found.get(value)?.push(node);
    else found.set(value, [node]);
  }
  const named = [...found].map(([name, members]) => ({ name, nodes: members }));
  named.sort((one, other) => ORDER.compare(one.name, other.name));
  return without.length ? [...named, { name: `no ${label}`, nodes: without, isRest: true }] : named;
}
