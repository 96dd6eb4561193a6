// A result against the hardware's limits: operations a second over operations per byte, both logarithmic. Where there is
// no arithmetic (a transpose), bytes a second against the memory's bandwidth.
import { axisX, axisY, barX, dot, gridX, gridY, line, plot, ruleX, text } from "@observablehq/plot";
import { bandwidth, digits, flops } from "./units.js";

const ORDER = ["milestone", "reference", "last", "this"];
const LOOKS = {
  this: { symbol: "circle", r: 6, fill: "var(--accent)", stroke: "var(--surface)" },
  last: { symbol: "circle", r: 5, fill: "var(--surface)", stroke: "var(--accent)", strokeWidth: 2 },
  reference: { symbol: "square", r: 5, fill: "var(--ink-soft)", stroke: "var(--surface)" },
  milestone: { symbol: "diamond", r: 5, fill: "var(--surface)", stroke: "var(--ink-soft)", strokeWidth: 1.5 },
};
const APART_PX = 16;
const SVG = "http://www.w3.org/2000/svg";

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** A column's labels from above to below: one for all dots of one origin, none nearer to the next than a line. */
function spaced(column, y, bottom) {
  const found = [...Map.groupBy(column, (one) => one.label)].map(([label, same]) => ({
    label,
    who: same[0].who,
    levels: same.map((one) => y(one.tflops)),
  }));
  for (const one of found) one.place = one.levels.reduce((sum, level) => sum + level, 0) / one.levels.length;
  found.sort((a, b) => a.place - b.place);
  let below = -Infinity;
  for (const one of found) below = one.place = Math.max(one.place, below + APART_PX);
  const over = Math.max(0, below - (bottom - 8));
  for (const one of found) one.place -= over;
  return found;
}

/** A label beside the dots of one intensity, with a line to what it was moved away from. */
function labels(dots) {
  return (_index, { x, y }, _values, { width, height, marginBottom }) => {
    const group = shape("g", { "aria-hidden": "true" });
    for (const column of Map.groupBy(dots, (one) => Math.round(x(one.x) / 24)).values()) {
      const at = x(column[0].x);
      const side = at > width * 0.6 ? -1 : 1;
      for (const one of spaced(column, y, height - marginBottom)) {
        for (const level of one.levels) {
          if (Math.abs(one.place - level) > 3) group.append(shape("path", { d: `M${at},${level}L${at + side * 18},${one.place}`, class: "chart__leader" }));
        }
        const anchor = { x: at + side * 22, y: one.place, dy: "0.32em", "text-anchor": side > 0 ? "start" : "end" };
        const label = shape("text", { ...anchor, class: `chart__label chart__label--${one.who}` });
        label.textContent = one.label;
        group.append(label);
      }
    }
    return group;
  };
}

/** The powers of ten within a range. */
function decades([low, high]) {
  const [first, last] = [Math.ceil(Math.log10(low)), Math.floor(Math.log10(high))];
  return Array.from({ length: last - first + 1 }, (_, index) => 10 ** (first + index));
}

function roofs(series, [left, right], low) {
  const peaks = [...Map.groupBy(series.peaks, (peak) => peak.tflops)].map(([tflops, same]) => ({ tflops, types: same.map((peak) => peak.dtype).join(", ") }));
  const highest = Math.max(...peaks.map((peak) => peak.tflops));
  const start = Math.max(left, low / series.memory);
  const slope = [start, highest / series.memory].map((x) => ({ x, y: series.memory * x }));
  const middle = Math.sqrt(slope[0].x * slope[1].x);
  return [
    line(slope, { x: "x", y: "y", stroke: "var(--ink)", strokeWidth: 1.5 }),
    text([{ x: middle, y: series.memory * middle }], { x: "x", y: "y", text: [`${bandwidth(series.memory)} memory`], dx: -8, dy: -8, textAnchor: "end", className: "chart__limit" }),
    ...peaks.flatMap(({ tflops, types }) => [
      line([tflops / series.memory, right].map((x) => ({ x, y: tflops })), { x: "x", y: "y", stroke: "var(--ink)", strokeWidth: 1.5 }),
      text([{ x: right, y: tflops }], { x: "x", y: "y", text: [`${flops(tflops)} ${types}`], dy: -8, textAnchor: "end", className: "chart__limit" }),
    ]),
  ];
}

function place(series, width) {
  const dots = series.dots.filter((one) => one.x > 0);
  const [xs, ys] = [dots.map((one) => one.x), dots.map((one) => one.tflops)];
  const peak = Math.max(...series.peaks.map((one) => one.tflops));
  const across = [Math.min(...xs) / 4, Math.max(Math.max(...xs) * 6, (peak / series.memory) * 6)];
  const up = [Math.min(...ys, series.memory * across[0]) / 2, peak * 2.5];
  const narrow = width < 520;
  return plot({
    width,
    height: narrow ? 320 : 380,
    marginLeft: 92,
    marginRight: 16,
    marginBottom: 44,
    x: { type: "log", domain: across, label: null },
    y: { type: "log", domain: up, label: null },
    marks: [
      gridX({ ticks: decades(across) }),
      gridY({ ticks: decades(up) }),
      axisX({ ticks: decades(across), tickSize: 0, tickFormat: digits, label: "FLOP per byte", labelAnchor: "right", labelArrow: "none" }),
      axisY({ ticks: decades(up), tickSize: 0, tickFormat: flops, label: null }),
      ...roofs(series, across, up[0]),
      ...ORDER.map((who) => dot(dots.filter((one) => one.who === who), { x: "x", y: "tflops", ...LOOKS[who], title: (one) => `${one.label}, ${one.case}: ${flops(one.tflops)}, ${bandwidth(one.tb)}` })),
      labels(dots),
    ],
  });
}

/** Bars of traffic, for rungs that move and do not calculate. */
function traffic(series, width) {
  const cases = [...new Set(series.dots.map((one) => one.case))];
  const rows = series.dots.length;
  const end = Math.max(series.memory, ...series.dots.map((one) => one.tb)) * 1.15;
  return plot({
    width,
    height: 56 + rows * 28 + cases.length * 12,
    marginLeft: 112,
    marginRight: 16,
    marginBottom: 40,
    marginTop: 24,
    x: { domain: [0, end], label: null },
    y: { label: null, domain: [...new Set(series.dots.map((one) => one.label))] },
    fy: { domain: cases, label: null, padding: 0.1 },
    marks: [
      gridX({ ticks: 5 }),
      axisX({ ticks: 5, tickFormat: digits, label: "TB/s", labelAnchor: "right", labelArrow: "none" }),
      axisY({ tickSize: 0 }),
      barX(series.dots, { x: "tb", y: "label", fy: "case", fill: (one) => (one.who === "this" ? "var(--accent)" : "var(--line-strong)"), insetTop: 4, insetBottom: 4 }),
      text(series.dots, { x: "tb", y: "label", fy: "case", text: (one) => bandwidth(one.tb), dx: 6, textAnchor: "start", className: "chart__label" }),
      ruleX([series.memory], { stroke: "var(--ink)", strokeWidth: 1.5 }),
      text([series.memory], { x: (value) => value, frameAnchor: "top", dy: -14, text: [`${bandwidth(series.memory)} memory`], className: "chart__limit", facetAnchor: "top" }),
    ],
  });
}

export function roofline(series, width) {
  return series.dots.some((one) => one.x > 0) ? place(series, width) : traffic(series, width);
}
