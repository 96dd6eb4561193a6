// A request that gets no answer is one that failed: a network may swallow it, or the rest of an answer, without a word.
const ANSWER_MS = 20_000;

/** The answer, all of which is here. */
export async function ask(address, options = {}) {
  const control = new AbortController();
  const timer = setTimeout(() => control.abort(), ANSWER_MS);
  try {
    const answer = await fetch(address, { ...options, signal: control.signal });
    await answer.clone().arrayBuffer();
    return answer;
  } finally {
    clearTimeout(timer);
  }
}
