// Counts, or times, as bars side by side; a line across a bar is its middle. What stands below them is thinned to the room there is.
import { plot, rectY, ruleX, ruleY, text } from "@observablehq/plot";

/** A few bars are not made as wide as the picture. */
const FEW = 8;
const LABEL_PX = 56;

/** As many of the places as have room, from the left. */
function apart(places, unit) {
  const kept = [];
  for (const place of places) if (kept.length === 0 || (place.at - kept.at(-1).at) * unit >= LABEL_PX) kept.push(place);
  return kept;
}

export function bars(series, width) {
  const of = Math.max(FEW, series.of);
  const unit = width / of;
  const gap = unit > 6 ? 1 : 0.25;
  const places = apart(series.places, unit);
  const anchor = (place) => (place.at * unit < 24 ? "start" : place.at * unit > width - 24 ? "end" : "middle");
  return plot({
    width,
    height: 150,
    marginLeft: 0,
    marginRight: 0,
    marginTop: 20,
    marginBottom: 22,
    x: { axis: null, domain: [0, of] },
    y: { axis: null, domain: [0, series.most || 1] },
    marks: [
      rectY(series.bars, { x1: "at", x2: (bar) => bar.at + 1, y: "value", inset: gap, fill: series.bars.some((bar) => bar.middle !== null) ? "var(--accent-wash)" : "var(--accent)", title: "label" }),
      ruleY(series.bars.filter((bar) => bar.middle !== null), { x1: "at", x2: (bar) => bar.at + 1, y: "middle", inset: gap, stroke: "var(--accent)", strokeWidth: 2 }),
      ruleY([0], { stroke: "var(--line-strong)" }),
      text([series.top], { frameAnchor: "top-left", dy: -16, text: (top) => top }),
      ...["start", "middle", "end"].map((textAnchor) => text(places.filter((place) => anchor(place) === textAnchor), { x: "at", frameAnchor: "bottom", dy: 16, text: "label", textAnchor })),
      ...(series.due === null ? [] : [ruleX([series.due], { stroke: "var(--care)", strokeDasharray: "4 3" }), text([series.due], { x: (at) => at, frameAnchor: "top", dx: series.due * unit > 60 ? -4 : 4, textAnchor: series.due * unit > 60 ? "end" : "start", text: () => "due" })]),
    ],
  });
}
