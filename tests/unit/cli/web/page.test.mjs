// The page's pure modules: the model, the address, the layout, the made-up cluster.

import assert from "node:assert/strict";
import { test } from "node:test";

const PAGE = "../../../../cli/gpushare_cli/web/page";
const { Cluster, isFiltered, matcher, namespaces, nodeQuery, places, racks, sums, waitingPods } = await import(`${PAGE}/state/model.js`);
const { FIRST_VIEW, readView, writeView } = await import(`${PAGE}/state/address.js`);
const { cardAt, layoutOf } = await import(`${PAGE}/state/layout.js`);
const { Demo } = await import(`${PAGE}/state/demo.js`);
const { DARK, LIGHT, Palette } = await import(`${PAGE}/view/palette.js`);
const { shown } = await import(`${PAGE}/view/dom.js`);
const { onFill } = await import(`${PAGE}/view/cells.js`);
const { age, atLeast, counted, memory, percent } = await import(`${PAGE}/state/text.js`);

const GIB = 2 ** 30;
const holder = (namespace, name, units) => ({ namespace, name, units, askedBytes: units * GIB, usedBytes: GIB });
const card = (index, more = {}) => ({ index, uuid: `GPU-${index}`, units: 16, unit: "1Gi", memoryBytes: 16 * GIB, freeUnits: 16, ...more });
const busy = (...holders) => {
  const heldUnits = holders.reduce((sum, each) => sum + each.units, 0);
  return { holders, heldUnits, freeUnits: 16 - heldUnits, heldBytes: heldUnits * GIB };
};
const message = (version, nodes, more = {}) => ({ version, whole: false, nodes, removed: [], parts: {}, ...more });

function cluster() {
  const made = new Cluster();
  made.apply(
    message(
      1,
      [
        { name: "gpu-10", groups: { rack: "r2" }, cards: [card(0), card(1, { state: "Sick", freeUnits: 0, hasProblem: true })] },
        { name: "gpu-2", groups: { rack: "r1" }, cards: [card(0, busy(holder("ml", "train", 10), holder("web", "serve", 2)))] },
        { name: "gpu-3", cards: [card(0, busy(holder("web", "other", 1)))] },
      ],
      { whole: true, parts: { waiting: { total: 3, pods: [] } } },
    ),
  );
  return made;
}

const cards = (made) => made.ordered.flatMap((node) => node.cards);
const found = (made, filter) => cards(made).filter(matcher({ query: "", show: "all", namespace: "", ...filter }) ?? (() => true));

test("nodes are in the order in which people count", () => {
  assert.deepEqual(cluster().ordered.map((node) => node.name), ["gpu-2", "gpu-3", "gpu-10"]);
});

test("a change replaces nodes and parts, and leaves the rest", () => {
  const made = cluster();
  const before = made.nodes.get("gpu-3");
  const again = { name: "gpu-3", cards: [card(0, { ...busy(holder("web", "other", 1)), usedBytes: 5 })] };
  const changed = made.apply(message(2, [{ name: "gpu-2", cards: [card(0)] }], { removed: ["gpu-10"], parts: { problems: [1] } }));
  assert.deepEqual(changed.map((each) => each.id), ["gpu-2/0"]);
  assert.deepEqual(made.ordered.map((node) => node.name), ["gpu-2", "gpu-3"]);
  assert.equal(made.nodes.get("gpu-3"), before);
  assert.equal(made.nodes.get("gpu-2").cards[0].heldUnits, 0);
  assert.deepEqual([made.parts.waiting.total, made.parts.problems], [3, [1]]);
  assert.deepEqual(made.apply(message(3, [again])), [], "what a card uses always changes");
});

test("a whole message forgets what is not in it", () => {
  const made = cluster();
  made.apply(message(9, [{ name: "new", cards: [] }], { whole: true }));
  assert.deepEqual([...made.nodes.keys()], ["new"]);
});

test("a filter finds nodes, pods, states and namespaces", () => {
  const made = cluster();
  assert.deepEqual(found(made, { query: "gpu-10 sick" }).map((each) => each.id), ["gpu-10/1"]);
  assert.deepEqual(found(made, { query: "TRAIN" }).map((each) => each.id), ["gpu-2/0"]);
  assert.deepEqual(found(made, { namespace: "web" }).map((each) => each.id), ["gpu-2/0", "gpu-3/0"]);
  assert.deepEqual(found(made, { show: "free", query: "r2" }).map((each) => each.id), ["gpu-10/0"]);
  assert.deepEqual(found(made, { show: "problem" }).map((each) => each.id), ["gpu-10/1"]);
  assert.equal(matcher({ query: " ", show: "all", namespace: "" }), null);
});

test("a node is found by its whole name, others by a part of theirs", () => {
  const made = new Cluster();
  made.apply(message(1, ["gpu-1", "gpu-10", "big-gpu-1"].map((name) => ({ name, cards: [card(0)] })), { whole: true }));
  assert.deepEqual(found(made, { query: nodeQuery("gpu-1") }).map((each) => each.id), ["gpu-1/0"]);
  assert.deepEqual(found(made, { query: `${nodeQuery("gpu-1")} absent` }), []);
  assert.equal(found(made, { query: "gpu-1" }).length, 3);
  assert.deepEqual(found(made, { query: "gpu-1/0" }).map((each) => each.id), ["gpu-1/0"]);
});

