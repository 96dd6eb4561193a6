// A page that says `data-again="10"` is fetched again every ten seconds, as long as it says so and somebody looks at it.
// What is open stays open, the focus stays where it is. Without scripts the page reloads itself (a meta element).
import { ask } from "./ask.js";
import { startTimes } from "./times.js";

function take(main, fresh) {
  const open = [...main.querySelectorAll("details[open][id]")].map((details) => details.id);
  const focused = main.contains(document.activeElement) ? document.activeElement.id : "";
  main.replaceChildren(...fresh.childNodes);
  for (const id of open) {
    const details = document.getElementById(id);
    if (details) details.open = true;
  }
  if (focused) document.getElementById(focused)?.focus();
  startTimes(main);
}

async function look(main) {
  const answer = await ask(location.href, { headers: { accept: "text/html" } });
  // A login that ended, or an error: what is there stays, and a person will look again.
  if (!answer.ok || answer.redirected) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
  if (fresh) take(main, fresh);
}

export function startAgain() {
  const main = document.getElementById("main");
  const wait = () => {
    const seconds = Number(main?.querySelector("[data-again]")?.dataset.again);
    if (!(seconds > 0)) return;
    setTimeout(async () => {
      // Not while somebody types or chooses.
      if (!document.hidden && !main.querySelector(":is(input, select, textarea):focus")) await look(main).catch(() => {});
      wait();
    }, seconds * 1000);
  };
  wait();
}
