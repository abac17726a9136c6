// Shows the lesson.

import { render } from "preact";
import { App } from "./app";
import { Core } from "./core";

const place = document.getElementById("page");
if (place) {
  place.textContent = "";
  render(<App core={new Core()} />, place);
}
