// Amounts and numbers as the command line writes them; ages are shorter, for narrow columns.

const NUMBER = new Intl.NumberFormat("en");
/** @type {Array<[string, number]>} */
const SIZES = [["Ti", 2 ** 40], ["Gi", 2 ** 30], ["Mi", 2 ** 20], ["Ki", 2 ** 10]];

/** @param {number} value */
export function number(value) {
  return NUMBER.format(value);
}

/**
 * @param {number} count
 * @param {string} noun
 */
export function counted(count, noun) {
  return `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * Returns a count of which more may exist than are known.
 * @param {number} count
 * @param {boolean} isIncomplete
 */
export function atLeast(count, isIncomplete) {
  return isIncomplete ? (count ? `${number(count)}+` : "?") : number(count);
}

/** @param {number} bytes */
export function memory(bytes) {
  for (const [suffix, size] of SIZES) {
    if (Math.abs(bytes) >= size) return `${Number((bytes / size).toFixed(1))}${suffix}`;
  }
  return String(bytes);
}

/**
 * @param {number} part
 * @param {number} whole
 */
export function percent(part, whole) {
  return whole ? `${Math.round((100 * part) / whole)}%` : "0%";
}

/**
 * Returns an age such as 45s, 12m, 3h20m or 2d.
 * @param {number} milliseconds
 */
export function age(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return `${hours}h${minutes % 60 ? `${minutes % 60}m` : ""}`;
  return hours < 48 ? `${hours}h` : `${Math.floor(hours / 24)}d`;
}

/**
 * Returns the age of something that began at a time of the API; a question mark if it is none.
 * @param {string} since RFC 3339
 * @param {number} now milliseconds
 */
export function ageSince(since, now) {
  const began = Date.parse(since);
  return Number.isNaN(began) ? "?" : age(now - began);
}
