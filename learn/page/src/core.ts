// The library in its worker: a request goes there, and its reply comes back.

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

export class Core {
  private readonly worker: Worker;
  private readonly waiting = new Map<number, { answer: (answer: Answer) => void; fail: (reason: Error) => void }>();
  private last = 0;

  /** Starts the library that this file carries. */
  constructor() {
    const address = URL.createObjectURL(new Blob([textOf("worker")], { type: "text/javascript" }));
    this.worker = new Worker(address);
    URL.revokeObjectURL(address);
    this.worker.onmessage = ({ data }: MessageEvent<FromWorker>) => this.receive(data);
    this.worker.onerror = ({ message }) => this.failAll(message);
    this.send({ core: textOf("core") });
  }

  /** The reply to a request of learn/lesson.hpp. */
  ask(request: object): Promise<Answer> {
    const id = ++this.last;
    return new Promise((answer, fail) => {
      this.waiting.set(id, { answer, fail });
      this.send({ id, request: JSON.stringify(request) });
    });
  }

  private send(message: ToWorker): void {
    this.worker.postMessage(message);
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
  }
}
