// State of what is shown: it begins anew, at once, when `shown` is another.

import { useState } from "preact/hooks";

export function useStateOf<T>(shown: unknown, initial: T): [T, (value: T) => void] {
  const [kept, setKept] = useState({ shown, value: initial });
  return [kept.shown === shown ? kept.value : initial, (value) => setKept({ shown, value })];
}
