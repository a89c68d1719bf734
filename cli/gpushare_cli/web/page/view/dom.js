// Elements from text alone: whatever a name contains, it is shown and never parsed.

/** Characters that hide others, or turn the direction of writing. */
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/**
 * Returns text that people can see whole.
 * @param {string} text
 */
export function shown(text) {
  return text.replace(HIDDEN, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * Returns a new element. Attributes that are null are left out; children that are text become text.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, string | null>} [attributes]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children.map((child) => (typeof child === "string" ? shown(child) : child)));
  return element;
}

/**
 * Returns text in which a word with a hyphen or a slash is one box: a line breaks beside a name or --dry-run and
 * not in it, unless the word is longer than the line. The rest stays text, which screen readers read as one.
 * @param {string} text
 */
export function words(text) {
  return text.split(/([ \n]+)/).map((part, at) => {
    if (at % 2) return document.createTextNode(part);
    return /[-/]/.test(part) ? el("span", { class: "word" }, part) : part;
  });
}

/**
 * Returns the element of the page with this id.
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} type
 * @returns {T}
 */
export function byId(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${id}`);
  return found;
}

/**
 * Returns a button that says what it does.
 * @param {string} text
 * @param {() => void} action
 * @param {Record<string, string | null>} [attributes]
 */
export function button(text, action, attributes = {}) {
  const made = el("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", action);
  return made;
}

/**
 * Fills a select with options, and keeps what is chosen.
 * @param {HTMLSelectElement} select
 * @param {Array<[string, string]>} options value and text
 * @param {string} value
 */
export function fill(select, options, value) {
  const wanted = JSON.stringify(options);
  if (select.dataset.options !== wanted) {
    select.dataset.options = wanted;
    select.replaceChildren(...options.map(([key, text]) => el("option", { value: key }, text)));
  }
  select.value = value;
}
