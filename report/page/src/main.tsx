// Reads the data of this file and shows it.

import { render } from "preact";
import { App, RefusalNotice } from "./app";
import { readReport } from "./data";
import { Refusal } from "./readers";
import { withDistinctTitles } from "./titles";

function page() {
  try {
    const runs = withDistinctTitles(readReport(document.getElementById("data")?.textContent ?? ""));
    document.title = runs.map(({ title }) => title).join(" and ");
    return <App runs={runs} />;
  } catch (error) {
    if (error instanceof Refusal) return <RefusalNotice sentence={error.sentence} />;
    throw error;
  }
}

const place = document.getElementById("page");
if (place) {
  place.textContent = "";
  render(page(), place);
}
