// All that is text beside the map: figures, what waits, what is wrong, one card, one pod.

import { isFiltered, waitingPods } from "../state/model.js";
import { age, ageSince, atLeast, counted, memory, number, percent } from "../state/text.js";
import { button, byId, el, shown, words } from "./dom.js";

/**
 * @typedef {import("../state/address.js").View} View
 * @typedef {import("../state/model.js").Card} Card
 * @typedef {import("../state/model.js").Cluster} Cluster
 * @typedef {import("../state/model.js").Sums} Sums
 * @typedef {import("../state/model.js").Problem} Problem
 * @typedef {import("../state/model.js").WaitingList} WaitingList
 * @typedef {import("../state/model.js").WaitingPod} WaitingPod
 * @typedef {import("../state/demo.js").WhyAnswer} WhyAnswer
 * @typedef {import("../feed.js").Link} Link
 */

const MAX_WAITING = 300;
/** So old figures are marked though nobody says that something is wrong: a round takes seconds. */
const OLD_MILLISECONDS = 90_000;
const COPIED_MILLISECONDS = 1500;
const MAX_PLACES = 12;
/** Letters of the end of a pod's name, such as -x2x7q; style.css has as many. */
const END = 6;
const MAX_UNREAD = 4;
const GOES_ON = "The page goes on by itself when it answers.";
/** What is said where the figures are old, by why they are. */
/** @type {Record<string, {title: string, advice: string}>} */
const TROUBLES = {
  Login: { title: "The login has expired", advice: "Log in again: the page goes on by itself." },
  Unreachable: { title: "The API server is not reached", advice: GOES_ON },
  Unread: { title: "The API server does not show GPUShareNodes", advice: "The page goes on by itself when it does." },
  Late: { title: "The API server has not answered yet", advice: GOES_ON },
  Paused: { title: "The figures are old", advice: "They are being read again." },
};
/** What is said where the program that serves the page gives nothing. */
const LINKS = {
  gone: {
    title: "Nobody answers",
    advice: "kubectl gpushare web has ended, or is not connected any more. Start it again, and open the address that it prints.",
  },
  refused: {
    title: "This page gets nothing",
    advice: "Too many pages are open: close some. Or kubectl gpushare web was started again: open the address that it has printed.",
  },
};
/** What has been copied a moment ago: a list that is filled anew meanwhile says so as well. */
let copiedLately = "";
const PLURALS = new Map([["policy", "policies"]]);
/** Kinds of problems that the map can show. */
const PLACES = ["card", "node"];

/**
 * @param {Sums} sums
 * @param {Cluster} cluster
 * @param {boolean} isPart whether a filter is on
 */
export function showFigures(sums, cluster, isPart) {
  const { waiting, problems, title } = cluster.parts;
  const isRead = cluster.version > 0;
  const isIncomplete = title.incomplete.includes("problems");
  const wrong = problems.filter((problem) => problem.severity !== "note").length;
  const held = sums.unit
    ? [`${number(sums.held)}/${number(sums.units)}`, `units of ${sums.unit} held, ${percent(sums.held, sums.units)}`]
    : [`${memory(sums.heldBytes)}/${memory(sums.memoryBytes)}`, `held, ${percent(sums.heldBytes, sums.memoryBytes)}`];
  const broken = [
    sums.sick ? `${number(sums.sick)} sick` : "",
    sums.closed ? `${number(sums.closed)} closed` : "",
  ].filter(Boolean);
  const where = `${sums.cards === 1 ? "card" : "cards"}${isPart ? " found" : ""} on ${counted(sums.nodes, "node")}${broken.length ? `, ${broken.join(", ")}` : ""}`;
  /** @type {Array<[string, string, string]>} */
  const figures = [
    [isRead ? number(sums.cards) : "?", where, ""],
    [isRead ? held[0] : "?", isRead ? held[1] : "held", ""],
    [atLeast(waiting.total, title.incomplete.includes("waiting")), waiting.total === 1 ? "pod waits" : "pods wait", ""],
    [atLeast(wrong, isIncomplete), wrong === 1 && !isIncomplete ? "problem" : "problems", wrong ? "bad" : ""],
  ];
  byId("figures", HTMLElement).replaceChildren(
    ...figures.map(([value, name, kind]) => el("div", { class: kind || null }, el("dt", {}, name), el("dd", {}, value))),
  );
  byId("where", HTMLElement).textContent = shown(cluster.parts.title.server);
}

/**
 * Says when the figures are of, and why they are old.
 * @param {Cluster} cluster
 * @param {Link} link
 * @param {number} now milliseconds, by the clock of the figures
 */
