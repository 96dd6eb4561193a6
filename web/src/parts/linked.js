// Source and machine code side by side: a line that is clicked, or that the address names, marks what belongs to it on
// the other side and brings the first of it into view. Without scripts the numbers are plain links.
const MARK = "line--linked";

function nearest(pane, row) {
  const { top, bottom } = pane.getBoundingClientRect();
  const place = row.getBoundingClientRect();
  if (place.top >= top && place.bottom <= bottom) return;
  pane.scrollTop += place.top - top - pane.clientHeight / 3;
}

function mark(region, row) {
  const line = row.dataset.line;
  for (const one of region.querySelectorAll(`.${MARK}`)) one.classList.remove(MARK);
  const same = [...region.querySelectorAll(`[data-line="${CSS.escape(line)}"]`)];
  for (const one of same) one.classList.add(MARK);
  const pane = row.closest(".linked__pane");
  const other = same.find((one) => one.closest(".linked__pane") !== pane);
  if (other) nearest(other.closest(".linked__pane"), other);
}

export function startLinked() {
  const region = document.querySelector("[data-linked]");
  if (!region) return;
  region.addEventListener("click", (event) => {
    const row = event.target.closest("[data-line]");
    if (!row || !getSelection().isCollapsed) return;
    // The panes scroll by themselves; following the link would move the page as well.
    if (event.target.closest("a")) event.preventDefault();
    mark(region, row);
  });
  const named = location.hash && document.getElementById(location.hash.slice(1))?.closest("[data-line]");
  if (named) mark(region, named);
}
