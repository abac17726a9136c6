// Scales of colours that the colour-blind can read, as tables of 256 colours, and ink that can be read on them.

type Rgb = [number, number, number];

export interface Scale {
  low: number;
  high: number;
  colors: readonly Rgb[];
}

const steps = 256;

/** The polynomials of d3-scale-chromatic's cividis. */
function cividis(t: number): Rgb {
  const red = -4.54 - t * (35.34 - t * (2381.73 - t * (6402.7 - t * (7024.72 - t * 2710.57))));
  const green = 32.49 + t * (170.73 + t * (52.82 - t * (131.46 - t * (176.58 - t * 67.37))));
  const blue = 81.24 + t * (442.36 - t * (2482.43 - t * (6167.24 - t * (6614.94 - t * 2475.67))));
  return [red, green, blue].map((part) => Math.max(0, Math.min(255, Math.round(part)))) as Rgb;
}

/** Purple for negative numbers, orange for positive ones, and nearly the page's background for zero. */
const diverging = {
  light: [[76, 42, 133], [122, 104, 176], [190, 182, 222], [247, 246, 243], [250, 198, 124], [222, 128, 28], [170, 82, 8]],
  dark: [[204, 190, 255], [138, 122, 190], [72, 62, 104], [30, 31, 36], [102, 60, 14], [194, 112, 24], [255, 194, 120]],
} satisfies Record<string, Rgb[]>;

function interpolated(stops: readonly Rgb[], t: number): Rgb {
  const place = t * (stops.length - 1);
  const from = Math.min(Math.floor(place), stops.length - 2);
  return stops[from].map((part, i) => Math.round(part + (place - from) * (stops[from + 1][i] - part))) as Rgb;
}

function table(color: (t: number) => Rgb): readonly Rgb[] {
  return Array.from({ length: steps }, (_, i) => color(i / (steps - 1)));
}

const shares = table(cividis);
const signs = {
  light: table((t) => interpolated(diverging.light, t)),
  dark: table((t) => interpolated(diverging.dark, t)),
};

/** For shares of 1 up to a largest one. */
export function shareScale(high: number): Scale {
  return { low: 0, high, colors: shares };
}

/** For numbers of both signs up to a size. */
export function signScale(largest: number, dark: boolean): Scale {
  const size = largest > 0 ? largest : 1;
  return { low: -size, high: size, colors: dark ? signs.dark : signs.light };
}

const notANumber: Rgb = [214, 40, 120];

export function colorOf(scale: Scale, value: number): Rgb {
  if (Number.isNaN(value)) return notANumber;
  const t = (value - scale.low) / (scale.high - scale.low);
  return scale.colors[Math.round(Math.max(0, Math.min(1, t)) * (steps - 1))];
}

export function css([red, green, blue]: Rgb): string {
  return `rgb(${red}, ${green}, ${blue})`;
}

/** The luminance of the web's accessibility guidelines. */
function luminance(color: Rgb): number {
  const [red, green, blue] = color.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Black or white, whichever has the larger contrast ratio on `color`. */
export function inkOn(color: Rgb): string {
  const light = luminance(color);
  return 1.05 / (light + 0.05) > (light + 0.05) / 0.05 ? "#fff" : "#000";
}

/** Colours as the bytes of canvases, the last one for what is not a number. */
export function packed({ colors }: Scale): Uint32Array {
  return Uint32Array.from([...colors, notANumber], ([red, green, blue]) => (255 << 24) | (blue << 16) | (green << 8) | red);
}
