// What somebody wrote and has not handed in, kept in this browser per person, assignment and language.

/** @param {string} scope names person and assignment */
export function drafts(scope) {
  const key = (language) => `draft:${scope}:${language}`;

  function read(language) {
    try {
      return JSON.parse(localStorage.getItem(key(language)));
    } catch {
      return null;
    }
  }

  function write(language, text, at = Date.now()) {
    try {
      localStorage.setItem(key(language), JSON.stringify({ text, at }));
      return true;
    } catch {
      return false;
    }
  }

  function forget(language) {
    try {
      localStorage.removeItem(key(language));
    } catch {
      // Storage is switched off, so there was no draft.
    }
  }

  return { read, write, forget };
}
