// Puts the parts together: what comes in changes the model, what is chosen changes the address, both are drawn.

import { feedOf } from "./feed.js";
import { CHOICES, NO_GROUP, readView, writeView } from "./state/address.js";
import { Cluster, ORDER, matcher, namespaces, nodeQuery, places, racks, sums } from "./state/model.js";
import { counted } from "./state/text.js";
import { cardLines, drawBox } from "./view/cells.js";
import { button, byId, el, fill, words } from "./view/dom.js";
import { CardMap } from "./view/map.js";
import { COLORS, DARK, LIGHT, Palette } from "./view/palette.js";
import { hideDetail, showCard, showFigures, showFreshness, showProblems, showWaiting, showWhy } from "./view/panels.js";
import { CardTable } from "./view/table.js";

/**
 * @typedef {import("./state/address.js").View} View
 * @typedef {import("./state/model.js").Card} Card
 * @typedef {import("./state/demo.js").WhyAnswer} WhyAnswer
 */

/** @type {Record<string, string>} */
const NAMES = {
  map: "Map",
  table: "Table",
  held: "Held",
  used: "Used",
  health: "Health",
  class: "Class",
  namespace: "Namespace",
  fit: "Fit",
  small: "S",
  medium: "M",
  large: "L",
};
/** @type {Array<[string, string]>} */
const SHOWN = [["all", "all"], ["free", "with room"], ["held", "held"], ["empty", "empty"], ["problem", "with a problem"]];
/** @type {Record<string, string>} */
const THEMES = { auto: "as the system has them", light: "light", dark: "dark" };
const TYPING_MILLISECONDS = 120;
/** Of the namespaces to choose from; the others can be found by typing. */
const MAX_NAMESPACES = 500;

class Page {
  cluster = new Cluster();
  view = readView(location.hash);
  feed = feedOf(location.search);
  dark = matchMedia("(prefers-color-scheme: dark)");
  tip = byId("tip", HTMLElement);
  /** @type {import("./feed.js").Link} */
  link = "";
  /** Of the namespaces that hold units, those with most memory first. */
  /** @type {string[]} */
  names = [];
  /** Those that have a colour, by its place. */
  /** @type {string[]} */
  colored = [];
  /** The version of the cluster from which both are. */
  namesOf = -1;
  /** @type {{pod: string, answer: WhyAnswer | Error | null} | null} */
  asked = null;
  /** Milliseconds that the last change took, from the message to the last pixel. */
  lastRedraw = 0;
  typing = 0;
  map = new CardMap((card, x, y) => this.point(card, x, y), (card) => this.go({ card: card.id, why: "" }));
  table = new CardTable((sort) => this.go({ sort }), (card) => this.go({ card: card.id, why: "" }));

  start() {
    this.controls();
    addEventListener("hashchange", () => this.arrive());
    this.dark.addEventListener("change", () => this.draw());
    setInterval(() => this.freshness(), 1000);
    this.feed.start(
      (message) => {
        const began = performance.now();
        const changed = this.cluster.apply(message);
        this.draw(changed);
        this.lastRedraw = performance.now() - began;
      },
      (link) => {
        this.link = link;
        this.freshness();
      },
    );
    this.arrive();
  }

