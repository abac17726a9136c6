// The worker: runs the library, which is compiled to WebAssembly, and hands requests on to it.

import createCore from "core";
import type { FromWorker, ToWorker } from "./core";

type Lesson = Awaited<ReturnType<typeof createCore>>;

let lesson: Promise<Lesson> | null = null;

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const native = Uint8Array as unknown as { fromBase64?(text: string): Uint8Array<ArrayBuffer> };
  if (native.fromBase64) return native.fromBase64(base64);
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

async function unpacked(base64: string): Promise<Uint8Array> {
  const stream = new Blob([bytesOf(base64)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function send(message: FromWorker): void {
  postMessage(message);
}

async function receive(message: ToWorker): Promise<void> {
  if ("core" in message) {
    lesson = unpacked(message.core).then((wasmBinary) => createCore({ wasmBinary }));
    await lesson;
    return;
  }
  const core = await lesson;
  if (core !== null) send({ id: message.id, reply: core.ccall("lesson_answer", "string", ["string"], [message.request]) });
}

addEventListener("message", ({ data }: MessageEvent<ToWorker>) => {
  receive(data).catch((error: unknown) => send({ failure: String(error) }));
});
