// The bar between the editor and a result: dragged, or moved by keys, and remembered in this browser. Until somebody moves
// it, the style sheet shares the height out: 20 lines for the editor, what is left for the result.
const KEPT = "result-height";
/** One line of the editor. */
const STEP_PX = 20;
const PAGE = 5;
const LEAST_PX = 80;
const DIRECTIONS = { ArrowUp: 1, ArrowDown: -1, PageUp: PAGE, PageDown: -PAGE };

function remembered() {
  try {
    return Number(localStorage.getItem(KEPT)) || 0;
  } catch {
    return 0;
  }
}

function remember(height) {
  try {
    if (height) localStorage.setItem(KEPT, String(height));
    else localStorage.removeItem(KEPT);
  } catch {
    // Storage is full or switched off: it is set for this page only.
  }
}

/**
 * @param {HTMLElement} bar the separator, before the panel
 * @param {HTMLElement} panel what gets higher as the bar goes up
 * @param {HTMLElement} above what gets lower: its `clientHeight` is what there is to give
 */
export function startSplitter(bar, panel, above) {
  const column = bar.parentElement;
  const height = () => panel.getBoundingClientRect().height;
  /** What the editor can give up before fewer than four lines are left. */
  const most = () => Math.max(LEAST_PX, height() + above.clientHeight - 4 * STEP_PX);

  function tell() {
    bar.setAttribute("aria-valuemin", String(LEAST_PX));
    bar.setAttribute("aria-valuemax", String(Math.round(most())));
    bar.setAttribute("aria-valuenow", String(Math.round(height())));
    bar.setAttribute("aria-valuetext", `${Math.round(above.clientHeight / STEP_PX)} lines of code, result ${Math.round(height())} pixels`);
  }

  /** Give the panel this height; nothing: what the style sheet says. */
  function set(wanted) {
    if (wanted) column.style.setProperty("--result", `${Math.round(Math.min(Math.max(wanted, LEAST_PX), most()))}px`);
    else column.style.removeProperty("--result");
    column.classList.toggle("workbench__editor--split", Boolean(wanted));
    tell();
  }

  const keep = () => remember(column.classList.contains("workbench__editor--split") ? Math.round(height()) : 0);

  bar.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    event.preventDefault();
    bar.focus();
    bar.setPointerCapture(event.pointerId);
    const from = { y: event.clientY, height: height() };
    const move = ({ clientY }) => set(from.height + from.y - clientY);
    bar.addEventListener("pointermove", move);
    bar.addEventListener("lostpointercapture", () => (bar.removeEventListener("pointermove", move), keep()), { once: true });
  });
  bar.addEventListener("dblclick", () => (set(0), keep()));
  bar.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in DIRECTIONS) set(height() + DIRECTIONS[event.key] * STEP_PX);
    else if (event.key === "Home") set(LEAST_PX);
    else if (event.key === "End") set(most());
    else return;
    event.preventDefault();
    keep();
  });

  return {
    /** Show the bar with the panel, as high as it was left. */
    show() {
      if (!bar.hidden) return tell();
      bar.hidden = false;
      set(remembered());
    },
    hide: () => (bar.hidden = true),
  };
}
