// Says of numbers that the file holds rounded ones.

import type { StoredArray } from "./arrays";

export function Rounded({ array }: { array: StoredArray }) {
  return array.dtype === "u16" ? <span class="quiet"> (rounded to 16 bits to keep the file small)</span> : null;
}
