// An SVG file that looks as the chart does here: colours and fonts come from the style sheet, so they are written out.
const PROPERTIES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight"];

function written(live, copy) {
  const style = getComputedStyle(live);
  for (const property of PROPERTIES) copy.setAttribute(property, style.getPropertyValue(property));
  copy.removeAttribute("class");
  [...live.children].forEach((child, index) => written(child, copy.children[index]));
}

/** Hand the reader the chart as a file. */
export function save(svg, name) {
  const copy = svg.cloneNode(true);
  written(svg, copy);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const back = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  back.setAttribute("width", "100%");
  back.setAttribute("height", "100%");
  back.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  copy.prepend(back);
  const url = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
  const link = Object.assign(document.createElement("a"), { href: url, download: `${name}.svg` });
  link.click();
  URL.revokeObjectURL(url);
}
