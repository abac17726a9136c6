// The library: a request goes to its worker, and the reply comes back. That of the first stops is in the page.

export interface Answer {
  error?: string;
  report?: unknown;
  done?: number;
  losses?: (number | null)[];
  lr?: number;
  grad_norm?: number | null;
  finished?: boolean;
  questions?: { hidden: number; clue: number }[];
}

/** What the worker is sent: first the library, by gzip and in base64, then requests. */
export type ToWorker = { core: string } | { id: number; request: string };
export type FromWorker = { id: number; reply: string } | { failure: string };

function textOf(id: string): string {
  return document.getElementById(id)?.textContent ?? "";
}

function post(worker: Worker, message: ToWorker): void {
  worker.postMessage(message);
}

export class Core {
  private worker: Worker | null = null;
  private readonly waiting = new Map<number, { answer: (answer: Answer) => void; fail: (reason: Error) => void }>();
  private last = 0;
  private readonly known = textOf("first").split("\n");

  /** The reply to a request of learn/lesson.hpp. */
  async ask(asked: object): Promise<Answer> {
    const request = JSON.stringify(asked);
    const [known, reply] = this.known;
    if (request === known) return JSON.parse(reply) as Answer;
    const worker = this.start();
    const id = ++this.last;
    return new Promise((answer, fail) => {
      this.waiting.set(id, { answer, fail });
      post(worker, { id, request });
    });
  }

  /** The worker, with the library that this file carries. */
  start(): Worker {
    if (this.worker) return this.worker;
    const address = URL.createObjectURL(new Blob([textOf("worker")], { type: "text/javascript" }));
    const worker = (this.worker = new Worker(address));
    URL.revokeObjectURL(address);
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => this.receive(data);
    worker.onerror = ({ message }) => this.failAll(message);
    post(worker, { core: textOf("core") });
    return worker;
  }

  private receive(message: FromWorker): void {
    if ("failure" in message) {
      this.failAll(message.failure);
      return;
    }
    const { answer } = this.waiting.get(message.id) ?? {};
    this.waiting.delete(message.id);
    answer?.(JSON.parse(message.reply) as Answer);
  }

  private failAll(why: string): void {
    for (const { fail } of this.waiting.values()) fail(new Error(why));
    this.waiting.clear();
    this.worker?.terminate();
    this.worker = null; // the next request starts another
  }
}
