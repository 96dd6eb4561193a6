// A chosen file opens into the editor instead of being sent on its own.
const MAX_BYTES = 2 ** 20;

export function startOpening(input, open, notice) {
  input.addEventListener("change", async () => {
    const file = input.files[0];
    if (!file) return;
    input.value = "";
    if (file.size > MAX_BYTES) return notice.show(`${file.name} is larger than 1 MiB, which is the most that is accepted.`);
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
      if (text.includes("\0")) throw new TypeError("binary");
      open(text, file.name);
    } catch {
      notice.show(`${file.name} is not text in UTF-8.`);
    }
  });
}
