// What somebody writes and has not handed in: kept by the server, per person, assignment and language, and in this browser
// too, for when the server cannot be reached. Every draft counts its revisions: a window that is behind overwrites nothing
// and is told.

import { ask } from "../parts/ask.js";

const SAVE_AFTER_MS = 1500;
const SAVE_AT_LEAST_EVERY_MS = 10_000;
const RETRY_MS = 8000;
/** What `keepalive` lets a page send while it goes. */
const PARTING_BYTES = 60_000;

/** This browser's own copies. `other` is a second one: what a window had that was behind. */
function shelf(scope) {
  const key = (language, which) => `draft:${scope}:${language}${which ? ":other" : ""}`;
  return {
    read(language, other = false) {
      try {
        return JSON.parse(localStorage.getItem(key(language, other)));
      } catch {
        return null;
      }
    },
    write(language, draft, other = false) {
      try {
        localStorage.setItem(key(language, other), JSON.stringify(draft));
        return true;
      } catch {
        return false;
      }
    },
    forget(language, other = false) {
      try {
        localStorage.removeItem(key(language, other));
      } catch {
        // Storage is switched off, so there was nothing.
      }
    },
  };
}

/**
 * @param {{scope: string, address: string, token: string, stored: Record<string, {text: string, revision: number, at: number}>,
 *          onState: (state: "saved" | "saving" | "offline" | "refused" | "behind", detail: string | number) => void,
 *          onBehind: (language: string, newer: {text: string, revision: number, at: number}) => void}} options
 *   `stored` is what the server had when it made the page; `at` is in milliseconds
 */
export function drafts({ scope, address, token, stored, onState, onBehind }) {
  const local = shelf(scope);
  const known = { ...stored };
  const waiting = {};
  let timer = 0;
  let firstChange = 0;
  let sending = null;
  /** What another window has that is ahead, by language: nothing is sent until the writer has chosen. */
  const behind = new Map();
  /** What this window has, by language. What the browser keeps may be another tab's. */
  const written = {};

  const revision = (language) => known[language]?.revision ?? 0;

  /** What to begin with: what the server has, unless this browser kept something that never got there. */
  function read(language) {
    if (language in written) return { draft: { text: written[language], at: Date.now() }, other: null };
    const theirs = known[language] ?? null;
    const mine = local.read(language);
    if (!mine || mine.saved || mine.text === theirs?.text) return { draft: theirs, other: local.read(language, true) };
    // Older pages kept no revision: their drafts began from nothing.
    if ((mine.revision ?? 0) === revision(language)) return { draft: mine, other: local.read(language, true) };
    return { draft: theirs, other: setAside(language, mine) };
  }

  /** Keep a second text, unless a newer one is kept already; returns the one that is. */
  function setAside(language, draft) {
    const there = local.read(language, true);
    if (there && there.at > draft.at) return there;
    local.write(language, draft, true);
    return draft;
  }

  /** Keep what the writer did not choose, whatever else is kept: nothing else has it any more. */
  function keepOther(language, draft) {
    local.write(language, draft, true);
  }

  function keep(language, text, saved) {
    const written = local.write(language, { text, at: Date.now(), revision: revision(language), saved });
    if (!written && !saved) onState("refused", "This browser keeps no copy: its storage is full or switched off.");
  }

  /** Keep this text here at once, and have it saved in a moment. */
  function change(language, text) {
    written[language] = text;
    if (behind.has(language)) {
      local.write(language, { text, at: Date.now() }, true);
      onState("behind", "");
      return;
    }
    keep(language, text, false);
    waiting[language] = text;
    firstChange ||= Date.now();
    clearTimeout(timer);
    timer = setTimeout(flush, Math.min(SAVE_AFTER_MS, Math.max(0, firstChange + SAVE_AT_LEAST_EVERY_MS - Date.now())));
  }

  /** Save what waits, one after the other. */
  function flush() {
    clearTimeout(timer);
    firstChange = 0;
    sending ??= send().finally(() => (sending = null));
    return sending;
  }

  async function send() {
    for (let [language] = Object.keys(waiting); language; [language] = Object.keys(waiting)) {
      const text = waiting[language];
      delete waiting[language];
      if (text === known[language]?.text) {
        onState("saved", known[language].at);
        continue;
      }
      onState("saving", "");
      if (!(await put(language, text))) return;
    }
  }

  /** Whether to go on with what else waits. */
  async function put(language, text) {
    let answer;
    try {
      answer = await ask(`${address}/${language}`, request(text, language));
    } catch {
      return later(language, text);
    }
    if (answer.ok) {
      accept(language, await answer.json());
      if (!(language in waiting)) keep(language, text, true);
      onState("saved", known[language].at);
    } else if (answer.status === 409) return fallBehind(language, text);
    else if (answer.status >= 500 || answer.status === 429) return later(language, text);
    else onState("refused", (await answer.json().catch(() => ({}))).message ?? "The draft could not be saved.");
    return true;
  }

  function later(language, text) {
    waiting[language] ??= text;
    onState("offline", "");
    clearTimeout(timer);
    timer = setTimeout(flush, RETRY_MS);
    return false;
  }

  const request = (text, language) => ({
    method: "PUT",
    headers: { "Content-Type": "application/json", "X-CSRF-Token": token },
    body: JSON.stringify({ text, revision: revision(language) }),
    // It arrives also where the page goes on to the next, as it does when something is submitted.
    keepalive: new Blob([text]).size < PARTING_BYTES,
  });

  function accept(language, draft) {
    known[language] = { text: draft.text, revision: draft.revision, at: Date.parse(draft.saved_at) };
  }

  async function newest() {
    const answer = await ask(address);
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return answer.json();
  }

  async function fallBehind(language, text) {
    const all = await newest().catch(() => null);
    const theirs = all?.find((draft) => draft.language === language);
    // Without the newer one there is nothing to choose from: asked again.
    if (!theirs) return later(language, text);
    // It may be this window's own text: the answer to saving it was lost.
    if (theirs.text === text) {
      accept(language, theirs);
      onState("saved", known[language].at);
    } else tell(language, theirs, written[language] ?? text);
    return true;
  }

  function tell(language, theirs, mine) {
    delete waiting[language];
    if (mine !== known[language]?.text) local.write(language, { text: mine, at: Date.now() }, true);
    // It is kept as the other one; the usual place is for who is ahead.
    if (local.read(language)?.text === mine) local.forget(language);
    behind.set(language, { text: theirs.text, revision: theirs.revision, at: Date.parse(theirs.saved_at) });
    onState("behind", "");
    onBehind(language, behind.get(language));
  }

  /** The writer has seen the newer one: from here on theirs, or their own again, is what is saved. */
  function settle(language, newer) {
    behind.delete(language);
    known[language] = newer;
  }

  /** Whether another window saved something since: asked when somebody comes back to this one. */
  async function look(language, text) {
    if (behind.has(language)) return onBehind(language, behind.get(language));
    if (language in waiting || sending) return;
    const theirs = (await newest().catch(() => [])).find((draft) => draft.language === language);
    if (!theirs || theirs.revision <= revision(language) || language in waiting || sending) return;
    if (theirs.text === text) accept(language, theirs);
    else tell(language, theirs, text);
  }

  /** The page goes: what waits is sent along; in this browser it is kept anyway. */
  function part() {
    for (const [language, text] of Object.entries(waiting)) {
      if (text !== known[language]?.text) fetch(`${address}/${language}`, request(text, language)).catch(() => {});
    }
  }

  addEventListener("online", flush);
  return { read, setAside, keepOther, change, flush, settle, look, part, forgetOther: (language) => local.forget(language, true) };
}
