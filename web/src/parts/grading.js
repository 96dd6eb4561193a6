// Grading by hand with the keyboard: line numbers fill the form, digits tick the rubric's items. Without it, the same forms.
function isWriting(event) {
  const target = event.target;
  return target instanceof HTMLElement && (target.isContentEditable || target.matches("input:not([type=checkbox]), textarea, select"));
}

/** A click on a line's number begins a comment there; with Shift it ends the range. */
function startLines(source, form) {
  const field = form.elements.lines;
  let first = 0;
  const show = (from, to) => {
    for (const line of source.querySelectorAll(".line--chosen")) line.classList.remove("line--chosen");
    for (let number = from; number <= to; number += 1) document.getElementById(`L${number}`)?.classList.add("line--chosen");
  };
  source.addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest("[data-line]");
    if (!link || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const number = Number(link.dataset.line);
    const [from, to] = event.shiftKey && first ? [Math.min(first, number), Math.max(first, number)] : [number, number];
    if (!event.shiftKey) first = number;
    field.value = from === to ? `${from}` : `${from}-${to}`;
    show(from, to);
    form.elements.text.focus({ preventScroll: window.innerWidth > 1024 });
  });
  const [from, to] = field.value.split("-").map(Number);
  if (from) show(from, to || from);
}

function startInserting(form) {
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest("[data-insert]");
    if (!button) return;
    const text = form.elements.text;
    text.setRangeText(document.getElementById(button.dataset.insert).value, text.selectionStart, text.selectionEnd, "end");
    text.focus();
  });
}

function startRubric(form) {
  const total = form.querySelector("[data-total]");
  const sum = () => {
    let points = 0;
    for (const box of form.querySelectorAll("[data-points]:checked")) points += Number(box.dataset.points);
    points = Math.round(points * 1e4) / 1e4;
    total.textContent = points > 0 ? `+${points}` : points < 0 ? `−${-points}` : "0";
  };
  form.addEventListener("change", sum);
  // What was ticked before something else was sent is ticked again.
  sum();
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event) || document.querySelector("dialog[open]")) return;
    const target = form.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (!target) return;
    event.preventDefault();
    target.click();
  });
}

/** Who goes on to the next student is told of a comment that they have not sent. */
function startLeaving(rubric, comment) {
  rubric.addEventListener("submit", (event) => {
    if (event.submitter?.value !== "next" || !comment.elements.text.value.trim()) return;
    if (!confirm("Your comment is not sent yet. Go on to the next student? It stays here, in this tab.")) event.preventDefault();
  });
}

function startChosen(table) {
  const said = table.closest("form").querySelector("[data-chosen]");
  table.addEventListener("change", () => {
    const count = table.querySelectorAll("input[type=checkbox]:checked").length;
    said.textContent = count ? `${count} chosen` : "";
  });
}

export function startGrading() {
  const form = document.getElementById("new-comment");
  if (form) {
    const source = document.querySelector("[data-commented]");
    if (source) startLines(source, form);
    startInserting(form);
    document.addEventListener("keydown", (event) => {
      if (event.key !== "c" || event.ctrlKey || event.metaKey || event.altKey || isWriting(event)) return;
      event.preventDefault();
      form.elements.text.focus();
    });
  }
  for (const rubric of document.querySelectorAll("[data-rubric]")) {
    startRubric(rubric);
    if (form) startLeaving(rubric, form);
  }
  for (const table of document.querySelectorAll("[data-choosing]")) startChosen(table);
}
