// The heads of a layer as pictures: the weights, and beside them the gradient.

import { useHeads } from "./attention_heads";
import { Canvas } from "./canvas";
import type { Attention, AttentionSnapshot } from "./data";
import { memo } from "./memo";
import { useNear } from "./near";

interface Props {
  attention: Attention;
  snapshot: AttentionSnapshot;
  chosen: number | null;
  choose: (attention: Attention, head: number) => void;
}

export const AttentionLayer = memo(function AttentionLayer({ attention, snapshot, chosen, choose }: Props) {
  const { near, place } = useNear();
  const heads = useHeads(attention, snapshot, near);
  return (
    <div class="layer" ref={place}>
      <h4>{attention.module || "attention"}</h4>
      <div class={`heads${attention.heads > 6 ? " many" : ""}`}>
        {Array.from({ length: attention.heads }, (_, head) => {
          const gradient = heads?.gradientOf(head);
          return (
            <button
              key={head}
              type="button"
              class="head"
              aria-pressed={chosen === head}
              aria-label={`Head ${head} of ${attention.module}`}
              onClick={() => choose(attention, head)}
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
