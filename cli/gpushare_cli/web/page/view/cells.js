// One card on a canvas: a dot, a box with a level, or a bar with its pods, by how much room there is.

import { shown } from "./dom.js";
import { memory } from "../state/text.js";

/**
 * @typedef {import("../state/model.js").Card} Card
 * @typedef {import("./palette.js").Look} Look
 * @typedef {import("./palette.js").Palette} Palette
 * @typedef {import("./palette.js").Theme} Theme
 * @typedef {{x: number, y: number, width: number, height: number}} Box
 */

const LETTER_FROM = 12;
const NAME_FROM = 40;
const TWO_LINES_FROM = 38;
const TEXT = '500 11px Inter, "Segoe UI", system-ui, sans-serif';

/**
 * A box whose level says how much; with a letter where there is room.
 * @param {CanvasRenderingContext2D} context
 * @param {Theme} theme
 * @param {Look} look
 * @param {Box} box
 */
export function drawBox(context, theme, look, box) {
  const { x, y, width, height } = box;
  context.fillStyle = theme.track;
  context.fillRect(x, y, width, height);
  const filled = Math.round(height * look.level) || (look.level > 0 ? 1 : 0);
  context.fillStyle = look.fill;
  context.fillRect(x, y + height - filled, width, filled);
  drawPattern(context, theme, look, box);
  if (look.letter && width >= LETTER_FROM) drawLetter(context, theme, look, box);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Theme} theme
 * @param {Look} look
 * @param {Box} box
 */
