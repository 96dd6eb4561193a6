// Times stand in the course's zone. Where the reader's clock shows something else, theirs is added.
const READER_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

function wall(date, timeZone) {
  return date.toLocaleString("en-GB", { timeZone, weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
}

export function startTimes(root) {
  for (const element of root.querySelectorAll("time[data-zone]")) {
    const date = new Date(element.dateTime);
    const zone = element.dataset.zone;
    if (Number.isNaN(date.getTime()) || wall(date, zone) === wall(date, READER_ZONE)) {
      if (element.dataset.both !== undefined) remember(false);
      delete element.dataset.both;
      continue;
    }
    const theirs = `${wall(date, READER_ZONE)} your time`;
    element.title = theirs;
    if (element.dataset.both === undefined) continue;
    const addition = document.createElement("span");
    addition.className = "yours";
    addition.textContent = theirs;
    element.after(addition);
    delete element.dataset.both;
    remember(true);
  }
}

/** Whether pages are to keep a line free for the reader's times before they are there (theme.js, layout.css). */
function remember(isAway) {
  try {
    if (isAway) localStorage.setItem("away", "1");
    else localStorage.removeItem("away");
  } catch {
    // Storage is switched off: the line comes when it comes.
  }
}
