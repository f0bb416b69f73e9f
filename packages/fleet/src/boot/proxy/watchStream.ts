/** A watch through the proxy: what the API server sends, event by event, later or cut short. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { ApiRequest } from '../../proxy/request.ts';
import type { ApiTrouble, RunningWatch, Verdict } from '../../proxy/trouble.ts';
import { cut, type Res } from './exchange.ts';
import { expiredFrame, type Format, Frames, formatOf } from './frames.ts';

export interface WatchOptions {
  request: ApiRequest;
  from: IncomingMessage;
  res: Res;
  trouble: ApiTrouble;
  clock: Clock;
}

/** What waits here; the rest waits at the API server, which ends a watch that it cannot write to. */
const WAITING_BYTES_MAX = 4 * 1024 * 1024;

interface Waiting {
  frame: Buffer;
  dueMs: number;
}

export class WatchStream implements RunningWatch {
  readonly request: ApiRequest;
  readonly #o: WatchOptions;
  readonly #format: Format;
  readonly #frames: Frames;
  /** Nothing goes on while it lasts. */
  #heldBy: string | undefined;
  #waiting: Waiting[] = [];
  #bytes = 0;
  #timer: unknown;
  /** The client does not read for now. */
  #isFull = false;
  #isOver = false;

  constructor(o: WatchOptions) {
    this.#o = o;
    this.request = o.request;
    this.#format = formatOf(o.from.headers['content-type'] ?? '', o.from.headers['content-encoding']);
    this.#frames = new Frames(this.#format);
  }

  run({ heldBy, ends }: Verdict): void {
    const { from, res, trouble, clock } = this.#o;
    if (ends !== undefined) {
      this.end(ends);
      return;
    }
    const forget = trouble.watching(this);
    res.once('close', () => {
      forget();
      this.#isOver = true;
      this.#waiting = [];
      clock.clearTimeout(this.#timer);
      from.destroy();
    });
    res.on('drain', () => {
      this.#isFull = false;
      this.#write();
    });
    if (heldBy !== undefined && trouble.isActive(heldBy)) this.#heldBy = heldBy;
    from.on('data', (chunk: Buffer) => this.#take(chunk));
    from.once('error', () => cut(res));
    from.once('end', () => this.#write());
  }

  end(how: 'expired' | 'closed'): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { from, res } = this.#o;
    const last = how === 'expired' ? expiredFrame(this.#format) : null;
    if (last === null) res.end();
    else res.end(last);
    from.destroy();
  }

  /** What was late is due. */
  release(fault: string): void {
    if (this.#heldBy === fault) this.#heldBy = undefined;
    for (const it of this.#waiting) it.dueMs = 0;
    this.#write();
  }

  #take(chunk: Buffer): void {
    const { trouble, clock, res } = this.#o;
    try {
      for (const frame of this.#frames.push(chunk)) {
        const dueMs = Math.max(clock.monoMs() + (trouble.lagOf(this.request)?.ms ?? 0), this.#waiting.at(-1)?.dueMs ?? 0);
        this.#waiting.push({ frame, dueMs });
        this.#bytes += frame.length;
      }
    } catch {
      cut(res);
      return;
    }
    this.#write();
  }

  /** What is due, as far as the client reads. */
  #write(): void {
    const { from, res, clock } = this.#o;
    if (this.#isOver) return;
    let sent = 0;
    const nowMs = clock.monoMs();
    for (const { frame, dueMs } of this.#waiting) {
      if (this.#heldBy !== undefined || this.#isFull || dueMs > nowMs) break;
      this.#isFull = !(res as NodeJS.WritableStream).write(frame);
      this.#bytes -= frame.length;
      sent += 1;
    }
    this.#waiting.splice(0, sent);
    if (this.#bytes > WAITING_BYTES_MAX) from.pause();
    else if (from.isPaused()) from.resume();
    const [next] = this.#waiting;
    clock.clearTimeout(this.#timer);
    if (next === undefined && from.readableEnded) this.end('closed');
    else if (next !== undefined && next.dueMs > nowMs) this.#timer = clock.setTimeout(() => this.#write(), next.dueMs - nowMs);
  }
}
