// One figure: drawn to its width, drawn again when that changes, saved as a file.
import { bars } from "./bars.js";
import { record } from "./record.js";
import { roofline } from "./roofline.js";
import { save } from "./save.js";
import { spread } from "./spread.js";

/** Kind → `(series, width) → svg`. A kind of its own is a file of its own and a line here. */
const KINDS = { bars, record, roofline, spread };
const started = new WeakSet();

function drawn(figure) {
  const space = figure.querySelector("[data-chart-space]");
  const width = Math.floor(space.clientWidth);
  if (width < 1) return;
  const svg = KINDS[figure.dataset.chart](JSON.parse(figure.dataset.series), width);
  // The library brings a style element, which the content security policy refuses; charts.css says the same.
  for (const style of svg.querySelectorAll("style")) style.remove();
  // The figure has one name; groups without a role can have none (WCAG 4.1.2).
  for (const group of svg.querySelectorAll("g[aria-label]")) group.removeAttribute("aria-label");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", figure.dataset.label);
  space.replaceChildren(svg);
}

/** Draw a figure, once for each width that it gets. */
export function start(figure) {
  if (started.has(figure)) return;
  started.add(figure);
  let width = -1;
  new ResizeObserver(([entry]) => {
    const now = Math.floor(entry.contentRect.width);
    if (now === width) return;
    width = now;
    drawn(figure);
  }).observe(figure.querySelector("[data-chart-space]"));
  const button = figure.querySelector("[data-chart-save]");
  button?.addEventListener("click", () => save(figure.querySelector("[data-chart-space] svg"), button.dataset.chartSave));
}
