// The walk for the current settings: asks for it again whenever they change.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Core } from "./core";
import { type Settings, Walk, walkRequest } from "./walk";

export interface Walked {
  walk: Walk | null;
  /** Before the reader's last change; null if there was none at this stop. */
  previous: Walk | null;
  error: string | null;
}

const nothing: Walked = { walk: null, previous: null, error: null };

/** `pending`: the settings have changed, and the answer is not there yet. */
export function useWalk(core: Core, settings: Settings, usualHeads: number, stop: string): Walked & { pending: boolean } {
  const [state, setState] = useState({ of: stop, answered: null as Settings | null, walked: nothing });
  const latest = useRef(0);
  const heads = settings.heads ?? usualHeads;
  /** Without the numbers of another stop that has other heads. */
  const shown = ({ of, walked }: typeof state): Walked => (of === stop || walked.walk?.heads === heads ? walked : nothing);
  useEffect(() => {
    const number = ++latest.current;
    const update = (next: (last: typeof state) => Walked): void => {
      if (number === latest.current) setState((last) => ({ of: stop, answered: settings, walked: next(last) }));
    };
    core
      .ask(walkRequest(settings, usualHeads))
      .then(({ report, error = null }) =>
        update((last) =>
          error === null
            ? { walk: new Walk(report, heads), previous: last.of === stop ? last.walked.walk : null, error: null }
            : { ...shown(last), error },
        ),
      )
      .catch((reason: Error) => update((last) => ({ ...shown(last), error: `The library ended with an error: ${reason.message}` })));
  }, [core, settings, usualHeads, stop]);
  return { ...shown(state), pending: state.answered !== settings };
}
