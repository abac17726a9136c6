// Text of the data as the page shows it.

const hidden = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** `text` with control, bidi and invisible characters as escapes that can be seen. */
export function visible(text: string): string {
  return text.replace(hidden, (character) => {
    if (character === "\n") return "\\n";
    if (character === "\t") return "\\t";
    return "\\u" + character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
  });
}

/** "1 head", "2 heads". */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
