// Draws the charts of a page. This entry is small: the library comes only where there is a chart, and later if the live
// stream brings one. Without scripts a chart is its caption and its table.
//
// A chart is `<figure data-chart="kind" data-series='{…}'>` with an element `[data-chart-space]` to draw in.
const SELECTOR = "figure[data-chart]";

let drawing = null;

// Where a network is away a chart stays what it is without scripts, and the next look asks again.
async function draw(figures) {
  drawing ??= import("./charts/draw.js").catch(() => (drawing = null));
  const drawn = await drawing;
  if (drawn) for (const figure of figures) drawn.start(figure);
}

function look(root) {
  const figures = root.querySelectorAll(SELECTOR);
  if (figures.length > 0) draw(figures);
}

look(document);
new MutationObserver((changes) => {
  for (const change of changes) {
    for (const node of change.addedNodes) if (node instanceof Element) look(node.parentElement ?? node);
  }
}).observe(document.getElementById("main"), { childList: true, subtree: true });
