// The walk for the current settings: asks for it again whenever they change.

import { useEffect, useMemo, useState } from "preact/hooks";
import type { Core } from "./core";
import { type Settings, Walk, walkRequest } from "./walk";

export interface Walked {
  walk: Walk | null;
  /** Before the reader's last change; null if there was none at this stop. */
  previous: Walk | null;
  error: string | null;
}

interface Wanted {
  settings: Settings;
  heads: number;
  stop: string;
}

interface State {
  answered: Wanted | null;
  walked: Walked;
  pending: boolean;
}

const nothing: Walked = { walk: null, previous: null, error: null };

/** Without the numbers of another stop that has other heads. */
function shownOf({ answered, walked }: State, { heads, stop }: Wanted): Walked {
  return answered?.stop === stop || walked.walk?.heads === heads ? walked : nothing;
}

/**
 * `pending`: a walk is being computed. No other is asked for meanwhile, and then that of the settings which are the
 * current ones by then: so numbers follow a slider as fast as the library answers.
 */
export function useWalk(core: Core, settings: Settings, heads: number, stop: string): Walked & { pending: boolean } {
  const wanted = useMemo(() => ({ settings, heads, stop }), [settings, heads, stop]);
  const [state, setState] = useState<State>({ answered: null, walked: nothing, pending: false });
  useEffect(() => {
    if (state.pending || state.answered === wanted) return;
    setState((last) => ({ ...last, pending: true }));
    const update = (next: (last: State) => Walked): void => setState((last) => ({ answered: wanted, walked: next(last), pending: false }));
    core
      .ask(walkRequest(settings, heads))
      .then(({ report, error = null }) =>
        update((last) =>
          error === null
            ? { walk: new Walk(report, heads), previous: last.answered?.stop === stop ? last.walked.walk : null, error: null }
            : { ...shownOf(last, wanted), error },
        ),
      )
      .catch((reason: Error) => update((last) => ({ ...shownOf(last, wanted), error: `The library ended with an error: ${reason.message}` })));
  }, [core, wanted, state.pending]);
  return { ...shownOf(state, wanted), pending: state.pending };
}
