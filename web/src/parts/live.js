// Keeps a region's parts as the server has them. The server sends a part's HTML, made by the same templates as the page,
// only when it changed; parts are the elements with `data-part` inside the region.
import { ask } from "./ask.js";
import { startScrolling } from "./scrolling.js";
import { startTimes } from "./times.js";

const RETRY_MS = 2000;
const RETRY_AT_MOST_MS = 30_000;

const WRITTEN = "textarea[id], input[id]:not([type=hidden], [type=checkbox], [type=radio], [type=file])";

/** Put new HTML into a part, keeping what was written, open what the reader opened and the focus where it was. */
function replace(part, html) {
  const written = [...part.querySelectorAll(WRITTEN)].filter((field) => field.value !== field.defaultValue);
  const open = [...part.querySelectorAll("details[open][id]")].map((details) => details.id);
  const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
  part.innerHTML = html;
  for (const id of open) {
    const details = document.getElementById(id);
    if (details) details.open = true;
  }
  for (const { id, value } of written) {
    const field = document.getElementById(id);
    if (field) field.value = value;
  }
  if (focused) document.getElementById(focused)?.focus();
  startTimes(part);
  startScrolling(part);
}

async function loginEnded() {
  const answer = await ask("/api/v1/me").catch(() => null);
  return answer?.status === 401;
}

/** No connection will come before somebody logs in. */
function sayLoginEnded(notice) {
  const link = document.createElement("a");
  link.href = `/login?next=${encodeURIComponent(location.pathname)}`;
  link.textContent = "Log in";
  notice.querySelector("span").replaceChildren("Your session has ended; your submissions are not affected. ", link, " to see more.");
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
  let pause = RETRY_MS;
  let over = false;
  const notice = region.querySelector("[data-live-lost]");
  const connected = (is) => notice && (notice.hidden = is);

  function stop() {
    over = true;
    clearTimeout(retry);
    source?.close();
  }

  function connect() {
    source = new EventSource(region.dataset.live);
    source.addEventListener("open", () => {
      pause = RETRY_MS;
      connected(true);
    });
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
    source.addEventListener("error", async () => {
      connected(false);
      // The browser reconnects by itself unless the answer was no stream at all.
      if (source.readyState !== EventSource.CLOSED) return;
      if (await loginEnded()) {
        if (notice) sayLoginEnded(notice);
      } else if (!over) {
        retry = setTimeout(connect, pause);
        pause = Math.min(2 * pause, RETRY_AT_MOST_MS);
      }
    });
  }

  connect();
  addEventListener("pagehide", stop, { once: true });
  return stop;
}
