// Where the page's figures come from: the program that serves it, or a made-up cluster.

import { Demo, DEMO_NODES } from "./state/demo.js";

/**
 * @typedef {import("./state/model.js").Message} Message
 * @typedef {import("./state/demo.js").WhyAnswer} WhyAnswer
 * @typedef {"" | "gone" | "refused"} Link
 *   to the program that serves the page: it answers, nobody does, or it answers and refuses
 * @typedef {{
 *   start: (onMessage: (message: Message) => void, onLink: (link: Link) => void) => void,
 *   now: () => number,
 *   why: (namespace: string, name: string) => Promise<WhyAnswer>}} Feed
 *   ``now``: milliseconds, by the clock by which the times in messages are
 */

const AGAIN_MILLISECONDS = 3000;
const MAX_DEMO_NODES = 20_000;

/**
 * Returns the feed that the address asks for: ``?demo``, ``?demo=3``, or the cluster.
 * @param {string} search
 * @returns {Feed}
 */
export function feedOf(search) {
  const demo = new URLSearchParams(search).get("demo");
  return demo === null ? new ServerFeed() : new DemoFeed(demoNodes(demo));
}

/** @param {string} text */
function demoNodes(text) {
  return Math.min(MAX_DEMO_NODES, Math.max(1, Math.trunc(Number(text)) || DEMO_NODES));
}

/** @implements {Feed} */
class ServerFeed {
  #version = 0;
  /** How far the program's clock is ahead of the browser's, in milliseconds: the program may run elsewhere. */
  #ahead = 0;

  now() {
    return Date.now() + this.#ahead;
  }

  /**
   * @param {(message: Message) => void} onMessage
   * @param {(link: Link) => void} onLink
   */
  start(onMessage, onLink) {
    this.#snapshot().then(
      (message) => {
        this.#version = message.version;
        this.#follow(onMessage, onLink);
        onMessage(message);
      },
      (error) => {
        onLink(error instanceof Refused ? "refused" : "gone");
        setTimeout(() => this.start(onMessage, onLink), AGAIN_MILLISECONDS);
      },
    );
  }

  /** @returns {Promise<Message>} */
  async #snapshot() {
    const response = await asked("snapshot");
    const date = Date.parse(response.headers.get("date") ?? "");
    if (!Number.isNaN(date)) this.#ahead = date - Date.now();
    return response.json();
  }

  /**
   * Follows while the page is seen. A browser makes six connections to an address: pages that nobody sees leave
   * theirs to others.
   * @param {(message: Message) => void} onMessage
   * @param {(link: Link) => void} onLink
   */
  #follow(onMessage, onLink) {
    if (document.hidden) {
      document.addEventListener("visibilitychange", () => this.#follow(onMessage, onLink), { once: true });
      return;
    }
    const events = new EventSource(`events?since=${this.#version}`);
    const hide = () => end(() => this.#follow(onMessage, onLink));
    const end = (/** @type {() => void} */ next) => {
      events.close();
      document.removeEventListener("visibilitychange", hide);
      next();
    };
    document.addEventListener("visibilitychange", hide);
    events.onopen = () => onLink("");
    events.onmessage = (event) => {
      const message = /** @type {Message} */ (JSON.parse(event.data));
      this.#version = message.version;
      onMessage(message);
    };
    events.addEventListener("reset", () => end(() => this.start(onMessage, onLink)));
    events.onerror = () => {
      // Else the browser itself asks again.
      const isRefused = events.readyState === EventSource.CLOSED;
      onLink(isRefused ? "refused" : "gone");
      if (isRefused) end(() => setTimeout(() => this.#follow(onMessage, onLink), AGAIN_MILLISECONDS));
    };
  }

  /**
   * @param {string} namespace
   * @param {string} name
   * @returns {Promise<WhyAnswer>}
   */
  async why(namespace, name) {
    return (await asked(`why?${new URLSearchParams({ namespace, pod: name })}`)).json();
  }
}

/** The program answers, and gives nothing; the message is what it says. */
class Refused extends Error {}

/**
 * @param {string} what
 * @returns {Promise<Response>}
 */
async function asked(what) {
  const response = await fetch(what, { cache: "no-store" }).catch(() => {
    throw new Error("kubectl gpushare web does not answer.");
  });
  if (!response.ok) throw new Refused((await response.text()).trim());
  return response;
}

/** @implements {Feed} */
class DemoFeed {
  /** @param {number} count */
  constructor(count) {
    this.demo = new Demo(count);
  }

  /** @param {(message: Message) => void} onMessage */
  start(onMessage) {
    onMessage(this.demo.snapshot());
    setInterval(() => onMessage(this.demo.change()), 1000);
  }

  now() {
    return Date.now();
  }

  /**
   * @param {string} namespace
   * @param {string} name
   */
  async why(namespace, name) {
    return this.demo.why(namespace, name);
  }
}
