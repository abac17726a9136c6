// The parameters: norms of weights, gradients and updates of all, and histograms of the chosen one.

import { useState } from "preact/hooks";
import type { Histogram, Parameter, ParameterSnapshot, Run } from "./data";
import { OfStep } from "./elsewhere";
import { HistogramFigure } from "./histogram";
import { memo } from "./memo";
import { snapshotAt } from "./notches";
import { brief, statistic } from "./numbers";
import { RunName, Runs } from "./runs";
import { shapeText } from "./shapes";

interface Props {
  runs: Run[];
  step: number;
}

/** What is known of a parameter at a step: after the last step there are no gradients, so they are those of the last that has them. */
interface Known {
  now: ParameterSnapshot;
  step: number;
  moved: ParameterSnapshot | null;
  movedStep: number | null;
}

function knownAt(run: Run, step: number, parameter: Parameter | undefined): Known | null {
  const now = parameter && snapshotAt(run, step, parameter.snapshots);
  if (!now) return null;
  const moved = snapshotAt(run, step, parameter.snapshots.map((snapshot) => (snapshot?.gradient ? snapshot : null)));
  return { now: now.snapshot, step: now.step, moved: moved?.snapshot ?? null, movedStep: moved && moved.step !== now.step ? moved.step : null };
}

function ratio(snapshot: ParameterSnapshot | null): string {
  const { update, weight } = snapshot ?? {};
  return update?.norm != null && weight?.norm ? brief(update.norm / weight.norm) : "–";
}

function norm(histogram: Histogram | null | undefined): string {
  return histogram ? statistic(histogram, "norm") : "–";
}

function Row({ known }: { known: Known | null }) {
  return (
    <>
      <td class="number">{norm(known?.now.weight)}</td>
      <td class="number">{norm(known?.moved?.gradient)}</td>
      <td class="number">{norm(known?.moved?.update)}</td>
      <td class="number">{ratio(known?.moved ?? null)}</td>
    </>
  );
}

export const ParametersSection = memo(function ParametersSection({ runs, step }: Props) {
  const parameters = [...new Map(runs.flatMap((run) => run.parameters.map((parameter) => [parameter.name, parameter]))).values()];
  const [name, setName] = useState(parameters[0].name);
  const known = (run: Run, wanted: string): Known | null =>
    knownAt(run, step, run.parameters.find((parameter) => parameter.name === wanted));
  return (
    <>
      <p class="lead">
        The norm of each parameter, of its gradient and of the update of the step that follows. Gradients are what the optimizer got:
        clipped, where the program clips them, while a curve of their norm is of what they were before. An update of about a thousandth of the
        weight is usual; much more is a wild step, much less hardly learns.
      </p>
      <div class="scroll tall" tabIndex={0} role="group" aria-label="Norms of the parameters">
        <table class="facts">
          <thead>
            {runs.length > 1 && (
              <tr>
                <td colSpan={2} />
                {runs.map((run, index) => (
                  <th key={index} scope="colgroup" colSpan={4}>
                    <RunName run={run} index={index} />
                    <OfStep of={run.steps.findLast((notch) => notch <= step) ?? step} step={step} />
                  </th>
                ))}
              </tr>
            )}
            <tr>
              <th scope="col">parameter</th>
              <th scope="col">shape</th>
              {runs.map((_, index) => (
                <>
                  <th key={`w${index}`} scope="col" class="number">weight</th>
                  <th key={`g${index}`} scope="col" class="number">gradient</th>
                  <th key={`u${index}`} scope="col" class="number">update</th>
                  <th key={`r${index}`} scope="col" class="number">update / weight</th>
                </>
              ))}
            </tr>
          </thead>
          <tbody>
            {parameters.map((parameter) => (
              <tr key={parameter.name} class={parameter.name === name ? "chosen" : ""}>
                <th scope="row">
                  <button type="button" class="link" aria-pressed={parameter.name === name} onClick={() => setName(parameter.name)}>
                    {parameter.name}
                  </button>
                </th>
                <td class="quiet">{shapeText(parameter.shape)}</td>
                {runs.map((run, index) => (
                  <Row key={index} known={known(run, parameter.name)} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h3>{name}</h3>
      <Runs runs={runs}>
        {(run) => {
          const found = known(run, name);
          if (!found) return <p class="quiet">Nothing was taken at this step.</p>;
          const { now, moved, movedStep } = found;
          const when = movedStep === null ? "" : `, step ${movedStep.toLocaleString("en")}`;
          return (
            <>
              <OfStep of={found.step} step={step} />
              <div class="histograms">
                <HistogramFigure title="weights" histogram={now.weight} />
                <HistogramFigure title={`gradient${when}`} histogram={moved?.gradient ?? null} />
                <HistogramFigure title={`update${when}`} histogram={moved?.update ?? null} />
              </div>
              {movedStep !== null && (
                <p class="quiet">No step followed this one, so gradients and updates are those of step {movedStep.toLocaleString("en")}.</p>
              )}
            </>
          );
        }}
      </Runs>
    </>
  );
});
