// A made-up cluster, the same each time: for tests, pictures, and those who have no cluster at hand.

/**
 * @typedef {import("./model.js").Message} Message
 * @typedef {import("./model.js").NodeRow} NodeRow
 * @typedef {import("./model.js").CardRow} CardRow
 * @typedef {import("./model.js").Holder} Holder
 * @typedef {import("./model.js").WaitingPod} WaitingPod
 * @typedef {{kind: string, text: string, indent?: number}} WhyLine
 * @typedef {{namespace: string, name: string, state: string, answer: string, lines: WhyLine[]}} WhyAnswer
 */

export const DEMO_NODES = 5000;
const RACK = "topology.kubernetes.io/rack";
const ZONE = "topology.kubernetes.io/zone";
const POOL = "example.com/pool";
const CARDS = 8;
const NODES_OF_RACK = 40;
const GIB = 2 ** 30;
/** @type {Array<[string, number]>} */
const MODELS = [["NVIDIA H100 80GB HBM3", 80], ["NVIDIA A100-SXM4-40GB", 40], ["NVIDIA L40S", 48]];
const TEAMS = ["vision", "speech", "ranking", "search-ml", "robotics", "research", "fraud", "notebooks", "batch", "genomics", "ads", "maps", "infra", "students"];
const WORK = ["train", "serve", "notebook", "embed", "rerank", "tune", "label", "asr", "segment"];

/** Random numbers that are the same each time. */
class Draw {
  /** @param {number} seed */
  constructor(seed) {
    this.seed = seed;
  }

