// What is sent again because its answer was lost has the key that it had, and is stored once. Another text, or the same once
// more after there was an answer, has a new one.
const MEANT = ["mode", "language", "lane", "source"];

const place = (scope, mode) => `sent:${scope}:${mode}`;

function fresh() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * @param {string} scope whose submissions, and to which assignment
 */
export function requestKeys(scope) {
  const sent = {};

  function last(mode) {
    try {
      return sent[mode] ?? JSON.parse(sessionStorage.getItem(place(scope, mode)));
    } catch {
      return null;
    }
  }

  /** The key of what a form holds, kept until there is an answer: this tab may have been shown an error page meanwhile. */
  function keyOf(body) {
    const mode = body.get("mode");
    const what = JSON.stringify(MEANT.map((name) => body.get(name)));
    const before = last(mode);
    sent[mode] = before?.what === what ? before : { what, key: fresh() };
    try {
      sessionStorage.setItem(place(scope, mode), JSON.stringify(sent[mode]));
    } catch {
      // Storage is full or switched off: then this page alone knows.
    }
    return sent[mode].key;
  }

  function answered(mode) {
    delete sent[mode];
    forget(scope, mode);
  }

  return { keyOf, answered };
}

function forget(scope, mode) {
  try {
    sessionStorage.removeItem(place(scope, mode));
  } catch {
    // Storage is switched off, so there was nothing.
  }
}

/** The page of what was handed in is the answer. */
export function startAnswering() {
  const shown = document.querySelector("[data-handed-in]");
  if (shown) forget(shown.dataset.handedIn, shown.dataset.mode);
}