export function showFreshness(cluster, link, now) {
  const { freshness, title } = cluster.parts;
  const banner = byId("banner", HTMLElement);
  const read = Date.parse(freshness.readAt);
  const time = Number.isNaN(read) ? "" : new Date(read).toLocaleTimeString("en-GB");
  const old = Number.isNaN(read) ? "" : `Figures are of ${time}, ${age(now - read)} ago.`;
  const isSilent = now - read > OLD_MILLISECONDS;
  const isOld = link !== "" || isSilent || freshness.trouble !== "";
  document.body.classList.toggle("old", isOld);
  byId("asof", HTMLElement).textContent = isOld && time ? `of ${time}` : time;
  const trouble = TROUBLES[freshness.trouble] ?? TROUBLES.Unreachable;
  const said = link
    ? [LINKS[link].title, old, LINKS[link].advice, ""]
    : freshness.trouble
      ? [trouble.title, old, trouble.advice, freshness.message]
      : isSilent
        ? ["Nothing new is heard", old, "kubectl gpushare web is paused, waits for the cluster, or is not connected any more.", ""]
        : title.unread.length
          ? ["Not all could be read", "", unreadText(title.unread), ""]
          : null;
  banner.hidden = said === null;
  const isPaused = link === "" && freshness.trouble === "Paused";
  banner.className = isOld && !isPaused ? "alarm" : "";
  if (said === null) return;
  const [heading, when, remedy, detail] = said;
  const text = JSON.stringify([heading, remedy, detail]);
  if (banner.dataset.said !== text) {
    banner.dataset.said = text;
    banner.replaceChildren(
      el("strong", { role: "alert" }, heading),
      el("span", { class: "when" }),
      el("span", {}, ...words(remedy)),
      ...(detail ? [el("small", {}, ...words(detail))] : []),
    );
  }
  // Outside of what screen readers say at each change.
  for (const each of banner.querySelectorAll(".when")) each.textContent = when;
}

/** @param {string[]} sentences */
function unreadText(sentences) {
  const rest = sentences.length - MAX_UNREAD;
  return [...sentences.slice(0, MAX_UNREAD), ...(rest > 0 ? [`And ${number(rest)} more.`] : [])].join(" ");
}

/**
 * @param {Cluster} cluster
 * @param {View} view
 * @param {number} now milliseconds
 * @param {(namespace: string, name: string) => void} onWhy
 */
export function showWaiting(cluster, view, now, onWhy) {
  const { waiting, title } = cluster.parts;
  const isPart = isFiltered(view);
  const pods = waitingPods(waiting.pods, view);
  const seen = pods.slice(0, MAX_WAITING);
  const section = byId("waiting", HTMLElement);
  const isIncomplete = title.incomplete.includes("waiting");
  const total = atLeast(waiting.total, isIncomplete);
  const count = isPart ? `${atLeast(pods.length, isIncomplete || isCut(waiting))} of ${total}` : total;
  const key = JSON.stringify([count, view.why, seen]);
  if (section.dataset.key === key) return showAges(section, seen, now);
  section.dataset.key = key;
  const items = seen.map((pod) => waitingItem(pod, view.why, now, onWhy));
  const rest = (isPart ? pods.length : waiting.total) - items.length;
  replaceKept("waiting", [
    head("waiting-title", "Waiting", count),
    items.length ? el("ul", { class: "list" }, ...items) : el("p", { class: "none" }, noneWaits(waiting, isIncomplete)),
    ...(rest > 0 ? [el("p", { class: "none" }, `and ${number(rest)} more`)] : []),
  ]);
}

/**
 * Returns whether more pods wait than the list has.
 * @param {WaitingList} waiting
 */
function isCut(waiting) {
  return waiting.total > waiting.pods.length;
}

/**
 * Returns what to say where no pod is shown.
 * @param {WaitingList} waiting
 * @param {boolean} isIncomplete
 */
function noneWaits(waiting, isIncomplete) {
  if (waiting.pods.length) return `None of ${isCut(waiting) ? `the ${number(waiting.pods.length)} oldest` : "them"} matches the filters.`;
  return isIncomplete ? "It is not known which pods wait." : "No pod waits for a card.";
}

/**
 * Elements stay: one that is replaced between press and release of a button gets no click.
 * @param {HTMLElement} section
 * @param {WaitingPod[]} pods
 * @param {number} now milliseconds
 */
function showAges(section, pods, now) {
  section.querySelectorAll(".age").forEach((age, at) => {
    const text = ageSince(pods[at]?.since ?? "", now);
    if (age.textContent !== text) age.textContent = text;
  });
}

/**
 * @param {WaitingPod} pod
 * @param {string} chosen
 * @param {number} now milliseconds
 * @param {(namespace: string, name: string) => void} onWhy
 */
