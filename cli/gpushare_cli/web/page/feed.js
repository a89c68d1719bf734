// Where the page's figures come from: the program that serves it, or a made-up cluster.

import { Demo, DEMO_NODES } from "./state/demo.js";

/**
 * @typedef {import("./state/model.js").Message} Message
 * @typedef {import("./state/demo.js").WhyAnswer} WhyAnswer
 * @typedef {{
 *   start: (onMessage: (message: Message) => void, onLink: (gone: boolean) => void) => void,
 *   why: (namespace: string, name: string) => Promise<WhyAnswer>}} Feed
 */

const AGAIN_MILLISECONDS = 3000;

/**
 * Returns the feed that the address asks for: ``?demo``, ``?demo=3``, or the cluster.
 * @param {string} search
 * @returns {Feed}
 */
export function feedOf(search) {
  const demo = new URLSearchParams(search).get("demo");
  return demo === null ? new ServerFeed() : new DemoFeed(Number(demo) || DEMO_NODES);
}

/** @implements {Feed} */
class ServerFeed {
  #version = 0;

  /**
   * @param {(message: Message) => void} onMessage
   * @param {(gone: boolean) => void} onLink whether nobody answers any more
   */
  start(onMessage, onLink) {
    this.#snapshot(onMessage).then(
      () => this.#follow(onMessage, onLink),
      () => {
        onLink(true);
        this.#again(onMessage, onLink);
      },
    );
  }

  /**
   * @param {(message: Message) => void} onMessage
   * @param {(gone: boolean) => void} onLink
   */
  #again(onMessage, onLink) {
    setTimeout(() => this.start(onMessage, onLink), AGAIN_MILLISECONDS);
  }

  /** @param {(message: Message) => void} onMessage */
  async #snapshot(onMessage) {
    const response = await fetch("snapshot", { cache: "no-store" });
    if (!response.ok) throw new Error(await response.text());
    this.#take(/** @type {Message} */ (await response.json()), onMessage);
  }

  /**
   * Follows while the page is seen. A browser makes six connections to an address: pages that nobody sees leave
   * theirs to others.
   * @param {(message: Message) => void} onMessage
   * @param {(gone: boolean) => void} onLink
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
    events.onopen = () => onLink(false);
    events.onmessage = (event) => this.#take(/** @type {Message} */ (JSON.parse(event.data)), onMessage);
    events.addEventListener("reset", () => end(() => this.start(onMessage, onLink)));
    events.onerror = () => {
      onLink(true);
      if (events.readyState === EventSource.CLOSED) end(() => this.#again(onMessage, onLink));
    };
  }

  /**
   * @param {Message} message
   * @param {(message: Message) => void} onMessage
   */
  #take(message, onMessage) {
    this.#version = message.version;
    onMessage(message);
  }

  /**
   * @param {string} namespace
   * @param {string} name
   * @returns {Promise<WhyAnswer>}
   */
  async why(namespace, name) {
    const response = await fetch(`why?${new URLSearchParams({ namespace, pod: name })}`, { cache: "no-store" });
    if (!response.ok) throw new Error((await response.text()).trim());
    return /** @type {Promise<WhyAnswer>} */ (response.json());
  }
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

  /**
   * @param {string} namespace
   * @param {string} name
   */
  async why(namespace, name) {
    return this.demo.why(namespace, name);
  }
}