test("a filter finds pods that wait by their namespace and words of their names", () => {
  const pods = [["ml", "train"], ["ml-two", "train"], ["web", "serve"]].map(([namespace, name]) => ({ namespace, name }));
  const none = { query: " ", show: "free", namespace: "" };
  const names = (filter) => waitingPods(pods, { ...none, ...filter }).map((pod) => `${pod.namespace}/${pod.name}`);
  assert.deepEqual(names({ namespace: "ml" }), ["ml/train"]);
  assert.deepEqual(names({ query: "TRAIN two" }), ["ml-two/train"]);
  assert.deepEqual(names({ namespace: "web", query: "train" }), []);
  assert.deepEqual(names({ query: nodeQuery("gpu-1") }), [], "they have no node");
  assert.equal(names({}).length, 3);
  assert.deepEqual([none, { ...none, namespace: "ml" }, { ...none, query: "a" }].map(isFiltered), [false, true, true]);
});

test("sums are of the cards that are found", () => {
  const made = cluster();
  const all = sums(made.nodes.values(), null);
  assert.deepEqual([all.cards, all.nodes, all.held, all.units, all.unit, all.sick], [4, 3, 13, 64, "1Gi", 1]);
  const some = sums(made.nodes.values(), matcher({ query: "train", show: "all", namespace: "" }));
  assert.deepEqual([some.cards, some.nodes, some.held, some.heldBytes], [1, 1, 12, 12 * GIB]);
});

test("units of different sizes have no common unit", () => {
  const made = cluster();
  made.apply(message(2, [{ name: "other", cards: [card(0, { unit: "1/4" })] }]));
  assert.equal(sums(made.nodes.values(), null).unit, "");
});

test("racks are in order, nodes without the label last", () => {
  const made = cluster();
  assert.deepEqual(racks(made.ordered, "rack").map((rack) => [rack.name, rack.nodes.length]), [["r1", 1], ["r2", 1], ["no rack", 1]]);
  assert.deepEqual(racks(made.ordered, "").map((rack) => rack.nodes.length), [3]);
  assert.deepEqual(racks([], ""), []);
});

test("namespaces are those with most memory first", () => {
  assert.deepEqual(namespaces(cluster().nodes.values()), ["ml", "web"]);
});

test("a namespace keeps its colour while it is among the largest", () => {
  const first = places([], ["a", "b", "c", "d", "e"], 2);
  assert.deepEqual(first, ["a", "b"]);
  assert.deepEqual(places(first, ["c", "b", "a", "d"], 2), ["a", "b"]);
  assert.deepEqual(places(first, ["c", "d", "e", "b", "a"], 2), ["c", "b"]);
  assert.deepEqual(places(first, ["b"], 2), ["", "b"]);
});

test("the address has the view, and nothing that is as at first", () => {
  assert.equal(writeView(FIRST_VIEW), "");
  const view = { ...FIRST_VIEW, color: "class", query: "a b&c=d#", why: "ns/pod" };
  assert.deepEqual(readView(`#${writeView(view)}`), view);
  assert.ok(writeView(view).includes("ns/pod"));
});

test("an address that makes no sense is the first view", () => {
  assert.deepEqual(readView("#view=other&color=&size=9&__proto__=x&unknown=1"), FIRST_VIEW);
});

test("few nodes are large, many are small, and all are seen", () => {
  const of = (count) => racks(new ClusterOf(count).ordered, count > 8 ? "topology.kubernetes.io/rack" : "");
  const few = layoutOf(of(3), 1000, 600, "fit");
  const many = layoutOf(of(5000), 1000, 760, "fit");
  assert.ok(few.geometry.cell >= 80, String(few.geometry.cell));
  assert.ok(many.geometry.cell >= 2 && many.geometry.cell <= 6, String(many.geometry.cell));
  assert.ok(many.height <= 760, String(many.height));
  assert.equal(many.columns.reduce((sum, column) => sum + column.nodes.length, 0), 5000);
});

class ClusterOf extends Cluster {
  constructor(count) {
    super();
    this.apply(new Demo(count).snapshot());
  }
}

test("what is at a place is the card that is drawn there", () => {
  for (const [count, size] of [[3, "fit"], [200, "medium"], [200, "small"], [200, "large"]]) {
    const made = new ClusterOf(count);
    const layout = layoutOf(racks(made.ordered, "topology.kubernetes.io/zone"), 900, 600, size);
    const { geometry } = layout;
    const column = layout.columns.at(-1);
    const row = column.nodes.length - 1;
    const x = column.x + geometry.label + 3 * (geometry.cell + geometry.gap) + geometry.cell / 2;
    const y = column.y + geometry.title + row * geometry.row + geometry.height / 2;
    assert.equal(cardAt(layout, x, y), column.nodes[row].cards[3]);
    assert.equal(cardAt(layout, -5, y), null);
    assert.equal(cardAt(layout, x, layout.height + 50), null);
  }
});