function waitingItem(pod, chosen, now, onWhy) {
  const asks = Object.entries(pod.asks ?? {}).map(([name, units]) => `${units ?? "?"} ${name.replace("gpushare.io/", "")}`);
  const path = `${pod.namespace}/${pod.name}`;
  const isChosen = chosen === path;
  const made = el(
    "button",
    { type: "button", "aria-pressed": String(isChosen), title: shown([path, pod.reason].filter(Boolean).join(": ")), "data-pod": path },
    podName(pod),
    el("span", { class: "amount" }, asks.join(", ")),
    el("span", { class: "age" }, ageSince(pod.since ?? "", now)),
  );
  made.addEventListener("click", () => onWhy(pod.namespace, pod.name));
  return el("li", {}, made);
}

/**
 * A name that is cut where there is no room keeps its end: those of a Deployment or a Job differ there alone.
 * @param {{namespace: string, name: string}} pod
 */
function podName({ namespace, name }) {
  const begin = el("span", { class: "begin" }, el("i", {}, `${namespace}/`), name.slice(0, -END));
  return el("span", { class: "name" }, begin, name.slice(-END));
}

/**
 * @param {Cluster} cluster
 * @param {(name: string) => void} onFind
 */
export function showProblems(cluster, onFind) {
  const { problems, title } = cluster.parts;
  const isIncomplete = title.incomplete.includes("problems");
  const wrong = problems.filter((problem) => problem.severity !== "note").length;
  const items = problems.map((problem) => problemItem(problem, onFind));
  replaceKept("problems", [
    head("problems-title", "Problems", atLeast(wrong, isIncomplete)),
    items.length ? el("ul", { class: "list" }, ...items) : el("p", { class: "none" }, isIncomplete ? "It is not known whether anything is wrong." : "Nothing is wrong."),
  ]);
}

/**
 * @param {Problem} problem
 * @param {(name: string) => void} onFind
 */
function problemItem(problem, onFind) {
  const names = problem.names ?? [];
  const total = problem.total ?? names.length;
  const plural = PLURALS.get(problem.kind) ?? `${problem.kind}s`;
  const subject = total === 0 ? "" : total === 1 ? `${problem.kind} ${names[0]}: ` : `${number(total)} ${plural}: `;
  const places = PLACES.includes(problem.kind) ? names.slice(0, MAX_PLACES) : [];
  return el(
    "li",
    { class: `problem ${problem.severity}` },
    el("p", {}, el("b", {}, problem.severity), " ", ...words(`${subject}${problem.sentence}`)),
    ...(problem.detail ? [el("p", { class: "detail" }, ...words(problem.detail))] : []),
    ...(problem.command ? [command(problem.command)] : []),
    ...(places.length
      ? [
          el(
            "p",
            { class: "places" },
            ...places.map((name) => button(name, () => onFind(name), { class: "place" })),
            ...(total > places.length ? [`and ${number(total - places.length)} more`] : []),
          ),
        ]
      : []),
  );
}

/**
 * @param {Card} card
 * @param {(namespace: string, name: string) => void} onWhy
 * @param {() => void} onClose
 */
export function showCard(card, onWhy, onClose) {
  const used = card.usedBytes === null ? "not measured" : `${memory(card.usedBytes)} of ${memory(card.memoryBytes)}`;
  const unit = card.unit ? ` × ${card.unit}` : "";
  /** @type {Array<[string, string]>} */
  const facts = [
    ["Held", `${card.heldUnits} of ${card.units}${unit}`],
    ["Free", card.state === "Open" ? String(card.freeUnits) : "nothing for new pods"],
    ["Used", used],
    ["Class", card.serves || "-"],
    ["Model", card.model || "-"],
    ["Policy", card.node.policy || "-"],
    ["UUID", card.uuid],
    ...Object.entries(card.node.groups),
  ];
  const holders = card.holders.map((holder) => {
    const uses = holder.usedBytes === null || holder.usedBytes === undefined ? "" : `uses ${memory(holder.usedBytes)}${holder.exceeds ? ", OVER" : ""}`;
    const state = holder.state === "NotStarted" ? "not started" : holder.state === "Orphaned" ? "orphaned" : uses;
    const path = `${holder.namespace}/${holder.name}`;
    const made = el("button", { type: "button", title: shown(path), "data-pod": path }, podName(holder), el("span", { class: "amount" }, String(holder.units)), el("span", { class: "age" }, state));
    made.addEventListener("click", () => onWhy(holder.namespace, holder.name));
    return el("li", {}, made);
  });
  const title = `${card.node.name}, card ${card.index}`;
  // What the card uses changes all the time: a screen reader would read all of it each time.
  byId("detail", HTMLElement).setAttribute("aria-live", isShown(title) ? "off" : "polite");
  showDetail(title, [
    closing(title, onClose),
    ...(card.state === "Open" ? [] : [el("p", { class: "answer bad" }, ...words(`${card.state}${card.reason ? `: ${card.reason}` : ""}`))]),
    el("dl", { class: "facts" }, ...facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, ...words(value))])),
    el("h3", {}, holders.length ? `Pods: ${holders.length}` : "Nobody holds anything of it."),
    el("ul", { class: "list" }, ...holders),
  ]);
}

