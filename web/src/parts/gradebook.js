// The gradebook: filter as you type, arrow keys between cells, a cell's page beside the grid. Without it the form
// searches, the headings sort and the cells are links.
import { ask } from "./ask.js";
import { isWritten } from "./written.js";

export function startGradebook() {
  const root = document.querySelector("[data-gradebook]");
  if (!root) return;
  const rows = [...root.querySelectorAll("tbody tr")];
  startFilter(rows);
  startArrows(rows);
  startPanel(root);
}

function startFilter(rows) {
  const field = document.querySelector("[data-gradebook-filter]");
  const section = document.querySelector("[data-gradebook-section]");
  const count = document.querySelector("[data-gradebook-count]");
  const apply = () => {
    const wanted = field.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const inSection = !section || section.value === "*" || row.dataset.section === section.value;
      row.hidden = !(inSection && row.dataset.known.includes(wanted));
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = `${shown} of ${rows.length} ${rows.length === 1 ? "student" : "students"}`;
  };
  // What the server left out by an earlier search is not here: then the form searches.
  const isWhole = !new URLSearchParams(location.search).get("q");
  if (!isWhole) return;
  field.addEventListener("input", apply);
  section?.addEventListener("change", () => {
    if ((new URLSearchParams(location.search).get("section") ?? "*") === "*") apply();
  });
}

/** Arrow keys go to the next cell that is shown; Home and End to the ends of its row. */
function startArrows(rows) {
  const cells = (row) => [...row.querySelectorAll("td a")];
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  const move = (event) => {
    const here = event.target.closest?.("tbody td a");
    if (!here || event.altKey || event.ctrlKey || event.metaKey) return;
    const row = here.closest("tr");
    const across = cells(row).indexOf(here);
    let target;
    if (event.key === "Home") target = cells(row)[0];
    else if (event.key === "End") target = cells(row).at(-1);
    else if (event.key in step) {
      const [down, right] = step[event.key];
      const shown = rows.filter((one) => !one.hidden);
      target = cells(shown[shown.indexOf(row) + down] ?? row)[across + right];
    }
    if (!target) return;
    event.preventDefault();
    target.focus();
    target.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  document.querySelector("[data-gradebook] tbody").addEventListener("keydown", move);
}

/** A cell opens beside the grid; Escape closes it and goes back to the cell. */
function startPanel(root) {
  const panel = root.querySelector("[data-gradebook-panel]");
  let opened = null;
  /** Counts what was asked for: only the last of it is shown, and that not over what somebody writes meanwhile. */
  let asked = 0;
  const isWanted = (number) => number === asked && !isWritten(panel);
  const mayLeave = () => !isWritten(panel) || confirm("Leave this grade? What you wrote about it is not sent yet.");
  const close = () => {
    if (!mayLeave()) return;
    asked += 1;
    panel.hidden = true;
    panel.replaceChildren();
    opened?.focus();
    opened = null;
  };
  const open = async (link, number) => {
    const response = await ask(link.href, { headers: { accept: "text/html" } });
    const text = await response.text();
    if (!isWanted(number)) return;
    const found = new DOMParser().parseFromString(text, "text/html").querySelector("[data-gradebook-cell]");
    if (!response.ok || !found) return location.assign(link.href);
    opened = link;
    panel.replaceChildren(closeButton(close), found);
    panel.hidden = false;
    found.querySelector("h1").focus();
  };
  root.querySelector("tbody").addEventListener("click", (event) => {
    const link = event.target.closest("td a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || window.innerWidth < 900) return;
    event.preventDefault();
    if (!mayLeave()) return;
    // What was left is nothing that another grade may not be put over.
    for (const form of panel.querySelectorAll("form")) form.reset();
    const number = (asked += 1);
    open(link, number).catch(() => isWanted(number) && location.assign(link.href));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !panel.hidden) close();
  });
}

function closeButton(close) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button button--small gradebook__close";
  button.textContent = "Close";
  button.addEventListener("click", close);
  return button;
}
