// How the record of a board came down: a step line over time, the ratio to the reference on a logarithmic axis.
import { axisY, dot, gridY, line, plot, ruleY, text } from "@observablehq/plot";
import { digits } from "./units.js";

const LABEL_PX = { wide: 160, high: 16 };
const NAME_CHARS = 18;
/** The roundest first. */
const TICKS = [1, 2, 0.5, 10, 5, 0.1, 0.2, 100, 50, 20, 1000, 1.5, 0.8, 3, 1.25, 0.01, 0.02, 0.05];
const TICK_PX = 20;

const short = (name) => (name.length <= NAME_CHARS ? name : `${name.slice(0, NAME_CHARS - 1)}…`);

/** As many ticks as have room. */
function apart(low, high, y) {
  const kept = [];
  for (const tick of TICKS) if (tick >= low && tick <= high && kept.every((one) => Math.abs(y(one) - y(tick)) >= TICK_PX)) kept.push(tick);
  return kept;
}

/** The records with names beside them, the newest first, as far as those do not touch. */
function named(records, x, y, right) {
  const kept = [];
  for (const record of records.toReversed()) {
    const left = x(record.at) + LABEL_PX.wide > right;
    const from = x(record.at) - (left ? LABEL_PX.wide : 0);
    const level = y(record.ratio);
    if (kept.every((one) => Math.abs(one.from - from) >= LABEL_PX.wide || Math.abs(one.level - level) >= LABEL_PX.high)) kept.push({ ...record, left, from, level });
  }
  return kept;
}

export function record(series, width) {
  const { records, days, end } = series;
  const ratios = [1, ...records.map((one) => one.ratio)];
  const [low, high] = [Math.min(...ratios) / 1.1, Math.max(...ratios) * 1.15];
  const frame = { width, height: 220, marginLeft: 48, marginRight: 16, marginTop: 16, marginBottom: 32 };
  const scales = { x: { axis: null, type: "utc", domain: [records[0].at, end] }, y: { type: "log", domain: [low, high], label: null } };
  const bare = plot({ ...frame, ...scales });
  const ticks = apart(low, high, bare.scale("y").apply);
  const labels = named(records, bare.scale("x").apply, bare.scale("y").apply, width - frame.marginRight);
  return plot({
    ...frame,
    ...scales,
    marks: [
      gridY(ticks),
      axisY(ticks, { tickSize: 0, tickFormat: (ratio) => `${digits(ratio)}×` }),
      ruleY([1], { stroke: "var(--line-strong)", strokeDasharray: "4 4" }),
      line([...records, { ...records.at(-1), at: end }], { x: "at", y: "ratio", curve: "step-after", stroke: "var(--accent)", strokeWidth: 2 }),
      dot(records, { x: "at", y: "ratio", r: 3.5, fill: "var(--accent)", title: "title" }),
      ...[true, false].map((left) => text(labels.filter((one) => one.left === left), { x: "at", y: "ratio", dx: left ? -4 : 4, dy: -10, textAnchor: left ? "end" : "start", text: (one) => `${short(one.name)} ${digits(one.ratio)}×`, className: "chart__label" })),
      text(days, { x: "at", frameAnchor: "bottom", dy: 18, text: "label", textAnchor: "middle" }),
    ],
  });
}