/**
 * @param {string} pod namespace/name
 * @param {WhyAnswer | Error | null} answer null: it is being asked
 * @param {() => void} onClose
 * @param {() => void} onAgain
 */
export function showWhy(pod, answer, onClose, onAgain) {
  /** @type {Node[]} */
  const parts = [closing(pod, onClose, "Why")];
  if (answer === null) parts.push(el("p", { class: "none" }, "Asking the cluster…"));
  else if (answer instanceof Error) parts.push(el("p", { class: "answer bad" }, ...words(answer.message)));
  else {
    const isGood = answer.state === "Running" || answer.state === "Fits";
    parts.push(el("p", { class: `answer ${isGood ? "good" : "bad"}` }, ...words(answer.answer)));
    parts.push(...answer.lines.map(whyLine));
  }
  parts.push(button("Ask again", () => answer !== null && onAgain(), { class: "quiet" }));
  byId("detail", HTMLElement).setAttribute("aria-live", "polite");
  showDetail(pod, parts);
}

/** @param {import("../state/demo.js").WhyLine} line */
function whyLine(line) {
  if (line.kind === "heading") return el("h3", {}, line.text);
  if (line.kind === "command") return command(line.text);
  return el("p", { class: line.indent ? "line more" : "line" }, ...words(line.text));
}

/** @param {string} subject */
function isShown(subject) {
  return byId("detail", HTMLElement).dataset.of === subject;
}

/**
 * In a narrow window it stands above the map, and what was clicked may be far below.
 * @param {string} subject
 * @param {Node[]} parts
 */
function showDetail(subject, parts) {
  const isNew = !isShown(subject);
  const section = byId("detail", HTMLElement);
  section.dataset.of = subject;
  replaceKept("detail", parts);
  if (isNew) section.scrollIntoView({ block: "nearest" });
}

export function hideDetail() {
  const section = byId("detail", HTMLElement);
  section.hidden = true;
  section.dataset.of = "";
}

/**
 * @param {string} title
 * @param {() => void} onClose
 * @param {string} [kicker]
 */
function closing(title, onClose, kicker = "") {
  const close = button("×", onClose, { class: "close", "aria-label": "Close" });
  return el("div", { class: "head" }, el("h2", {}, ...(kicker ? [el("em", {}, kicker)] : []), ...words(title)), close);
}

/**
 * @param {string} id
 * @param {string} title
 * @param {string} count
 */
function head(id, title, count) {
  return el("div", { class: "head" }, el("h2", { id }, title, " ", el("span", { class: "count" }, count)));
}

/** @param {string} text some have several lines */
function command(text) {
  const copy = button(text === copiedLately ? "Copied" : "Copy", () => void copied(copy, text), { class: "copy", "aria-label": `Copy ${text}` });
  return el("div", { class: "command" }, el("code", {}, ...words(text)), copy);
}

/**
 * Copies, and says so for a moment.
 * @param {HTMLButtonElement} copy
 * @param {string} text
 */
async function copied(copy, text) {
  await navigator.clipboard.writeText(text);
  copiedLately = text;
  copy.textContent = "Copied";
  setTimeout(() => {
    copiedLately = "";
    copy.textContent = "Copy";
  }, COPIED_MILLISECONDS);
}

/**
 * Fills a section, unless it has the same already; what has the focus keeps it, and so does the place in it.
 * @param {string} id
 * @param {Node[]} parts
 */
function replaceKept(id, parts) {
  const section = byId(id, HTMLElement);
  section.hidden = false;
  const made = el("div", {}, ...parts);
  made.normalize();
  if (section.firstElementChild?.isEqualNode(made)) return;
  const active = document.activeElement;
  const focused = section.contains(active) && active ? nameOf(active) : null;
  const top = section.querySelector(".list")?.scrollTop ?? 0;
  section.replaceChildren(made);
  const list = section.querySelector(".list");
  if (list) list.scrollTop = top;
  if (focused === null) return;
  for (const each of section.querySelectorAll("button")) {
    if (nameOf(each) === focused) return each.focus({ preventScroll: true });
  }
}

/**
 * Returns by what a button is found again: the text of some has an age.
 * @param {Element} made
 */
function nameOf(made) {
  return made.getAttribute("data-pod") ?? made.getAttribute("aria-label") ?? made.textContent;
}
