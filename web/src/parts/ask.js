// A request that gets no answer is one that failed: a network may swallow it without a word.
const ANSWER_MS = 20_000;

export function ask(address, options = {}) {
  const control = new AbortController();
  const timer = setTimeout(() => control.abort(), ANSWER_MS);
  return fetch(address, { ...options, signal: control.signal }).finally(() => clearTimeout(timer));
}
