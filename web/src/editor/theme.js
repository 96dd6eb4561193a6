// The editor's looks, from the page's tokens: custom properties reach into its shadow root.
import { HighlightStyle } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

export const highlightStyle = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier, tags.processingInstruction], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string), tags.character], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className), tags.meta], color: "var(--code-name)" },
  { tag: [tags.typeName, tags.standard(tags.variableName)], color: "var(--code-name)" },
  { tag: tags.comment, color: "var(--code-comment)", fontStyle: "italic" },
]);

export const theme = EditorView.theme({
  "&": { height: "100%", color: "var(--ink)", backgroundColor: "var(--surface)", font: "var(--code)" },
  // The host shows the focus, around the line numbers too.
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { font: "inherit", overflow: "auto" },
  ".cm-content": { padding: "0.5rem 0", caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)", borderLeftWidth: "2px" },
  ".cm-gutters": { color: "var(--ink-faint)", backgroundColor: "var(--surface)", border: "none" },
  ".cm-lineNumbers .cm-gutterElement": { minWidth: "3.5ch", padding: "0 0.5rem 0 0.5rem" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--hover) 55%, transparent)" },
  ".cm-activeLineGutter": { color: "var(--ink)", backgroundColor: "transparent" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--accent) 28%, transparent)",
  },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--accent-wash)", outline: "1px solid var(--accent)" },
  ".cm-selectionMatch": { backgroundColor: "var(--code-mark)" },
  ".cm-searchMatch": { backgroundColor: "var(--code-mark)" },
  ".cm-searchMatch-selected": { outline: "2px solid var(--accent)" },
  ".cm-panels": { color: "var(--ink)", backgroundColor: "var(--sunken)", borderColor: "var(--line)" },
  ".cm-panels-bottom": { borderTop: "1px solid var(--line)" },
  ".cm-panel.cm-search": { font: "var(--small)", padding: "0.5rem 0.75rem" },
  ".cm-panel.cm-search label": { fontSize: "inherit" },
  ".cm-textfield": { fontSize: "inherit", border: "1px solid var(--line-strong)", borderRadius: "var(--radius-small)", backgroundColor: "var(--surface)", color: "var(--ink)" },
  ".cm-button": { fontSize: "inherit", border: "1px solid var(--line-strong)", borderRadius: "var(--radius-small)", background: "var(--surface)", color: "var(--ink)" },
  ".cm-tooltip": { border: "1px solid var(--line)", borderRadius: "var(--radius-small)", backgroundColor: "var(--surface)", color: "var(--ink)", font: "var(--small)", boxShadow: "var(--shadow-raised)" },
  ".cm-diagnostic": { maxWidth: "60ch", whiteSpace: "pre-wrap", overflowWrap: "anywhere" },
  ".cm-specialChar": { color: "var(--care)" },
});
