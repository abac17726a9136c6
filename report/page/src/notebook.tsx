// The tensors of a notebook, in its order.

import { useState } from "preact/hooks";
import type { Run, Tensor } from "./data";
import { memo } from "./memo";
import { stepsWithValue } from "./notches";
import { Runs } from "./runs";
import { shapeText } from "./shapes";
import { TensorView } from "./tensor_view";

/** Tensors that follow each other in the same section. */
function sectionsOf(tensors: Tensor[]): { title: string; tensors: Tensor[] }[] {
  const sections: { title: string; tensors: Tensor[] }[] = [];
  for (const tensor of tensors) {
    const last = sections[sections.length - 1];
    if (last?.title === tensor.section) last.tensors.push(tensor);
    else sections.push({ title: tensor.section, tensors: [tensor] });
  }
  return sections;
}

/** A tensor that is drawn once it is opened. */
function Entry({ run, tensor }: { run: Run; tensor: Tensor }) {
  const [open, setOpen] = useState(false);
  const graph = tensor.graph === null ? undefined : run.graphs[tensor.graph];
  const { id } = tensor;
  const found = graph && id !== null ? stepsWithValue(run, graph, id).at(-1) : undefined;
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {tensor.name} <span class="quiet">{shapeText(tensor.value.shape)}{tensor.axes.length > 0 && `: ${tensor.axes.join(", ")}`}</span>
      </summary>
      {open && (
        <TensorView
          name={tensor.name}
          value={tensor.value}
          gradient={tensor.gradient}
          axes={tensor.axes}
          rows={tensor.rows}
          columns={tensor.columns}
          source={graph && found && id !== null ? { graph, snapshot: found.snapshot, id } : null}
        />
      )}
    </details>
  );
}

export const NotebookSection = memo(function NotebookSection({ runs }: { runs: Run[] }) {
  return (
    <>
      <p class="lead">What the notebook prints, in its order. Open a tensor, then walk through it with the arrow keys.</p>
      <Runs runs={runs}>
        {(run) =>
          sectionsOf(run.tensors).map(({ title, tensors }, i) => (
            <div key={i} class="tensors">
              {title !== "" && <h3>{title}</h3>}
              {tensors.map((tensor, k) => (
                <Entry key={k} run={run} tensor={tensor} />
              ))}
            </div>
          ))
        }
      </Runs>
    </>
  );
});
