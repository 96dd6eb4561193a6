// The button that goes from the system's theme to light to dark and round again.
const NEXT = { system: "light", light: "dark", dark: "system" };

function current() {
  return document.documentElement.dataset.theme ?? "system";
}

function show(button) {
  const theme = current();
  button.dataset.theme = theme;
  const label = `Theme: ${theme}. Switch to ${NEXT[theme]}.`;
  button.setAttribute("aria-label", label);
  button.title = label;
}

function choose(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    if (theme === "system") localStorage.removeItem("theme");
    else localStorage.setItem("theme", theme);
  } catch {
    // Storage is switched off: the choice lasts for this page.
  }
}

export function startThemeToggle() {
  for (const button of document.querySelectorAll("[data-theme-toggle]")) {
    show(button);
    button.addEventListener("click", () => {
      choose(NEXT[current()]);
      show(button);
    });
  }
}
