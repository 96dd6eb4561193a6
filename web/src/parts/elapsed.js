// Counts on where the server's number stopped: `data-elapsed` holds the seconds at the moment the page was made.
const since = new WeakMap();

/** As the server's `duration` filter says it. */
function duration(seconds) {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${Math.floor(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function tick() {
  const now = performance.now() / 1000;
  for (const element of document.querySelectorAll("[data-elapsed]")) {
    if (!since.has(element)) since.set(element, now - Number(element.dataset.elapsed));
    element.textContent = duration(now - since.get(element));
  }
}

export function startElapsed() {
  setInterval(tick, 1000);
}
