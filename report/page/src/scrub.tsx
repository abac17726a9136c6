// The slider through the steps of training, which moves everything on the page.

import { useEffect, useState } from "preact/hooks";
import { useReducedMotion } from "./media";

const secondsPerNotch = 0.7;

interface Props {
  steps: number[];
  notch: number;
  setNotch: (notch: number) => void;
}

export function Scrub({ steps, notch, setNotch }: Props) {
  const still = useReducedMotion();
  const [playing, setPlaying] = useState(false);
  const last = steps.length - 1;
  useEffect(() => {
    if (!playing) return undefined;
    if (still || notch >= last) {
      setPlaying(false);
      return undefined;
    }
    const timer = setTimeout(() => setNotch(notch + 1), secondsPerNotch * 1000);
    return () => clearTimeout(timer);
  }, [playing, still, notch, last]);
  const play = (): void => {
    if (!playing && notch >= last) setNotch(0);
    setPlaying(!playing);
  };
  return (
    <section class="scrub" aria-label="Training">
      <button
        type="button"
        class="play"
        aria-label={playing ? "Stop" : "Play the training"}
        disabled={still}
        title={still ? "Your system asks for little motion: move the slider instead." : undefined}
        onClick={play}
      >
        <svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
          <path d={playing ? "M2 1h3v10H2zM7 1h3v10H7z" : "M2 1l9 5-9 5z"} fill="currentColor" />
        </svg>
      </button>
      <div class="track">
        <input
          type="range"
          aria-label="Step of training"
          min={0}
          max={last}
          step={1}
          value={notch}
          aria-valuetext={`after ${steps[notch]} steps of training, notch ${notch + 1} of ${steps.length}`}
          onInput={(event) => {
            setPlaying(false);
            setNotch(Number(event.currentTarget.value));
          }}
        />
        <div class="notches" aria-hidden="true">
          {steps.map((step) => (
            <i key={step} />
          ))}
        </div>
      </div>
      <output class="step">
        step <b>{steps[notch].toLocaleString("en")}</b>
      </output>
    </section>
  );
}
