// One line above the editor that says what happened, with what can be done about it.

/**
 * @param {HTMLElement} element with `[data-notice-text]` and `[data-notice-actions]`
 * @param {() => void} onAnswered where the focus goes on: the button that had it is gone
 */
export function noticeOf(element, onAnswered) {
  const text = element.querySelector("[data-notice-text]");
  const actions = element.querySelector("[data-notice-actions]");

  function button(label, does) {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "button button--small";
    made.textContent = label;
    made.addEventListener("click", (event) => {
      element.hidden = true;
      does();
      // Not after a finger's tap, which would bring up a keyboard.
      if (event.detail === 0) onAnswered();
    });
    return made;
  }

  return {
    /** @param {Record<string, () => void>} choices label → what it does */
    show(message, choices = {}) {
      text.textContent = message;
      actions.replaceChildren(...Object.entries(choices).map(([label, does]) => button(label, does)));
      element.hidden = false;
    },
    hide() {
      element.hidden = true;
    },
  };
}
