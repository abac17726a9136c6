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

export function useWalk(core: Core, settings: Settings, usualHeads: number, stop: string): Walked {
  const [walked, setWalked] = useState<Walked>({ walk: null, previous: null, error: null });
  const latest = useRef(0);
  const lastStop = useRef(stop);
  useEffect(() => {
    const isNewStop = lastStop.current !== stop;
    lastStop.current = stop;
    const number = ++latest.current;
    const heads = settings.heads ?? usualHeads;
    core
      .ask(walkRequest(settings, usualHeads))
      .then(({ report, error = null }) => {
        if (number !== latest.current) return;
        setWalked((last) =>
          error === null
            ? { walk: new Walk(report, heads), previous: isNewStop ? null : last.walk, error: null }
            : { ...last, error },
        );
      })
      .catch((reason: Error) => setWalked((last) => ({ ...last, error: `The library ended with an error: ${reason.message}` })));
  }, [core, settings, usualHeads, stop]);
  return walked;
}
