// The parameters: norms of weights, gradients and updates of all, and histograms of the chosen one.

import { useState } from "preact/hooks";
import type { Histogram, Parameter, ParameterSnapshot, Run } from "./data";
import { HistogramFigure } from "./histogram";
import { memo } from "./memo";
import { snapshotAt } from "./notches";
import { brief, statistic } from "./numbers";
import { RunName, Runs } from "./runs";
import { shapeText } from "./shapes";
import { TensorView } from "./tensor_view";

interface Props {
  runs: Run[];
  step: number;
}

function ratio({ update, weight }: ParameterSnapshot): string {
  if (!update || !weight || update.norm === null || weight.norm === null || weight.norm === 0) return "–";
  return brief(update.norm / weight.norm);
}

function norm(histogram: Histogram | null | undefined): string {
  return histogram ? statistic(histogram.norm) : "–";
}

function Row({ run, step, parameter }: { run: Run; step: number; parameter: Parameter | undefined }) {
  const found = parameter && snapshotAt(run, step, parameter.snapshots);
  const snapshot = found?.snapshot;
  return (
    <>
      <td class="number">{norm(snapshot?.weight)}</td>
      <td class="number">{norm(snapshot?.gradient)}</td>
      <td class="number">{norm(snapshot?.update)}</td>
      <td class="number">{snapshot ? ratio(snapshot) : "–"}</td>
    </>
  );
}

export const ParametersSection = memo(function ParametersSection({ runs, step }: Props) {
  const parameters = [...new Map(runs.flatMap((run) => run.parameters.map((parameter) => [parameter.name, parameter]))).values()];
  const [name, setName] = useState(parameters[0].name);
  const chosen = (run: Run): Parameter | undefined => run.parameters.find((parameter) => parameter.name === name);
  return (
    <>
      <p class="lead">
        The norm of each parameter, of its gradient and of the update of the step that follows. An update of about a thousandth of the
        weight is usual; much more is a wild step, much less hardly learns. After the last step there is
        neither gradient nor update: move the scrub back.
      </p>
      <div class="scroll tall" tabIndex={0} role="region" aria-label="Norms of the parameters">
        <table class="facts">
          <thead>
            {runs.length > 1 && (
              <tr>
                <td colSpan={2} />
                {runs.map((run, index) => (
                  <th key={index} scope="colgroup" colSpan={4}>
                    <RunName run={run} index={index} />
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
                  <Row key={index} run={run} step={step} parameter={run.parameters.find((other) => other.name === parameter.name)} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h3>{name}</h3>
      <Runs runs={runs}>
        {(run) => {
          const parameter = chosen(run);
          const found = parameter && snapshotAt(run, step, parameter.snapshots);
          if (!found) return <p class="quiet">Nothing was taken at this step.</p>;
          const { weight, gradient, update, values } = found.snapshot;
          return (
            <>
              <div class="histograms">
                <HistogramFigure title="weights" histogram={weight} />
                <HistogramFigure title="gradient" histogram={gradient} />
                <HistogramFigure title="update" histogram={update} />
              </div>
              {values && (
                <details>
                  <summary>The weights themselves</summary>
                  <TensorView name={name} value={values} gradient={null} source={null} />
                </details>
              )}
            </>
          );
        }}
      </Runs>
    </>
  );
});
