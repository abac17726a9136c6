// A matrix as a canvas, one pixel an element, drawn at once.

import { useLayoutEffect, useRef } from "preact/hooks";
import type { Numbers } from "./arrays";
import { type Scale, packed } from "./colors";

export interface Picture {
  rows: number;
  columns: number;
  numbers: Numbers;
  offset: number;
  scale: Scale;
  /** Elements that are left transparent, with their offset. */
  masked?: Numbers | null;
  maskedOffset?: number;
}

function draw(canvas: HTMLCanvasElement, { rows, columns, numbers, offset, scale, masked, maskedOffset = 0 }: Picture): void {
  const context = canvas.getContext("2d");
  if (context === null || rows === 0 || columns === 0) return;
  const image = context.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  const colors = packed(scale);
  const last = scale.colors.length - 1;
  const factor = last / (scale.high - scale.low);
  for (let i = 0; i < pixels.length; ++i) {
    if (masked && masked[maskedOffset + i] !== 0) continue;
    const value = numbers[offset + i];
    const place = Math.round((value - scale.low) * factor);
    pixels[i] = colors[value !== value ? last + 1 : place < 0 ? 0 : place > last ? last : place];
  }
  context.putImageData(image, 0, 0);
}

interface Props {
  picture: Picture;
  name: string;
}

export function Canvas({ picture, name }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { rows, columns, numbers, offset, scale, masked, maskedOffset } = picture;
  useLayoutEffect(() => {
    if (canvas.current) draw(canvas.current, picture);
  }, [rows, columns, numbers, offset, scale, masked, maskedOffset]);
  return <canvas ref={canvas} class="matrix-canvas" width={columns} height={rows} role="img" aria-label={name} />;
}