  controls() {
    for (const [id, key] of /** @type {Array<[string, "view" | "color" | "size"]>} */ ([["views", "view"], ["colors", "color"], ["zooms", "size"]])) {
      byId(id, HTMLElement).replaceChildren(
        ...(CHOICES[key] ?? []).map((value) => button(NAMES[value], () => this.go({ [key]: value }), { "data-value": value })),
      );
    }
    fill(byId("show", HTMLSelectElement), SHOWN, this.view.show);
    for (const key of /** @type {const} */ (["group", "show", "namespace"])) {
      const select = byId(key, HTMLSelectElement);
      select.addEventListener("change", () => this.go({ [key]: select.value }));
    }
    const query = byId("query", HTMLInputElement);
    query.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.go({ query: query.value }, false), TYPING_MILLISECONDS);
    });
    byId("skip", HTMLAnchorElement).addEventListener("click", (event) => {
      event.preventDefault();
      this.go({ view: "table" });
      this.table.focus();
    });
    const theme = byId("theme", HTMLButtonElement);
    theme.addEventListener("click", () => {
      const names = Object.keys(THEMES);
      const next = names[(names.indexOf(this.theme) + 1) % names.length];
      document.documentElement.dataset.theme = next;
      try {
        localStorage.setItem("gpushare-theme", next);
      } catch {
        // It is not kept, then.
      }
      this.draw();
    });
    try {
      document.documentElement.dataset.theme = localStorage.getItem("gpushare-theme") ?? "auto";
    } catch {
      document.documentElement.dataset.theme = "auto";
    }
    addEventListener("keydown", (event) => this.typed(event));
  }

  get theme() {
    return document.documentElement.dataset.theme ?? "auto";
  }

  get isDark() {
    return this.theme === "dark" || (this.theme === "auto" && this.dark.matches);
  }

  /** @param {KeyboardEvent} event */
  typed(event) {
    if (event.key === "Escape" && (this.view.why || this.view.card)) this.go({ why: "", card: "" });
    const isTyping = document.activeElement instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey;
    if (event.key === "/" && !isTyping) {
      event.preventDefault();
      byId("query", HTMLInputElement).focus();
    }
  }

  /**
   * Changes the view, and the address with it.
   * @param {Partial<View>} change
   * @param {boolean} [isStep] whether Back leads to the view before
   */
  go(change, isStep = true) {
    const next = { ...this.view, ...change };
    const hash = writeView(next);
    if (hash === writeView(this.view)) return;
    const address = `${location.pathname}${location.search}${hash ? `#${hash}` : ""}`;
    if (isStep) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
    this.arrive();
  }

  /** Takes over what the address says. */
  arrive() {
    const before = this.view;
    this.view = readView(location.hash);
    const query = byId("query", HTMLInputElement);
    if (query !== document.activeElement) query.value = this.view.query;
    if (this.view.why && this.view.why !== this.asked?.pod) this.ask(this.view.why);
    if (!this.view.why) this.asked = null;
    this.draw();
    if (this.view.view === "table" && before.view !== "table") this.table.focus();
  }

  /** @param {string} pod namespace/name */
  ask(pod) {
    const [namespace, name] = pod.split("/");
    const asked = { pod, answer: /** @type {WhyAnswer | Error | null} */ (null) };
    this.asked = asked;
    this.feed.why(namespace, name ?? "").then(
      (answer) => this.answered(asked, answer),
      (error) => this.answered(asked, error instanceof Error ? error : new Error(String(error))),
    );
  }

  /**
   * @param {{pod: string, answer: WhyAnswer | Error | null}} asked
   * @param {WhyAnswer | Error} answer
   */
  answered(asked, answer) {
    asked.answer = answer;
    if (this.asked === asked) this.detail();
  }

  freshness() {
    showFreshness(this.cluster, this.link, this.feed.now());
  }

  /** @param {Card[]} [changed] those to point out */
  draw(changed = []) {
    const { cluster, view } = this;
    const matches = matcher(view);
    if (this.namesOf !== cluster.version) {
      this.names = namespaces(cluster.nodes.values());
      this.colored = places(this.colored, this.names, COLORS);
      this.namesOf = cluster.version;
    }
    this.selects();
    for (const [id, value] of [["views", view.view], ["colors", view.color], ["zooms", view.size]]) {
      for (const made of byId(id, HTMLElement).children) made.setAttribute("aria-pressed", String(made instanceof HTMLElement && made.dataset.value === value));
    }
    document.documentElement.classList.toggle("dark", this.isDark);
    const theme = byId("theme", HTMLButtonElement);
    theme.textContent = { auto: "Auto", light: "Light", dark: "Dark" }[this.theme] ?? "Auto";
    for (const name of ["aria-label", "title"]) theme.setAttribute(name, `Colours: ${THEMES[this.theme] ?? THEMES.auto}`);
    showFigures(sums(cluster.nodes.values(), matches), cluster, matches !== null);
    this.freshness();
    const why = (/** @type {string} */ namespace, /** @type {string} */ name) => this.go({ why: `${namespace}/${name}` });
    showWaiting(cluster, view, this.feed.now(), why);
    showProblems(cluster, (name) => this.find(name));
    this.detail();
    this.stage(matches, changed);
  }

  /**
   * Shows what a problem is about, whatever is filtered.
   * @param {string} name node, or node/card
   */
  find(name) {
    const isCard = name.includes("/");
    this.go({ query: isCard ? "" : nodeQuery(name), card: isCard ? name : "", why: "", namespace: "", show: "all" });
    // In a narrow window it is far above the problem.
    if (!isCard) byId("stage", HTMLElement).scrollIntoView({ block: "nearest" });
  }

  selects() {
    const { title } = this.cluster.parts;
    const short = (/** @type {string} */ label) => label.slice(label.lastIndexOf("/") + 1);
    /** @type {Array<[string, string]>} */
    const labels = title.groupLabels.map((label) => [label, short(label)]);
    if (this.group && !title.groupLabels.includes(this.group)) labels.push([this.group, short(this.group)]);
    fill(byId("group", HTMLSelectElement), [[NO_GROUP, "no label"], ...labels], this.group || NO_GROUP);
    const { namespace } = this.view;
    const names = new Set([...this.names, ...this.cluster.parts.waiting.pods.map((pod) => pod.namespace)].slice(0, MAX_NAMESPACES));
    if (namespace) names.add(namespace);
    // By name: in an order that changes each second nobody could choose one.
    const sorted = [...names].sort(ORDER.compare);
    fill(byId("namespace", HTMLSelectElement), [["", "all"], ...sorted.map((name) => /** @type {[string, string]} */ ([name, name]))], namespace);
    byId("show", HTMLSelectElement).value = this.view.show;
  }

  /** The label by which nodes are grouped; empty: none. */
  get group() {
    const { group } = this.view;
    if (group === NO_GROUP) return "";
    return group || this.cluster.parts.title.rackLabel;
  }

  detail() {
    const close = () => this.go({ why: "", card: "" });
    const { card: id, why } = this.view;
    const [name, index] = id.split("/");
    const card = this.cluster.nodes.get(name)?.cards.find((each) => String(each.index) === index);
    // Not for a card that is not there: nothing would stand in the place of the problems.
    document.body.classList.toggle("detailed", Boolean(why || card));
    if (why && this.asked) {
      const { asked } = this;
      showWhy(why, asked.answer, close, () => {
        this.ask(why);
        this.detail();
      });
      return;
    }
    if (card) showCard(card, (namespace, pod) => this.go({ why: `${namespace}/${pod}` }), close);
    else hideDetail();
  }

  /**
   * @param {((card: Card) => boolean) | null} matches
   * @param {Card[]} changed
   */
  stage(matches, changed) {
    const { cluster, view } = this;
    const isMap = view.view === "map";
    const empty = byId("empty", HTMLElement);
    empty.hidden = cluster.nodes.size > 0;
    empty.textContent = cluster.version ? "No node shares its cards. kubectl gpushare status says what to do." : "Reading the cluster…";
    byId("map", HTMLElement).hidden = !isMap;
    byId("legend", HTMLElement).hidden = !isMap;
    byId("zooms", HTMLElement).hidden = !isMap;
    byId("colors", HTMLElement).hidden = !isMap;
    byId("table", HTMLElement).hidden = isMap;
    if (!isMap) {
      this.point(null, 0, 0);
      const cards = cluster.ordered.flatMap((node) => (matches ? node.cards.filter(matches) : node.cards));
      this.table.show(cards, view.sort, this.group);
      return;
    }
    const palette = new Palette(this.isDark ? DARK : LIGHT, view.color, this.colored, this.names.length);
    byId("canvas", HTMLCanvasElement).setAttribute("aria-label", `Map of ${counted(cluster.nodes.size, "node")}, coloured by ${NAMES[view.color]}`);
    this.map.show({ racks: racks(cluster.ordered, this.group), palette, matches, size: view.size, selected: view.card }, changed);
    this.legend(palette);
  }

  /** @param {Palette} palette */
  legend(palette) {
    const density = devicePixelRatio || 1;
    const entries = palette.legend();
    const holder = byId("legend", HTMLElement);
    const { hasBars } = this.map;
    const key = JSON.stringify([entries, palette.theme.paper, density, hasBars]);
    if (holder.dataset.key === key) return;
    holder.dataset.key = key;
    holder.replaceChildren(
      ...entries.map(({ look, text }) => {
        const canvas = el("canvas", { width: String(14 * density), height: String(14 * density), "aria-hidden": "true" });
        const context = canvas.getContext("2d");
        context?.scale(density, density);
        if (context) drawBox(context, palette.theme, look, { x: 0, y: 0, width: 14, height: 14 });
        return el("span", {}, canvas, text);
      }),
      ...(hasBars ? [el("span", {}, el("i", { class: "usedline", "aria-hidden": "true" }), "line below: used")] : []),
    );
  }

  /**
   * @param {Card | null} card
   * @param {number} x
   * @param {number} y
   */
  point(card, x, y) {
    this.tip.hidden = card === null;
    byId("canvas", HTMLCanvasElement).classList.toggle("over", card !== null);
    if (!card) return;
    this.tip.replaceChildren(...cardLines(card).map((line) => el("div", {}, ...words(line))));
    const [width, height] = [this.tip.offsetWidth, this.tip.offsetHeight];
    this.tip.style.left = `${Math.min(x + 14, innerWidth - width - 8)}px`;
    this.tip.style.top = `${y + 18 + height > innerHeight ? y - height - 12 : y + 18}px`;
  }
}

const page = new Page();
page.start();
// For measurements.
Object.assign(globalThis, { gpusharePage: page });
