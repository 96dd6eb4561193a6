// Forms beside each other: whoever sends one, or looks at another page meanwhile, finds in the others what they had written.
// A form says `data-keep="its name"`, which no other form of any page has. It is kept for this tab, until it is sent; a link
// in it that says `data-drop` lets it go.
import { fieldsOf, isUnsent } from "./written.js";

/** What a form began from: with it, what somebody else changed since is not written over unseen. */
const BEGAN = "input[name=revision], input[name=seen]";

const place = (form) => `written:${form.dataset.keep}`;

function read(form) {
  try {
    return JSON.parse(sessionStorage.getItem(place(form)));
  } catch {
    return null;
  }
}

function write(form, fields) {
  try {
    if (fields) sessionStorage.setItem(place(form), JSON.stringify(fields));
    else sessionStorage.removeItem(place(form));
  } catch {
    // Storage is full or switched off: the form is as the page brought it.
  }
}

const isBox = (field) => field.type === "checkbox" || field.type === "radio";
const nameOf = (field) => JSON.stringify(isBox(field) ? [field.name, field.value] : [field.name]);

const kept = (form) => [...fieldsOf(form), ...form.querySelectorAll(BEGAN)];

function taken(form) {
  return kept(form).map((field) => [nameOf(field), isBox(field) ? field.checked : field.value]);
}

function putBack(form, fields) {
  const values = new Map(fields);
  for (const field of kept(form)) {
    const value = values.get(nameOf(field));
    if (value === undefined) continue;
    if (isBox(field)) field.checked = value;
    else field.value = value;
  }
  form.closest("details")?.setAttribute("open", "");
}

export function startKeeping() {
  const forms = [...document.querySelectorAll("form[data-keep]")];
  if (forms.length === 0) return;
  for (const form of forms) {
    const fields = read(form);
    write(form, null);
    if (fields) putBack(form, fields);
  }
  let sent = null;
  addEventListener("submit", (event) => (sent = event.defaultPrevented ? sent : event.target));
  // Whoever takes what is stored instead has no more use for what they wrote.
  addEventListener("click", (event) => (sent = event.target.closest?.("[data-drop]")?.closest("form") ?? sent));
  addEventListener("pagehide", () => {
    for (const form of forms) write(form, form !== sent && isUnsent(form) ? taken(form) : null);
  });
  // Come back to, the page is as it was left.
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    sent = null;
    for (const form of forms) write(form, null);
  });
}
