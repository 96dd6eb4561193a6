// Buttons that copy the text of the element they name.
const labels = new WeakMap();

export function startCopying() {
  document.addEventListener("click", async (event) => {
    const button = event.target instanceof Element && event.target.closest("[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    const text = source.dataset.text ?? source.textContent;
    // Pressed again, it says for the moment something else than its name.
    if (!labels.has(button)) labels.set(button, button.textContent);
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(source);
      button.textContent = "Selected: press Ctrl+C";
    }
    setTimeout(() => (button.textContent = labels.get(button)), 2000);
  });
}
