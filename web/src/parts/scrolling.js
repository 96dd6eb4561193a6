// Tables, formulas and listings may be wider than the page, and a keyboard can scroll them only where they can be focused:
// the page says so of all of them. One that fits is no stop for the Tab key.
const REGIONS = ".scroll, .maths, .signature, .code, .log, .frame__code, pre";

const seen = new ResizeObserver((entries) => {
  for (const { target } of entries) look(target);
});

function look(region) {
  const { overflowY } = getComputedStyle(region);
  const scrolls =
    region.scrollWidth > region.clientWidth || (overflowY !== "hidden" && region.scrollHeight > region.clientHeight);
  if (scrolls) region.tabIndex = 0;
  // Somebody may be there while the window gets wider.
  else if (region !== document.activeElement) region.removeAttribute("tabindex");
}

/** Look after the regions below `root` that the page made focusable. */
export function startScrolling(root) {
  for (const region of root.querySelectorAll("[tabindex='0']")) if (region.matches(REGIONS)) seen.observe(region);
}
