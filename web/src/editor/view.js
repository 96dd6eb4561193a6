// The code editor itself. It lives in a shadow root, where CodeMirror adopts its style sheets as objects: with a strict
// content security policy, style elements made by scripts are refused.
import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, Prec } from "@codemirror/state";
import {
  EditorView,
  drawSelection,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { highlightStyle, theme } from "./theme.js";

/** By the name that a language's record has for it. */
const MODES = {
  python: () => import("@codemirror/lang-python").then(({ python }) => python()),
  cpp: () => import("@codemirror/lang-cpp").then(({ cpp }) => cpp()),
};

// Typing over a selection makes Chromium copy the selected text's looks into a style attribute, which the content security
// policy refuses. So the editor replaces the selection itself; handlers such as the one that closes brackets go first.
const typingOverSelection = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { main, ranges } = view.state.selection;
    const text = event.data;
    if (event.inputType !== "insertText" || event.isComposing || !text || main.empty || ranges.length > 1) return false;
    const insert = () =>
      view.state.update(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
    const handlers = view.state.facet(EditorView.inputHandler);
    if (!handlers.some((handle) => handle(view, main.from, main.to, text, insert))) view.dispatch(insert());
    event.preventDefault();
    return true;
  },
});

/**
 * @param {HTMLElement} host
 * @param {{text: string, mode: string, label: string, description: string, onChange: (text: string) => void,
 *          onRun: () => void, onSubmit: () => void}} options
 */
export function makeEditor(host, { text, mode, label, description, onChange, onRun, onSubmit }) {
  const root = host.attachShadow({ mode: "open" });
  const colouring = new Compartment();
  const command = (action) => () => {
    action();
    return true;
  };

  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        lintGutter(),
        lineNumbers(),
        highlightActiveLineGutter(),
        highlightSpecialChars(),
        history(),
        drawSelection(),
        indentUnit.of("    "),
        EditorState.tabSize.of(4),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        highlightActiveLine(),
        highlightSelectionMatches(),
        search(),
        syntaxHighlighting(highlightStyle),
        theme,
        typingOverSelection,
        colouring.of([]),
        Prec.highest(
          keymap.of([
            { key: "Mod-Enter", run: command(onRun) },
            { key: "Mod-Shift-Enter", run: command(onSubmit) },
          ]),
        ),
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, indentWithTab]),
        EditorView.contentAttributes.of({ "aria-label": label, "aria-description": description, spellcheck: "false", tabindex: "0" }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange(update.state.doc.toString());
        }),
      ],
    }),
  });

  let wanted = "";

  async function setMode(name) {
    wanted = name;
    const support = await colours(name);
    if (wanted === name) view.dispatch({ effects: colouring.reconfigure(support) });
  }

  /** What colours a mode; nothing where a network is away, until it is back. */
  async function colours(name) {
    try {
      return (await MODES[name]?.()) ?? [];
    } catch {
      addEventListener("online", () => wanted === name && setMode(name), { once: true });
      return [];
    }
  }

  /** Replace the whole text as one change, which undo takes back. */
  function setText(replacement) {
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: replacement }, selection: { anchor: 0 } });
  }

  /** Mark lines: `[{line, message}]`, counted from 1; lines that are no longer there are left out. */
  function mark(problems) {
    const lines = view.state.doc.lines;
    const diagnostics = problems
      .filter(({ line }) => line >= 1 && line <= lines)
      .map(({ line, message }) => {
        const { from, to } = view.state.doc.line(line);
        return { from, to, severity: "error", message };
      });
    view.dispatch(setDiagnostics(view.state, diagnostics));
  }

  /** Put the cursor at the start of a line, counted from 1. */
  function goTo(number) {
    const { from } = view.state.doc.line(Math.min(Math.max(1, number), view.state.doc.lines));
    view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
    view.focus();
  }

  setMode(mode);
  return { view, goTo, setMode, setText, mark, text: () => view.state.doc.toString() };
}
