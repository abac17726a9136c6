// The whole page: the headline, the scrub that moves everything, and the sections that the data has.

import { Component, type ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { AttentionSection } from "./attention";
import { CurvesSection } from "./curves";
import type { Run } from "./data";
import { FactsSection } from "./facts";
import { GraphSection } from "./graph_section";
import { Headline } from "./headline";
import { NotebookSection } from "./notebook";
import { allSteps } from "./notches";
import { ParametersSection } from "./parameters";
import { PredictionsSection } from "./predictions";
import { ProfileSection } from "./profile";
import { Refusal } from "./readers";
import { Scrub } from "./scrub";

interface Section {
  id: string;
  title: string;
  has: (run: Run) => boolean;
  show: (runs: Run[], step: number) => ComponentChildren;
}

const isDescribed = (run: Run): boolean => run.options.size > 0 || run.versions.size > 0 || run.seed !== "" || run.program !== "";

const sections: Section[] = [
  {
    id: "curves",
    title: "Curves",
    has: (run) => run.curves.length > 0,
    show: (runs, step) => <CurvesSection runs={runs} step={step} />,
  },
  {
    id: "attention",
    title: "Attention",
    has: (run) => run.attention.length > 0,
    show: (runs, step) => <AttentionSection runs={runs} step={step} />,
  },
  {
    id: "predictions",
    title: "Predictions",
    has: (run) => run.predictions.length > 0,
    show: (runs, step) => <PredictionsSection runs={runs} step={step} />,
  },
  {
    id: "parameters",
    title: "Parameters",
    has: (run) => run.parameters.length > 0,
    show: (runs, step) => <ParametersSection runs={runs} step={step} />,
  },
  {
    id: "graph",
    title: "Graph",
    has: (run) => run.graphs.length > 0,
    show: (runs, step) => <GraphSection runs={runs} step={step} />,
  },
  { id: "tensors", title: "Notebook", has: (run) => run.tensors.length > 0, show: (runs) => <NotebookSection runs={runs} /> },
  { id: "profile", title: "Profile", has: (run) => run.profile !== null, show: (runs) => <ProfileSection runs={runs} /> },
  { id: "options", title: "Options", has: isDescribed, show: (runs) => <FactsSection runs={runs} /> },
];

function Report({ runs }: { runs: Run[] }) {
  const steps = useMemo(() => allSteps(runs), [runs]);
  const [notch, setNotch] = useState(steps.length - 1);
  const step = steps[notch] ?? 0;
  const shown = sections.filter(({ has }) => runs.some(has));
  return (
    <>
      <Headline runs={runs} />
      <div class="bar-top">
        <nav aria-label="Sections">
          {shown.map(({ id, title }) => (
            <a key={id} href={`#${id}`}>
              {title}
            </a>
          ))}
        </nav>
        {steps.length > 1 && <Scrub steps={steps} notch={notch} setNotch={setNotch} />}
      </div>
      <main>
        {shown.map(({ id, title, show }) => (
          <section key={id} id={id} aria-labelledby={`${id}-title`} class="part">
            <h2 id={`${id}-title`}>{title}</h2>
            {show(runs, step)}
          </section>
        ))}
      </main>
      <footer>
        <p>This file shows itself: it loads nothing and sends nothing. A number that you choose has the bits of the run, others are rounded.</p>
      </footer>
    </>
  );
}

export function RefusalNotice({ sentence }: { sentence: string }) {
  return (
    <main class="refusal">
      <h1>This report cannot be shown</h1>
      <p role="alert">{sentence}</p>
    </main>
  );
}

/** Shows the report, or in one sentence why it cannot be shown, also if that comes out only later. */
export class App extends Component<{ runs: Run[] }, { sentence: string | null }> {
  override state = { sentence: null };

  override componentDidCatch(error: unknown): void {
    this.setState({ sentence: error instanceof Refusal ? error.sentence : `The page met an error of its own: ${String(error)}.` });
  }

  override render({ runs }: { runs: Run[] }, { sentence }: { sentence: string | null }) {
    return sentence === null ? <Report runs={runs} /> : <RefusalNotice sentence={sentence} />;
  }
}
