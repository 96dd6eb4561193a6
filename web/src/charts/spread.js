// Every sample of one case, the submission's above the reference's, on one logarithmic axis: dots, the middle half, the median.
import { axisX, dot, gridX, plot, ruleY, text, tickX } from "@observablehq/plot";
import { microseconds } from "./units.js";

/** So many samples are drawn large. */
const MANY = 60;
/** Spreads dots over the height of their row, the same way every time. */
const GOLDEN = (Math.sqrt(5) - 1) / 2;
const COLOURS = { "this one": "var(--accent)", reference: "var(--ink-soft)" };

/** A few round numbers within a range. */
function round(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, index) => (first + index) * step);
}

export function spread(series, width) {
  const sides = series.sides;
  const samples = sides.flatMap((side) => side.times.map((us, index) => ({ us, who: side.name, level: 0.1 + 0.8 * ((index * GOLDEN) % 1) })));
  const all = samples.map((sample) => sample.us);
  const [low, high] = [Math.min(...all) * 0.99, Math.max(...all) * 1.01];
  const middle = Math.sqrt(low * high);
  const colour = (item) => COLOURS[item.who ?? item.name];
  const marks = round(low, high, width < 420 ? 3 : 4);
  const many = sides.some((side) => side.times.length > MANY);
  return plot({
    width,
    height: 208,
    marginLeft: 72,
    marginRight: 28,
    marginBottom: 36,
    x: { type: "log", domain: [low, high], label: null },
    y: { axis: null, domain: [0, 1.45] },
    fy: { domain: sides.map((side) => side.name), label: null, padding: 0.05, axis: "left" },
    marks: [
      gridX(marks),
      axisX(marks, { text: microseconds, tickSize: 0 }),
      dot(samples, { x: "us", y: "level", fy: "who", r: many ? 2 : 3, fill: colour, fillOpacity: many ? 0.45 : 0.7, title: (sample) => microseconds(sample.us) }),
      ruleY(sides, { fy: "name", x1: "low", x2: "high", stroke: colour, strokeWidth: 6, strokeOpacity: 0.35, frameAnchor: "bottom", dy: -3 }),
      tickX(sides, { fy: "name", x: "median", insetTop: 12, stroke: colour, strokeWidth: 2 }),
      ...["start", "end"].map((textAnchor) => text(sides.filter((side) => (side.median > middle ? "end" : "start") === textAnchor), { fy: "name", x: "median", y: 1.25, text: (side) => `median ${microseconds(side.median)}`, dx: textAnchor === "start" ? 8 : -8, textAnchor, className: "chart__label" })),
    ],
  });
}
