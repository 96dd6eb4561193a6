// The assignment page's form: the text area becomes an editor, drafts are kept, files open into it, runs show beside it.
import { drafts } from "./editor/drafts.js";
import { runPanel } from "./editor/run-panel.js";
import { makeEditor } from "./editor/view.js";

const SAVE_AFTER_MS = 400;
const MAX_BYTES = 2 ** 20;

const form = document.querySelector("form[data-editor]");
if (form) start(form);

function start(form) {
  const area = form.querySelector("textarea[name=source]");
  const host = form.querySelector("[data-editor-host]");
  const language = form.elements.language;
  const starters = JSON.parse(document.getElementById("starters").textContent);
  const store = drafts(form.dataset.editor);
  const notice = noticeOf(form.querySelector("[data-draft-notice]"));
  const panel = runPanel(document.querySelector("[data-run-panel]"), {
    onEnd: (frames) => editor.mark(frames),
    onLine: (line) => editor.goTo(line),
  });
  let saving = 0;

  const draft = store.read(language.value);
  const kept = "kept" in form.dataset;
  // What was handed in after the draft was written, perhaps from another machine, is newer than it.
  const restored = !kept && draft !== null && draft.text !== area.value && draft.at > Number(form.dataset.sourceAt);
  const editor = makeEditor(host, {
    text: restored ? draft.text : area.value,
    language: language.value,
    label: "Source code",
    description: "Escape, then Tab leaves the editor.",
    onChange: (text) => {
      clearTimeout(saving);
      saving = setTimeout(() => save(text), SAVE_AFTER_MS);
    },
    onRun: () => run(),
    onSubmit: () => submit(),
  });
  area.hidden = true;
  host.hidden = false;
  form.querySelector("[data-source-label]").hidden = true;
  if (restored) notice.show(`Your draft of ${moment(draft.at)} was restored.`, "Discard it", () => startAgain());

  function save(text) {
    if (text === starters[language.value]) store.forget(language.value);
    else if (!store.write(language.value, text)) notice.show("This browser keeps no drafts: its storage is full or switched off.");
  }

  function flush() {
    clearTimeout(saving);
    save(editor.text());
    area.value = editor.text();
  }

  function startAgain() {
    editor.setText(area.defaultValue);
    store.forget(language.value);
    notice.show("The draft was discarded.", "Undo", () => editor.setText(draft.text));
  }

  function run() {
    flush();
    editor.mark([]);
    panel.run(form);
  }

  function submit() {
    flush();
    form.requestSubmit(form.querySelector("button[value=submission]"));
  }

  let before = language.value;
  language.addEventListener("change", () => {
    store.write(before, editor.text());
    before = language.value;
    editor.setLanguage(before);
    editor.setText(store.read(before)?.text ?? starters[before] ?? "");
  });

  form.addEventListener("submit", (event) => {
    flush();
    if (event.submitter?.value !== "run") return;
    event.preventDefault();
    run();
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.defaultPrevented) return;
    event.preventDefault();
    if (event.shiftKey) submit();
    else run();
  });

  form.querySelector("[data-reset]").addEventListener("click", () => {
    const text = editor.text();
    editor.setText(starters[language.value] ?? "");
    notice.show("The starter is back.", "Undo", () => editor.setText(text));
  });

  form.querySelector("[data-open-file]").addEventListener("click", () => form.elements.file.click());
  startOpening(form.elements.file, (text, name) => {
    const old = editor.text();
    editor.setText(text);
    notice.show(`${name} is in the editor.`, "Undo", () => editor.setText(old));
  }, notice);
  addEventListener("pagehide", () => save(editor.text()));
}

/** A chosen file opens into the editor instead of being sent on its own. */
function startOpening(input, open, notice) {
  input.addEventListener("change", async () => {
    const file = input.files[0];
    if (!file) return;
    input.value = "";
    if (file.size > MAX_BYTES) return notice.show(`${file.name} is larger than 1 MiB, which is the most that is accepted.`);
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
      if (text.includes("\0")) throw new TypeError("binary");
      open(text, file.name);
    } catch {
      notice.show(`${file.name} is not text in UTF-8.`);
    }
  });
}

function noticeOf(element) {
  const text = element.querySelector("[data-notice-text]");
  const action = element.querySelector("button");
  let act = () => {};
  action.addEventListener("click", () => {
    element.hidden = true;
    act();
  });
  return {
    show(message, label = "", does = () => {}) {
      text.textContent = message;
      action.textContent = label;
      action.hidden = label === "";
      act = does;
      element.hidden = false;
    },
  };
}

function moment(at) {
  return new Date(at).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
}
