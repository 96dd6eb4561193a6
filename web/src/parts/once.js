// A form that is on its way is not sent again: a second click on a slow evening would give two late days, or tell a course
// twice. What comes to nothing can be sent again after a while, or when somebody comes back to the page.
const ON_ITS_WAY_MS = 10_000;

export function startOnce() {
  const sent = new Map();
  addEventListener("submit", (event) => {
    const form = event.target;
    const how = event.submitter?.getAttribute("formmethod") ?? form.method;
    if (event.defaultPrevented || how.toLowerCase() !== "post") return;
    const what = JSON.stringify([...new FormData(form, event.submitter)].map(([name, value]) => [name, String(value.name ?? value)]));
    const before = sent.get(form);
    if (before?.what === what && Date.now() - before.at < ON_ITS_WAY_MS) event.preventDefault();
    else sent.set(form, { what, at: Date.now() });
  });
  addEventListener("pageshow", () => sent.clear());
}
