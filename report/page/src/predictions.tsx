// What the model answers, with its probabilities.

import type { Prediction, Run } from "./data";
import { OfStep } from "./elsewhere";
import { memo } from "./memo";
import { snapshotAt } from "./notches";
import { brief } from "./numbers";
import { Runs } from "./runs";

interface Props {
  runs: Run[];
  step: number;
}

function Card({ run, step, prediction }: { run: Run; step: number; prediction: Prediction }) {
  const found = snapshotAt(run, step, prediction.snapshots);
  const { truth } = prediction;
  const answers = found?.snapshot.answers ?? [];
  const right = truth !== null && answers.length > 0 && answers[0].label === truth;
  return (
    <article class="prediction">
      <h3>{prediction.text}</h3>
      {truth !== null && (
        <p class="quiet">
          truth: <b>{truth}</b>
          {answers.length > 0 && (right ? " ✓ found" : " ✗ not found")}
        </p>
      )}
      {found ? <OfStep of={found.step} step={step} /> : <p class="quiet">Nothing was taken at this step.</p>}
      <ol>
        {answers.map(({ label, probability }, i) => (
          <li key={i} class={label === truth ? "true" : ""}>
            <span class="name">{label}</span>
            <span class="bar" aria-hidden="true">
              <i style={{ width: `${100 * Math.max(0, Math.min(1, probability ?? 0))}%` }} />
            </span>
            <span class="number">{probability === null ? "not finite" : brief(probability)}</span>
          </li>
        ))}
      </ol>
    </article>
  );
}

export const PredictionsSection = memo(function PredictionsSection({ runs, step }: Props) {
  return (
    <>
      <p class="lead">What the model answers at this step, the most probable first.</p>
      <Runs runs={runs}>
        {(run) => (
          <div class="cards">
            {run.predictions.map((prediction, i) => (
              <Card key={i} run={run} step={step} prediction={prediction} />
            ))}
          </div>
        )}
      </Runs>
    </>
  );
});
