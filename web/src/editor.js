// The assignment page's form: the text area becomes an editor, drafts are kept, files open into it, runs show beside it.
import { drafts } from "./editor/drafts.js";
import { noticeOf } from "./editor/notice.js";
import { startOpening } from "./editor/files.js";
import { runPanel } from "./editor/run-panel.js";
import { makeEditor } from "./editor/view.js";
import { requestKeys } from "./parts/request-keys.js";

/** So long the same text is not handed in again: a second click is no second submission. */
const ON_ITS_WAY_MS = 10_000;

const form = document.querySelector("form[data-editor]");
if (form) start(form);

function start(form) {
  const area = form.querySelector("textarea[name=source]");
  const host = form.querySelector("[data-editor-host]");
  const language = form.elements.language;
  const mode = () => language.selectedOptions[0].dataset.mode;
  const { starters, stored, begun } = JSON.parse(document.getElementById("texts").textContent);
  const notice = noticeOf(form.querySelector("[data-draft-notice]"), () => editor.view.focus());
  const store = drafts({
    scope: form.dataset.editor,
    address: form.dataset.drafts,
    token: form.elements.csrf_token.value,
    stored,
    onState: stateOf(form.querySelector("[data-draft-state]")),
    onBehind: behind,
  });
  const keys = requestKeys(form.dataset.editor);
  const panel = runPanel(document.querySelector("[data-run-panel]"), {
    keys,
    // Lines of a text that was changed since are no lines of this one.
    onEnd: (frames) => editor.mark(ran.language === language.value && ran.text === editor.text() ? frames : []),
    onLine: (line) => editor.goTo(line),
    onClose: () => editor.view.focus(),
    bar: document.querySelector("[data-splitter]"),
    above: host,
  });

  let looking = false;
  const kept = "kept" in form.dataset;
  const { draft, other } = store.read(language.value);
  // What was handed in after the draft was written, perhaps from another machine, is newer than it.
  const restored = !kept && draft !== null && draft.text !== begun.text && draft.at > begun.at;
  const editor = makeEditor(host, {
    text: restored ? draft.text : area.value,
    mode: mode(),
    label: "Source code",
    description: "Escape, then Tab leaves the editor.",
    onChange: (text) => looking || store.change(language.value, text),
    onRun: () => run(),
    onSubmit: () => submit(),
  });
  area.hidden = true;
  host.hidden = false;
  form.querySelector("[data-source-label]").hidden = true;
  // What is shown instead of it is saved over it as soon as somebody writes.
  const aside = !restored && draft !== null && (kept || draft.saved === false) && ![editor.text(), begun.text].includes(draft.text);
  const offered = aside ? store.setAside(language.value, draft) : other;
  if (offered && offered.text !== editor.text()) offer(offered);
  else if (restored) {
    notice.show(`Your draft of ${moment(draft.at)} was restored.`, { "Discard it": () => startAgain(draft.text) });
  }
  if (restored && stored[language.value]?.text !== draft.text) store.change(language.value, draft.text);

  function startAgain(text) {
    editor.setText(begun.text);
    notice.show("The draft was discarded.", { Undo: () => editor.setText(text) });
  }

  /** A text that another window had, or that never reached the server: nothing that was written is lost. */
  function offer(other) {
    const before = editor.text();
    notice.show(`Another text of ${moment(other.at)} is kept in this browser.`, {
      "Show it": () => {
        editor.setText(other.text);
        notice.show("That text is in the editor now.", { Undo: () => editor.setText(before) });
      },
      "Forget it": () => store.forgetOther(language.value),
    });
  }

  function behind(name, newer) {
    if (name !== language.value) return;
    notice.show(`Another window saved a newer draft at ${moment(newer.at)}. Yours is still here and is not saved.`, {
      "Show the newer one": () => {
        // Not what it was when this was found out: people go on writing.
        const mine = editor.text();
        store.settle(name, newer);
        editor.setText(newer.text);
        notice.show("The newer draft is in the editor.", { "Back to mine": () => editor.setText(mine) });
      },
      "Keep mine": () => {
        store.settle(name, newer);
        store.keepOther(name, newer);
        store.change(name, editor.text());
        offer(newer);
      },
    });
  }

  let ran = {};

  function run() {
    flush();
    editor.mark([]);
    ran = { language: language.value, text: editor.text() };
    panel.run(form);
  }

  function flush() {
    area.value = editor.text();
    return store.flush();
  }

  function submit() {
    flush();
    const button = form.querySelector("button[value=submission]");
    if (button.disabled) notice.show(document.getElementById("terms").textContent.trim());
    else form.requestSubmit(button);
  }

  let before = language.value;
  /** What stood in the editor, by language: whoever only looks at the other one finds it again. */
  const left = {};
  language.addEventListener("change", () => {
    store.flush();
    left[before] = editor.text();
    before = language.value;
    editor.setMode(mode());
    // What it offers is about the other language's text.
    notice.hide();
    // Nobody has written it: saved, it would be the newest draft, and the next page would begin with it.
    looking = true;
    editor.setText(left[before] ?? store.read(before).draft?.text ?? starters[before] ?? "");
    looking = false;
    store.look(before, editor.text());
  });

  let handedIn = { what: "", at: 0 };
  form.addEventListener("submit", (event) => {
    flush();
    if (event.submitter?.value === "run") {
      event.preventDefault();
      run();
      return;
    }
    const what = JSON.stringify([language.value, form.elements.lane.value, editor.text()]);
    if (handedIn.what === what && Date.now() - handedIn.at < ON_ITS_WAY_MS) {
      event.preventDefault();
      notice.show("It is being handed in already. If nothing comes of it, try again in a few seconds.");
      return;
    }
    handedIn = { what, at: Date.now() };
    form.elements.request_key.value = keys.keyOf(new FormData(form, event.submitter));
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
    notice.show("The starter is back.", { Undo: () => editor.setText(text) });
  });

  document.querySelector("[data-to-editor]").addEventListener("click", (event) => {
    event.preventDefault();
    editor.view.focus();
  });

  form.querySelector("[data-open-file]").addEventListener("click", () => form.elements.file.click());
  startOpening(form.elements.file, (text, name) => {
    const old = editor.text();
    editor.setText(text);
    notice.show(`${name} is in the editor.`, { Undo: () => editor.setText(old) });
  }, notice);
  addEventListener("pagehide", () => store.part());
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") store.look(language.value, editor.text());
  });
}

/** Says in one line whether the text is safe, and where. */
function stateOf(element) {
  const words = {
    saved: (at) => `Draft saved ${new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })}`,
    saving: () => "Saving the draft …",
    offline: () => "Not saved yet: kept in this browser, tried again",
    refused: (message) => message,
    behind: () => "Not saved: another window is ahead",
  };
  return (state, detail) => {
    element.textContent = words[state](detail);
    element.dataset.state = state;
  };
}

function moment(at) {
  return new Date(at).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
}
