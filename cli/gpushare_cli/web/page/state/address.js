// The view as it stands in the address: who sends it to somebody else sends what is seen.

/**
 * @typedef {{view: string, color: string, group: string, show: string, namespace: string, query: string,
 *   sort: string, size: string, why: string, card: string}} View
 */

/** @type {View} */
export const FIRST_VIEW = {
  view: "map",
  color: "held",
  group: "",
  show: "all",
  namespace: "",
  query: "",
  sort: "node",
  size: "fit",
  why: "",
  card: "",
};

/** Of ``group``: nodes are not grouped, though a label is at hand. */
export const NO_GROUP = "-";

/** @type {Partial<Record<keyof View, readonly string[]>>} */
export const CHOICES = {
  view: ["map", "table"],
  color: ["held", "used", "health", "class", "namespace"],
  show: ["all", "free", "held", "empty", "problem"],
  size: ["fit", "small", "medium", "large"],
};

/**
 * Returns the view that the part of an address after # stands for; what makes no sense is as at first.
 * @param {string} hash
 * @returns {View}
 */
export function readView(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const view = { ...FIRST_VIEW };
  for (const key of /** @type {Array<keyof View>} */ (Object.keys(FIRST_VIEW))) {
    const value = given.get(key);
    if (value !== null && (CHOICES[key]?.includes(value) ?? true)) view[key] = value;
  }
  return view;
}

/**
 * Returns the part of an address after #, without what is as at first.
 * @param {View} view
 */
export function writeView(view) {
  const different = Object.entries(view).filter(([key, value]) => value !== FIRST_VIEW[/** @type {keyof View} */ (key)]);
  return String(new URLSearchParams(different)).replaceAll("%2F", "/");
}
