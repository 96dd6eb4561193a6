// `?` shows the keys; Escape closes them again, which is the dialog's own doing.

/** Whether a key press is somebody writing. Looks through shadow roots, because the editor lives in one. */
function isWriting(event) {
  const target = event.composedPath()[0];
  return target instanceof HTMLElement && (target.isContentEditable || target.matches("input, textarea, select"));
}

export function startKeys() {
  const dialog = document.getElementById("keys");
  if (!dialog) return;
  for (const opener of document.querySelectorAll("[data-open-keys]")) {
    opener.addEventListener("click", () => dialog.showModal());
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "?" || event.ctrlKey || event.metaKey || event.altKey || isWriting(event) || dialog.open) return;
    event.preventDefault();
    dialog.showModal();
  });
}
