// Shows the lesson.

import { render } from "preact";
import { App } from "./app";
import { Core } from "./core";

const place = document.getElementById("page");
if (place) {
  const core = new Core();
  // Who touches the page may change a number next.
  for (const touch of ["pointerdown", "keydown"]) addEventListener(touch, () => core.start(), { once: true });
  place.textContent = "";
  render(<App core={core} />, place);
}