function drawLetter(context, theme, look, { x, y, width, height }) {
  context.font = `700 ${Math.min(12, Math.round(height * 0.62))}px Inter, system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const [cx, cy] = [x + width / 2, y + height / 2 + 0.5];
  if (look.pattern || look.level < 0.6) {
    context.strokeStyle = theme.paper;
    context.lineWidth = 4;
    context.lineJoin = "round";
    context.strokeText(look.letter, cx, cy);
    context.fillStyle = theme.ink;
  } else {
    context.fillStyle = onFill(look.fill);
  }
  context.fillText(look.letter, cx, cy);
}

/**
 * What is not open has a pattern, whatever its colour.
 * @param {CanvasRenderingContext2D} context
 * @param {Theme} theme
 * @param {Look} look
 * @param {Box} box
 */
export function drawPattern(context, theme, look, { x, y, width, height }) {
  if (!look.pattern) return;
  const weight = width < 8 ? 1 : 1.5;
  context.lineWidth = weight;
  if (look.pattern === "stripes") {
    context.fillStyle = theme.closed;
    const step = width < 8 ? 2 : 4;
    for (let line = y + step - 1; line < y + height; line += step) context.fillRect(x, line, width, 1);
    return;
  }
  const color = look.pattern === "cross" ? theme.sick : theme.cordoned;
  context.strokeStyle = color;
  context.strokeRect(x + weight / 2, y + weight / 2, width - weight, height - weight);
  if (look.pattern !== "cross") return;
  const side = Math.min(width, height);
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.beginPath();
  for (let left = x - height; left < x + width; left += Math.max(3, side / 3)) {
    context.moveTo(left, y + height);
    context.lineTo(left + height, y);
  }
  context.stroke();
  context.restore();
}

/**
 * A bar with a part for each pod, and a line below for what is used.
 * @param {CanvasRenderingContext2D} context
 * @param {Palette} palette
 * @param {Card} card
 * @param {Box} box
 */
export function drawBar(context, palette, card, box) {
  const { theme } = palette;
  const look = palette.look(card);
  context.fillStyle = theme.track;
  context.fillRect(box.x, box.y, box.width, box.height);
  let left = box.x;
  const parts = card.holders.map((holder) => {
    const width = Math.min((box.width * holder.units) / (card.units || 1), box.x + box.width - left);
    const fill = palette.color === "namespace" ? palette.ofNamespace(holder.namespace) : look.fill;
    const part = { holder, fill, box: { x: left, y: box.y, width, height: box.height } };
    context.fillStyle = fill;
    context.fillRect(left, box.y, Math.max(1, width - 1), box.height);
    left += width;
    return part;
  });
  drawPattern(context, theme, look, box);
  for (const part of parts) drawHolder(context, part, look.pattern !== "");
  drawUse(context, theme, card, box);
  drawRoom(context, theme, card, look, { ...box, x: left, width: box.x + box.width - left });
}

/**
 * Who has a part of a bar.
 * @param {CanvasRenderingContext2D} context
 * @param {{holder: import("../state/model.js").Holder, fill: string, box: Box}} part
 * @param {boolean} hasPattern which the text has to stand out from
 */
function drawHolder(context, { holder, fill, box: { x, y, width, height } }, hasPattern) {
  if (width < NAME_FROM) return;
  context.save();
  context.beginPath();
  context.rect(x, y, width - 5, height);
  context.clip();
  context.font = TEXT;
  context.textAlign = "left";
  context.textBaseline = "middle";
  const colors = { text: onFill(fill), around: hasPattern ? fill : "" };
  const isTall = height >= TWO_LINES_FROM;
  const room = width - 12;
  const middle = y + (isTall ? height / 2 - 9 : height / 2) + 0.5;
  drawText(context, colors, beginOf(context, shown(holder.name), room), x + 6, middle);
  if (isTall) {
    const whose = `${holder.units} · ${shown(holder.namespace)}`;
    const text = context.measureText(whose).width <= room ? whose : String(holder.units);
    drawText(context, colors, text, x + 6, middle + 15, 0.75);
  }
  context.restore();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {{text: string, around: string}} colors ``around``: empty where nothing is below
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {number} [strength] from 0 to 1
 */
function drawText(context, colors, text, x, y, strength = 1) {
  if (colors.around) {
    context.strokeStyle = colors.around;
    context.lineWidth = 4;
    context.lineJoin = "round";
    context.strokeText(text, x, y);
  }
  context.globalAlpha *= strength;
  context.fillStyle = colors.text;
  context.fillText(text, x, y);
  context.globalAlpha /= strength;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Theme} theme
 * @param {Card} card
 * @param {Box} box
 */
function drawUse(context, theme, card, box) {
  if (card.used === null || box.height < 16) return;
  context.fillStyle = theme.paper;
  context.fillRect(box.x, box.y + box.height - 4, box.width, 1);
  context.fillStyle = theme.muted;
  context.fillRect(box.x, box.y + box.height - 3, box.width * card.used, 3);
}

/**
 * What is free, and why it cannot be had.
 * @param {CanvasRenderingContext2D} context
 * @param {Theme} theme
 * @param {Card} card
 * @param {Look} look
 * @param {Box} box
 */
function drawRoom(context, theme, card, look, { x, y, width, height }) {
  const text = card.state === "Open" ? `${card.heldUnits}/${card.units}` : card.state.toLowerCase();
  context.font = TEXT;
  if (context.measureText(text).width + 10 > width) return;
  context.textAlign = "right";
  context.textBaseline = "middle";
  const isTall = height >= TWO_LINES_FROM;
  const [right, middle] = [x + width - 6, y + (isTall ? height / 2 - 9 : height / 2) + 0.5];
  const colors = look.pattern ? { text: theme.ink, around: theme.track } : { text: theme.muted, around: "" };
  drawText(context, colors, text, right, middle);
  if (isTall && width >= NAME_FROM) drawText(context, colors, `card ${card.index}`, right, middle + 15, 0.75);
}

/**
 * Returns the beginning of a text, as much as there is room for.
 * @param {CanvasRenderingContext2D} context
 * @param {string} text
 * @param {number} width
 */
function beginOf(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let end = text.length - 1;
  while (end > 0 && context.measureText(`${text.slice(0, end)}…`).width > width) end -= 1;
  return end > 1 ? `${text.slice(0, end)}…` : "";
}

/**
 * Returns the end of a text, by which the names of nodes differ.
 * @param {CanvasRenderingContext2D} context
 * @param {string} text
 * @param {number} width
 */
export function endOf(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let begin = 1;
  while (begin < text.length && context.measureText(`…${text.slice(begin)}`).width > width) begin += 1;
  return `…${text.slice(begin)}`;
}

/**
 * Returns the colour of text on another.
 * @param {string} color #rrggbb
 */
export function onFill(color) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#14161a" : "#ffffff";
}

/**
 * What a card is, in lines, for the tooltip.
 * @param {Card} card
 * @returns {string[]}
 */
export function cardLines(card) {
  const used = card.usedBytes === null ? "not measured" : memory(card.usedBytes);
  return [
    `${card.node.name}, card ${card.index}`,
    [card.model, memory(card.memoryBytes), card.serves].filter(Boolean).join(" · "),
    `held ${card.heldUnits} of ${card.units}${card.unit ? ` × ${card.unit}` : ""} · used ${used}`,
    ...(card.state === "Open" ? [] : [`${card.state}${card.reason ? `: ${card.reason}` : ""}`]),
    ...card.holders.slice(0, 6).map((holder) => `${holder.namespace}/${holder.name}: ${holder.units}`),
    ...(card.holders.length > 6 ? [`and ${card.holders.length - 6} more`] : []),
  ];
}
