// The heads of a layer as pictures: the weights, and beside them the gradient.

import { useHeads } from "./attention_heads";
import type { Layer, Shown } from "./attention_layers";
import { Canvas } from "./canvas";
import { OfStep } from "./elsewhere";
import { memo } from "./memo";
import { useNear } from "./near";

interface Props {
  layer: Layer;
  shown: Shown;
  step: number;
  chosen: number | null;
  choose: (name: string, head: number) => void;
}

export const AttentionLayer = memo(function AttentionLayer({ layer, shown, step, chosen, choose }: Props) {
  const { near, place } = useNear();
  const { heads: count } = shown.attention;
  const heads = useHeads(shown, layer, near);
  return (
    <div class="layer" ref={place}>
      <h3>{layer.name}</h3>
      <OfStep of={shown.step} step={step} />
      <div class={`heads${count > 6 ? " many" : ""}`}>
        {Array.from({ length: count }, (_, head) => {
          const gradient = heads?.gradientOf(head);
          return (
            <button
              key={head}
              type="button"
              class="head"
              aria-pressed={chosen === head}
              aria-label={`Head ${head} of ${layer.name}`}
              onClick={() => choose(layer.name, head)}
            >
              <span class="pictures">
                {heads && <Canvas picture={heads.weightsOf(head)} name={`weights of head ${head}`} />}
                {gradient && <Canvas picture={gradient} name={`gradient of head ${head}`} />}
              </span>
              <span class="label">head {head}</span>
            </button>
          );
        })}
      </div>
    </div>
  );
});
