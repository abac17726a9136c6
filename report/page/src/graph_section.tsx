// The autograd graph: collapsed by modules, searchable, with a panel for the chosen value.

import { useMemo, useState } from "preact/hooks";
import type { Graph, Run } from "./data";
import { OfStep } from "./elsewhere";
import { allOpen, boxesOf, firstOpen, mostBoxes, withoutModule } from "./graph_boxes";
import { Diagram } from "./graph_diagram";
import { moduleTree } from "./graph_modules";
import { Outline } from "./graph_outline";
import { memo } from "./memo";
import { snapshotAt } from "./notches";
import { counted } from "./text";
import { ValuePanel } from "./value_panel";

interface Props {
  runs: Run[];
  step: number;
}

function Modules({ open, close }: { open: ReadonlySet<string>; close: (name: string) => void }) {
  if (open.size === 0) return null;
  return (
    <div class="open-modules">
      <span class="quiet">Open modules, choose one to close it:</span>
      {[...open].sort().map((name) => (
        <button
          key={name}
          type="button"
          aria-expanded="true"
          onClick={({ currentTarget: chip }) => {
            // Unless a box takes the focus, the next chip has it.
            ((chip.nextElementSibling ?? chip.previousElementSibling) as HTMLElement).focus();
            close(name);
          }}
        >
          {name} <span aria-hidden="true">×</span>
        </button>
      ))}
    </div>
  );
}

function OneGraph({ run, graph, step }: { run: Run; graph: Graph; step: number }) {
  const root = useMemo(() => moduleTree(graph), [graph]);
  const first = useMemo(() => firstOpen(graph, root), [root]);
  const all = useMemo(() => allOpen(graph, root), [root]);
  const [open, setOpen] = useState<ReadonlySet<string>>(first);
  // What was opened or closed last: its box gets the focus when the boxes are drawn.
  const [goal, setGoal] = useState<number | string | null>(null);
  const [asList, setAsList] = useState(false);
  const [search, setSearch] = useState("");
  const [selected, setSelected] = useState<number | null>(null);
  const boxes = useMemo(() => boxesOf(graph, root, open), [graph, root, open]);
  const found = snapshotAt(run, step, graph.snapshots);
  const snapshot = found?.snapshot ?? null;
  const ops = graph.values.filter(({ kind }) => kind === "op").length;
  const listed = asList || search.trim() !== "";
  const tooMany = boxes.boxes.length > mostBoxes;
  const show = (modules: ReadonlySet<string>, next: number | string | null): void => {
    setOpen(modules);
    setGoal(next);
  };
  return (
    <>
      <p class="lead">
        {counted(ops, "op")}, and {(graph.values.length - ops).toLocaleString("en")} parameters and constants. A box of a module opens;
        a box of an op shows its numbers and formulas. Gradients flow against the arrows.
      </p>
      {found && <OfStep of={found.step} step={step} />}
      <div class="controls">
        <label>
          Search{" "}
          <input
            type="search"
            value={search}
            placeholder="softmax, layers.0, 4x8 …"
            onInput={(event) => {
              setSearch(event.currentTarget.value);
              setGoal(null);
            }}
          />
        </label>
        <button
          type="button"
          aria-pressed={asList}
          onClick={() => {
            setAsList(!asList);
            setGoal(null);
          }}
        >
          List
        </button>
        <button type="button" onClick={() => show(first, null)}>
          Collapse
        </button>
        {all && (
          <button type="button" onClick={() => show(all, null)}>
            Expand all
          </button>
        )}
      </div>
      {!listed && <Modules open={open} close={(name) => show(withoutModule(open, name), name)} />}
      {tooMany && <p class="quiet">More than {mostBoxes} boxes are open, too many to draw: here they are as a list.</p>}
      {listed || tooMany ? (
        <Outline graph={graph} snapshot={snapshot} search={search} selected={selected} select={setSelected} />
      ) : (
        <Diagram
          graph={graph}
          snapshot={snapshot}
          boxes={boxes}
          selected={selected}
          goal={goal}
          openModule={(name, firstValue) => show(new Set(open).add(name), firstValue)}
          select={setSelected}
        />
      )}
      {selected !== null && <ValuePanel run={run} graph={graph} snapshot={snapshot} id={selected} select={setSelected} />}
    </>
  );
}

export const GraphSection = memo(function GraphSection({ runs, step }: Props) {
  const graphs = runs.flatMap((run) => run.graphs.map((graph) => ({ run, graph })));
  const [chosen, setChosen] = useState(0);
  const { run, graph } = graphs[chosen];
  return (
    <>
      {graphs.length > 1 && (
        <label>
          Graph{" "}
          <select value={chosen} onChange={(event) => setChosen(Number(event.currentTarget.value))}>
            {graphs.map((item, i) => (
              <option key={i} value={i}>
                {[runs.length > 1 ? item.run.title : "", item.graph.name || `graph ${i + 1}`].filter(Boolean).join(": ")}
              </option>
            ))}
          </select>
        </label>
      )}
      <OneGraph key={chosen} run={run} graph={graph} step={step} />
    </>
  );
});
