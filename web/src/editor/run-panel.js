// A run's result beside the editor: the form is sent in the background, and the page that answers is where the panel's
// content comes from, so that there is one set of templates.
import { ask } from "../parts/ask.js";
import { startLive } from "../parts/live.js";
import { startScrolling } from "../parts/scrolling.js";
import { startTimes } from "../parts/times.js";
import { startSplitter } from "./splitter.js";

/**
 * @param {HTMLElement} panel
 * @param {{keys: {keyOf: (body: FormData) => string, answered: (mode: string) => void},
 *          onEnd: (frames: {line: number, message: string}[]) => void, onLine: (line: number) => void,
 *          onClose: () => void, bar: HTMLElement, above: HTMLElement}} options
 *   `onEnd` gets the lines to mark once the run has ended; `onLine` is called for a line that somebody wants to see;
 *   `onClose` when the panel was closed. `bar` divides it from `above`
 */
export function runPanel(panel, { keys, onEnd, onLine, onClose, bar, above }) {
  let stop = () => {};
  let sending = false;
  const splitter = startSplitter(bar, panel, above);

  function open() {
    panel.hidden = false;
    splitter.show();
  }

  panel.querySelector("[data-panel-close]").addEventListener("click", () => {
    panel.hidden = true;
    splitter.hide();
    onClose();
  });

  // The listing with numbered lines is on the run's own page; here, a line is one in the editor.
  panel.addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest('a[href^="#L"]');
    if (!link) return;
    event.preventDefault();
    onLine(Number(link.hash.slice(2)));
  });

  function frames() {
    return [...panel.querySelectorAll("[data-frame-line]")].map((frame) => ({
      line: Number(frame.dataset.frameLine),
      message: frame.dataset.frameMessage,
    }));
  }

  function show(page, address) {
    const region = page.querySelector("[data-result]");
    const problem = page.querySelector("[data-form-problem]");
    const title = page.querySelector("h1");
    open();
    const body = panel.querySelector("[data-panel-body]");
    const link = panel.querySelector("[data-panel-link]");
    link.hidden = !region;
    if (region) {
      keys.answered("run");
      link.href = address;
      body.replaceChildren(document.adoptNode(region));
      startTimes(body);
      startScrolling(body);
      if (region.dataset.live) stop = startLive(region, { onEnd: () => onEnd(frames()) });
      else onEnd(frames());
    } else {
      const said = problem ? [problem] : [title, ...page.querySelectorAll("#main .lede")].map(paragraph);
      body.replaceChildren(...said.map((one) => document.adoptNode(one)));
    }
    panel.scrollIntoView({ block: "nearest" });
  }

  const paragraph = (from) => {
    const made = document.createElement("p");
    made.textContent = from.textContent;
    return made;
  };

  async function send(form) {
    stop();
    say("Sending …");
    const body = new FormData(form);
    body.set("mode", "run");
    body.delete("file");
    body.set("request_key", keys.keyOf(body));
    const response = await ask(form.action, { method: "POST", body, headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    show(page, response.url);
  }

  /** A key that is held down, or a second click, is the same run. */
  async function run(form) {
    if (sending) return;
    sending = true;
    await send(form).catch(fail);
    sending = false;
  }

  function say(text) {
    const message = document.createElement("p");
    message.setAttribute("role", "status");
    message.textContent = text;
    open();
    panel.querySelector("[data-panel-link]").hidden = true;
    panel.querySelector("[data-panel-body]").replaceChildren(message);
  }

  function fail() {
    say("The server could not be reached. Your text is safe in this browser; try again in a moment.");
  }

  return { run };
}
