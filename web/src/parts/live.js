// Keeps a region's parts as the server has them. The server sends a part's HTML, made by the same templates as the page,
// only when it changed; parts are the elements with `data-part` inside the region.
import { startTimes } from "./times.js";

const RETRY_MS = 2000;

/** Put new HTML into a part, keeping open what the reader opened and the focus where it was. */
function replace(part, html) {
  const open = [...part.querySelectorAll("details[open][id]")].map((details) => details.id);
  const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
  part.innerHTML = html;
  for (const id of open) {
    const details = document.getElementById(id);
    if (details) details.open = true;
  }
  if (focused) document.getElementById(focused)?.focus();
  startTimes(part);
}

/**
 * Follow a region until the server says that its state is final.
 * @param {HTMLElement} region with `data-live`, the stream's address
 * @param {{onEnd?: () => void}} options
 * @returns a function that stops following
 */
export function startLive(region, { onEnd } = {}) {
  let source = null;
  let retry = 0;
  const notice = region.querySelector("[data-live-lost]");
  const connected = (is) => notice && (notice.hidden = is);

  function stop() {
    clearTimeout(retry);
    source?.close();
  }

  function connect() {
    source = new EventSource(region.dataset.live);
    source.addEventListener("open", () => connected(true));
    source.addEventListener("part", (event) => {
      const { name, html } = JSON.parse(event.data);
      const part = region.querySelector(`[data-part="${CSS.escape(name)}"]`);
      if (part) replace(part, html);
    });
    source.addEventListener("title", (event) => {
      if (region.dataset.title !== undefined) document.title = JSON.parse(event.data);
    });
    source.addEventListener("end", () => {
      stop();
      delete region.dataset.live;
      onEnd?.();
    });
    source.addEventListener("error", () => {
      connected(false);
      // The browser reconnects by itself unless the answer was no stream at all.
      if (source.readyState !== EventSource.CLOSED) return;
      stop();
      retry = setTimeout(connect, RETRY_MS);
    });
  }

  connect();
  addEventListener("pagehide", stop, { once: true });
  return stop;
}