test("beside the last card of a line there is none", () => {
  const layout = layoutOf(racks(new ClusterOf(3).ordered, ""), 700, 900, "fit");
  const { geometry } = layout;
  assert.ok(geometry.line < 8, "a node has several lines");
  const [column] = layout.columns;
  column.width += 200;
  const beside = column.x + geometry.label + geometry.line * (geometry.cell + geometry.gap) + 5;
  assert.equal(cardAt(layout, beside, column.y + geometry.title + 5), null);
});

test("columns of a layout do not overlap", () => {
  const layout = layoutOf(racks(new ClusterOf(500).ordered, "topology.kubernetes.io/rack"), 800, 600, "medium");
  layout.columns.forEach((one, at) => {
    for (const other of layout.columns.slice(at + 1)) {
      const apart = one.x + one.width <= other.x || other.x + other.width <= one.x || one.y + one.height <= other.y || other.y + other.height <= one.y;
      assert.ok(apart);
    }
  });
});

test("the made-up cluster is the same each time, and adds up", () => {
  const [one, other] = [new Demo(50), new Demo(50)];
  assert.deepEqual(one.nodes, other.nodes);
  for (const node of one.nodes) {
    for (const each of node.cards) assert.equal(each.heldUnits, each.holders.reduce((sum, held) => sum + held.units, 0));
  }
  const changed = one.change();
  assert.ok(!changed.whole && changed.nodes.length >= 1);
});

test("amounts read as the command line writes them", () => {
  assert.deepEqual([memory(24 * GIB), memory(1.5 * GIB), memory(0), memory(1234 * GIB), memory(1000.5 * GIB)], ["24Gi", "1.5Gi", "0", "1.2Ti", "1000.5Gi"]);
  assert.deepEqual([age(45_000), age(12 * 60_000), age(200 * 60_000), age(50 * 3600_000)], ["45s", "12m", "3h20m", "2d"]);
  assert.deepEqual([counted(1, "node"), counted(5000, "node"), percent(1, 3)], ["1 node", "5,000 nodes", "33%"]);
});

test("before anything is read, and of what cannot be read, nothing is said to be well", () => {
  const { title } = new Cluster().parts;
  assert.deepEqual(title.incomplete, ["waiting", "problems"]);
  assert.deepEqual([atLeast(0, true), atLeast(1200, true), atLeast(0, false)], ["?", "1,200+", "0"]);
});

test("a label that every object has is none of a node", () => {
  const names = racks([...cluster().nodes.values()], "constructor").map((rack) => rack.name);
  assert.deepEqual(names, ["no constructor"]);
});

test("nodes without the label do not lengthen the titles of the others", () => {
  const made = new ClusterOf(5000);
  made.ordered.at(-1).groups = {};
  const found = racks(made.ordered, "topology.kubernetes.io/rack");
  const titles = layoutOf(found, 1000, 760, "fit").columns.filter((column) => column.title).map((column) => column.short);
  assert.deepEqual([titles[0], titles.at(-1)], ["001", "none"]);
});

test("an empty label is none", () => {
  const made = new Cluster();
  made.apply(message(1, [{ name: "a", groups: { rack: "" }, cards: [] }, { name: "b", groups: { rack: "r1" }, cards: [] }], { whole: true }));
  assert.deepEqual(racks(made.ordered, "rack").map((rack) => rack.name), ["r1", "no rack"]);
});

test("pods of the made-up cluster wait in order of age", () => {
  const times = new Demo(500).waiting.map((pod) => Date.parse(pod.since));
  assert.deepEqual(times, [...times].sort((one, other) => one - other));
});

/** As WCAG 2.2 has it. */
function contrast(one, other) {
  const [light, dark] = [one, other]
    .map((color) => {
      const parts = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) / 255);
      const [red, green, blue] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    })
    .sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

test("letters can be read on every colour", () => {
  for (const theme of [LIGHT, DARK]) {
    const fills = [...theme.ramp, ...theme.kinds, ...Object.values(theme.classes), theme.unknown, theme.other, theme.ok];
    for (const fill of fills) assert.ok(contrast(onFill(fill), fill) >= 3, `${fill}: ${contrast(onFill(fill), fill)}`);
  }
});

test("what is not measured looks in the map as in the legend", () => {
  for (const theme of [LIGHT, DARK]) {
    const palette = new Palette(theme, "used", [], 0);
    const legend = palette.legend().find((entry) => entry.text === "not measured");
    const { nodes } = cluster();
    assert.deepEqual(palette.look(nodes.get("gpu-10").cards[0]), legend.look);
  }
});

test("characters that hide others, or cannot be seen, are shown by their numbers", () => {
  for (const code of [0x00, 0x1b, 0x85, 0xad, 0x61c, 0x180e, 0x200b, 0x202e, 0x2060, 0x2064, 0x2069, 0xfeff, 0xfff9]) {
    assert.equal(shown(`a${String.fromCharCode(code)}b`), `a\\u${code.toString(16).padStart(4, "0")}b`);
  }
  assert.equal(shown("gpu-1/ünïcode 名"), "gpu-1/ünïcode 名");
});