  /** From 0 to 1. */
  next() {
    this.seed = (this.seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.seed ^ (this.seed >>> 15), 1 | this.seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** @param {number} end */
  below(end) {
    return Math.floor(this.next() * end);
  }

  /**
   * @template T
   * @param {T[]} from
   * @returns {T}
   */
  one(from) {
    return from[this.below(from.length)];
  }

  name() {
    return `${this.one(WORK)}-${this.below(0xfffff).toString(36).padStart(4, "0")}`;
  }
}

export class Demo {
  /** @param {number} count of nodes */
  constructor(count = DEMO_NODES) {
    this.count = count;
    this.draw = new Draw(29);
    this.version = 1;
    /** @type {NodeRow[]} */
    this.nodes = Array.from({ length: count }, (_, at) => this.#node(at));
    const sick = this.nodes.flatMap((node) => named(node, "Sick"));
    const cordoned = this.nodes.flatMap((node) => named(node, "Cordoned"));
    const waits = Math.max(2, Math.round(count / 24));
    this.waiting = Array.from({ length: waits }, (_, at) => this.#waiting(at));
    this.waiting.sort((one, other) => Date.parse(one.since ?? "") - Date.parse(other.since ?? ""));
    this.problems = problemsOf(sick, cordoned, this.waiting);
  }

  /** @returns {Message} */
  snapshot() {
    return {
      version: this.version,
      whole: true,
      nodes: this.nodes,
      removed: [],
      parts: {
        title: {
          server: `https://demo.invalid: ${this.count.toLocaleString("en")} made-up nodes`,
          version: "demo",
          groupLabels: this.count > 8 ? [RACK, ZONE, POOL] : [],
          rackLabel: this.count > 8 ? RACK : "",
          unread: [],
          incomplete: [],
        },
        waiting: { total: this.waiting.length, pods: this.waiting },
        problems: this.problems,
        freshness: this.#freshness(),
      },
    };
  }

  /**
   * Returns what changes within a second: pods come and go on a few cards.
   * @returns {Message}
   */
  change() {
    this.version += 1;
    const changed = new Set(Array.from({ length: Math.max(1, Math.round(this.count / 400)) }, () => this.draw.below(this.count)));
    const nodes = [...changed].map((at) => {
      const node = structuredClone(this.nodes[at]);
      const card = this.draw.one(node.cards ?? []);
      if (card.state === undefined) this.#fill(card, this.draw.next(), homeOf(at));
      this.nodes[at] = node;
      return node;
    });
    return { version: this.version, whole: false, nodes, removed: [], parts: { freshness: this.#freshness() } };
  }

  #freshness() {
    return { readAt: new Date().toISOString(), trouble: "", message: "" };
  }

  /**
   * @param {number} at
   * @returns {NodeRow}
   */
  #node(at) {
    const rack = Math.floor(at / NODES_OF_RACK);
    const small = this.count <= 8;
    const name = small ? `gpu-${at + 1}` : `gpu-${String(rack + 1).padStart(3, "0")}-${String((at % NODES_OF_RACK) + 1).padStart(2, "0")}`;
    const closed = this.draw.next() < 0.006 && !small ? "kubectl cordon" : "";
    const kind = Math.floor(rack / 9) % MODELS.length;
    const crowd = 0.25 + 0.7 * ((Math.sin(rack * 2.3) + 1) / 2);
    const groups = { [RACK]: `rack-${String(rack + 1).padStart(3, "0")}`, [ZONE]: `zone-${"abc"[Math.floor(rack / 42) % 3]}`, [POOL]: ["train", "serve", "mixed"][kind] };
    /** @type {NodeRow} */
    const node = { name, groups: small ? {} : groups, policy: "default" };
    if (closed) node.closed = closed;
    const only = small ? at % MODELS.length : kind;
    node.cards = Array.from({ length: CARDS }, (_, index) => this.#card(index, only, crowd, closed, homeOf(at)));
    if (small && at === 0) Object.assign(node.cards[5], { state: "Sick", reason: "Xid 79: the card has fallen off the bus", hasProblem: true, freeUnits: 0 });
    if (small && at === 2) Object.assign(node.cards[2], { state: "Cordoned", reason: "fan to be replaced", freeUnits: 0 });
    return node;
  }

  /**
   * @param {number} index
   * @param {number} kind
   * @param {number} crowd
   * @param {string} closed
   * @param {string} home
   * @returns {CardRow}
   */
  #card(index, kind, crowd, closed, home) {
    const [model, gib] = MODELS[kind];
    const serves = ["Memory", "Memory", "Slices"][kind];
    const units = serves === "Slices" ? 12 : gib;
    /** @type {CardRow} */
    const card = {
      index,
      uuid: `GPU-${this.draw.below(2 ** 31).toString(16).padStart(8, "0")}-${this.draw.below(2 ** 31).toString(16).padStart(8, "0")}`,
      serves,
      model,
      unit: serves === "Slices" ? "1/12" : "1Gi",
      units,
      memoryBytes: gib * GIB,
    };
    this.#fill(card, Math.min(1, Math.max(0, crowd + (this.draw.next() - 0.5) * 0.7)), home);
    const fate = this.draw.next();
    if (closed) Object.assign(card, { state: "Closed", reason: closed, freeUnits: 0 });
    else if (fate < 0.0016) Object.assign(card, { state: "Sick", reason: "Xid 79: the card has fallen off the bus", freeUnits: 0, hasProblem: true });
    else if (fate < 0.004) Object.assign(card, { state: "Cordoned", reason: "fan to be replaced", freeUnits: 0 });
    return card;
  }

  /**
   * Puts pods on a card until about so much of it is held.
   * @param {CardRow} card
   * @param {number} share from 0 to 1
   * @param {string} home the namespace that has most of its rack
   */
  #fill(card, share, home) {
    const units = card.units ?? 0;
    const unit = (card.memoryBytes ?? 0) / (units || 1);
    /** @type {Holder[]} */
    const holders = [];
    let left = Math.round(units * share);
    while (left > 0 && holders.length < 6) {
      const asks = Math.min(left, Math.max(1, Math.round(units * (0.12 + this.draw.next() * 0.5))));
      const used = Math.round(asks * unit * (0.35 + this.draw.next() * 0.62));
      const isOwn = this.draw.next() < 0.72;
      const team = isOwn ? home : TEAMS[Math.floor(TEAMS.length * this.draw.next() ** 2)];
      holders.push({ namespace: team, name: this.draw.name(), units: asks, askedBytes: asks * unit, usedBytes: used });
      left -= asks;
    }
    card.holders = holders;
    card.heldUnits = holders.reduce((sum, holder) => sum + holder.units, 0);
    card.freeUnits = units - card.heldUnits;
    card.heldBytes = card.heldUnits * unit;
    card.usedBytes = holders.reduce((sum, holder) => sum + (holder.usedBytes ?? 0), 0);
  }

  /**
   * @param {number} at
   * @returns {WaitingPod}
   */
  #waiting(at) {
    const since = new Date(Date.now() - (this.count - at) * 2000 - this.draw.below(90_000)).toISOString();
    const units = [40, 80, 24, 64][at % 4];
    return {
      namespace: this.draw.one(TEAMS),
      name: this.draw.name(),
      since,
      asks: { "gpushare.io/memory": units },
      reason: `0/${this.count} nodes are available: ${this.count} no card has ${units} units free.`,
    };
  }

  /**
   * @param {string} namespace
   * @param {string} name
   * @returns {WhyAnswer}
   */
  why(namespace, name) {
    const pod = this.waiting.find((each) => each.namespace === namespace && each.name === name);
    if (!pod) return runs(namespace, name);
    const units = Object.values(pod.asks ?? {})[0] ?? 0;
    return {
      namespace,
      name,
      state: "Waiting",
      answer: `No card has ${units} units (${units}Gi) free on ${this.count.toLocaleString("en")} nodes that the pod may go to.`,
      lines: [
        { kind: "sentence", text: `Nearest: ${this.nodes[0].name} card 3: 22 of the ${units} units.` },
        { kind: "heading", text: "Asks for" },
        { kind: "sentence", text: `gpushare.io/memory: ${units} units (${units}Gi); a unit is 1Gi` },
        { kind: "heading", text: "What would help" },
        { kind: "sentence", text: `Ask for 22 units instead of ${units}: it would get them now, on ${this.nodes[0].name}.` },
        { kind: "sentence", text: "Uncordon the card: it has room." },
        { kind: "command", text: `kubectl gpushare uncordon ${this.nodes[2 % this.count].name} 2`, indent: 1 },
        { kind: "heading", text: "What would not help" },
        { kind: "sentence", text: "A higher priority: no pod of a lower one holds enough of one card." },
        { kind: "heading", text: "Waits" },
        { kind: "sentence", text: "Tried at least 14 times without finding a node." },
      ],
    };
  }
}

/**
 * Returns the namespace that has most of a node.
 * @param {number} at
 */
function homeOf(at) {
  return TEAMS[Math.floor((TEAMS.length * ((Math.sin(Math.floor(at / NODES_OF_RACK / 3) * 12.9898) * 43758.5453) % 1) ** 2))];
}

/**
 * @param {NodeRow} node
 * @param {string} state
 */
function named(node, state) {
  return (node.cards ?? []).filter((card) => card.state === state).map((card) => `${node.name}/${card.index}`);
}

/**
 * @param {string} namespace
 * @param {string} name
 * @returns {WhyAnswer}
 */
function runs(namespace, name) {
  const lines = [
    { kind: "heading", text: "Why there" },
    { kind: "sentence", text: "Of the cards with enough room it is the one with the least room left over." },
  ];
  return { namespace, name, state: "Running", answer: `The pod ${namespace}/${name} runs.`, lines };
}

/**
 * @param {string[]} sick
 * @param {string[]} cordoned
 * @param {WaitingPod[]} waiting
 * @returns {import("./model.js").Problem[]}
 */
function problemsOf(sick, cordoned, waiting) {
  const oldest = waiting[0];
  const problems = [
    {
      severity: "warning",
      reason: "CardSick",
      kind: "card",
      names: sick.slice(0, 50),
      total: sick.length,
      sentence: "the card is sick: no new pod comes to it",
      detail: "Xid 79: the card has fallen off the bus",
      command: sick.length ? `kubectl gpushare drain-card ${sick[0].replace("/", " ")} --dry-run` : "",
    },
    {
      severity: "note",
      reason: "CardCordoned",
      kind: "card",
      names: cordoned.slice(0, 50),
      total: cordoned.length,
      sentence: "the card is cordoned: no new pod comes to it",
      command: cordoned.length ? `kubectl gpushare uncordon ${cordoned[0].replace("/", " ")}` : "",
    },
    {
      severity: "note",
      reason: "PodsWaiting",
      kind: "pod",
      names: waiting.slice(0, 50).map((pod) => `${pod.namespace}/${pod.name}`),
      total: waiting.length,
      sentence: "no node yet for the units that they ask for",
      command: `kubectl gpushare why ${oldest.name} -n ${oldest.namespace}`,
    },
  ];
  return problems.filter((problem) => problem.total);
}
