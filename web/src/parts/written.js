// Whether somebody wrote or chose something else than what the page came with.
const FIELDS = "input:not([type=hidden], [type=file]), textarea, select";

/** What can be written in, of a form or a part of the page. */
export function fieldsOf(root) {
  return [...root.querySelectorAll(FIELDS)];
}

function isChanged(field) {
  if (field instanceof HTMLSelectElement) {
    const began = [...field.options].findIndex((option) => option.defaultSelected);
    return field.selectedIndex !== Math.max(0, began);
  }
  return field.checked !== field.defaultChecked || field.value !== field.defaultValue;
}

export function isWritten(root) {
  return fieldsOf(root).some(isChanged);
}

/** Whether a form holds what nobody has stored; one that was refused came with it and says `data-unsent`. */
export function isUnsent(form) {
  return form.dataset.unsent !== undefined || isWritten(form);
}
