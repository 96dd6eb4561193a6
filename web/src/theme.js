// Runs before the first paint, so that a chosen theme never flashes the other one.
document.documentElement.dataset.js = "";
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  // The reader's times were added on the last page: this one keeps the room for them.
  if (localStorage.getItem("away")) document.documentElement.dataset.away = "";
} catch {
  // Storage is switched off: the system's theme it is.
}
