// The worker: runs the library, which is compiled to WebAssembly, and hands requests on to it.

import createCore from "core";
import { decodedBytes } from "../../../report/page/src/arrays";
import type { FromWorker, ToWorker } from "./core";

type Lesson = Awaited<ReturnType<typeof createCore>>;

let lesson: Promise<Lesson> | null = null;

async function unpacked(base64: string): Promise<Uint8Array> {
  const stream = new Blob([decodedBytes(base64)]).stream().pipeThrough(new DecompressionStream("gzip"));
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
