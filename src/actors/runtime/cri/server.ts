/** Runs the calls that others ask the CRI link for: reads at once, mutating acts one at a time per pod UID, save stops of single containers. */

import { Fences } from '../../../machines/runtime/cri/fence.ts';
import { imageCall } from '../../../machines/runtime/cri/imageCalls.ts';
import type { CriEvent, CriResult } from '../../../machines/runtime/cri/messages.ts';
import { heldMsMax, holdsOn, START_RANKS, STOP_RANKS, StartGate, type Waiting } from '../../../machines/runtime/cri/startGate.ts';
import type { ReplyTo } from '../../../machines/supervision/address.ts';
import type { CriMethod, CriRequest } from '../../../machines/wire/criCalls.ts';
import { CRI_METHODS } from '../../../machines/wire/criMethods.ts';
import { type Clock, type Cri, CriError } from '../../../ports/ports.ts';
import type { PeerCalls } from '../../foundation/client.ts';
import type { OperationMetrics } from './metrics.ts';

type CallEvent = Extract<CriEvent, { type: 'cri.call' }>;
type FenceEvent = Extract<CriEvent, { type: 'cri.fence' }>;
interface Job {
  readonly uid: string;
  readonly incarnation: number | null;
  readonly replyTo: { refuse(reason: string): void; readonly signal: AbortSignal };
  readonly shares: boolean;
  readonly abort: AbortController;
  run(): Promise<void>;
  readonly withdrawn: () => void;
}

const CANCELLED = 1;
const NOT_FOUND = 5;
const UNAVAILABLE = 14;
/**
 * A start that was sent and given up may go on for so long: containerd (seen in 2.1) holds a container for "starting" for ever, and
 * refuses to stop and to remove it, when the caller of its start goes away. Starts end sooner; a runtime that hangs holds up one pod.
 */
const GIVEN_UP_START_MS = 10_000;

export interface ServerOptions {
  cri: Cri;
  clock: Clock;
  metrics: OperationMetrics;
  /** Of the image service. */
  calls: PeerCalls;
  /** Starts of sandboxes and containers that the runtime is asked for at the same time; as many sandboxes are taken down. */
  startsAtOnce: number;
  /** Time that the processors had nothing to do, as a sum of all of them. Absent: they count as idle. */
  processors: { count: number; idleMs?(): number };
  /** Ends every call in flight. */
  signal: AbortSignal;
  /** Whether starts or stops wait for a place, each time that this changes; none do at first. */
  onBusy(busy: boolean): void;
  /** A call found the connection gone: the link should look. */
  onUnavailable(): void;
  /** An error of our own, not of the runtime's: the actor must crash with it. */
  onBroken(error: Error): void;
}

export class CriServer {
  readonly #o: ServerOptions;
  readonly #fences = new Fences<Job>();
  readonly #inFlight = new Map<number, { method: CriMethod; sinceMonoMs: number }>();
  /** One per read or act that has not ended. */
  readonly #live = new Set<AbortController>();
  readonly #gates: readonly StartGate[];
  #nextCall = 0;
  #busy = false;

  constructor(o: ServerOptions) {
    this.#o = o;
    this.#gates = [START_RANKS, STOP_RANKS].map((ranks) => new StartGate(o.startsAtOnce, ranks));
    o.signal.addEventListener('abort', () => {
      for (const abort of this.#live) abort.abort();
    });
  }

  call(event: CallEvent): void {
    const unfenced = event.calls.find((c) => CRI_METHODS[c.method].mutating);
    if (event.uid === undefined) {
      if (unfenced === undefined) this.#read(event);
      else event.replyTo.refuse(`${unfenced.method} changes a pod and was sent without the pod's UID: nothing was done`);
      return;
    }
    const shares = event.calls.every((c) => c.method === 'StopContainer');
    this.#submit({ uid: event.uid, incarnation: event.incarnation ?? null, shares }, event.replyTo, (signal) =>
      this.#runAll(event, signal, event.replyTo),
    );
  }

  fence(event: FenceEvent): void {
    this.#submit({ uid: event.uid, incarnation: event.incarnation, shares: false }, event.replyTo, () => {
      event.replyTo({ monoMs: this.#o.clock.monoMs() });
      return Promise.resolve();
    });
  }

  /** The oldest call without an answer, for the actor's note; undefined when none is in flight. */
  oldest(): { method: CriMethod; ageMs: number; inFlight: number } | undefined {
    for (const { method, sinceMonoMs } of this.#inFlight.values()) {
      return { method, ageMs: this.#o.clock.monoMs() - sinceMonoMs, inFlight: this.#inFlight.size };
    }
    return undefined;
  }

  #read(event: CallEvent): void {
    const abort = this.#abortWith(event.replyTo.signal);
    this.#detach(this.#runAll(event, abort.signal, event.replyTo).finally(() => this.#live.delete(abort)));
  }

  #submit(of: Pick<Job, 'uid' | 'incarnation' | 'shares'>, replyTo: Job['replyTo'], work: (signal: AbortSignal) => Promise<void>): void {
    if (replyTo.signal.aborted) return;
    const abort = this.#abortWith(replyTo.signal);
    const withdrawn = () => {
      if (this.#fences.withdraw(job)) this.#live.delete(abort);
    };
    const job: Job = { ...of, replyTo, abort, withdrawn, run: () => work(abort.signal) };
    // While queued, an asker that gave up leaves the queue; while running, its signal cancels the calls.
    replyTo.signal.addEventListener('abort', withdrawn, { once: true });
    const { start, refuse } = this.#fences.submit(job);
    for (const { job: refused, reason } of refuse) {
      refused.replyTo.signal.removeEventListener('abort', refused.withdrawn);
      this.#live.delete(refused.abort);
      refused.replyTo.refuse(reason);
    }
    this.#start(start);
  }

  #start(jobs: readonly Job[]): void {
    for (const job of jobs) {
      job.replyTo.signal.removeEventListener('abort', job.withdrawn);
      const ended = () => {
        this.#live.delete(job.abort);
        this.#start(this.#fences.settled(job));
      };
      this.#detach(job.run().finally(ended));
    }
  }

  /** Aborted with its asker, or with this server. */
  #abortWith(asker: AbortSignal): AbortController {
    const abort = new AbortController();
    if (asker.aborted || this.#o.signal.aborted) abort.abort();
    else asker.addEventListener('abort', () => abort.abort(), { once: true });
    this.#live.add(abort);
    return abort;
  }

  #detach(work: Promise<void>): void {
    work.catch((error: unknown) => this.#o.onBroken(error instanceof Error ? error : new Error(String(error))));
  }

  async #runAll(event: CallEvent, signal: AbortSignal, replyTo: ReplyTo<readonly CriResult[]>): Promise<void> {
    // All settle, whatever happens to each: only then may the next act of this pod begin.
    replyTo(await Promise.all(event.calls.map((c) => this.#one(c, event.uid, signal))));
  }

  /** One call, when it is its turn; its deadline begins then. */
  async #one({ method, request, timeoutMs }: CallEvent['calls'][number], pod: string | undefined, signal: AbortSignal): Promise<CriResult> {
    const gate = this.#gates.find((g) => g.guards(method));
    if (gate === undefined) return this.#call(method, request, timeoutMs, signal);
    const leave = await this.#place(gate, { method, pod }, signal);
    if (leave === undefined) {
      return { ok: false, error: { method, code: CANCELLED, outcome: 'failed', details: 'given up before it was its turn' } };
    }
    try {
      return await this.#call(method, request, timeoutMs, signal);
    } finally {
      leave();
    }
  }

  /** Waits for a place; gives what ends it, at the latest {@link heldMsMax} later. Undefined: the asker gave up. */
  #place(gate: StartGate, { method, pod }: Pick<Waiting, 'method' | 'pod'>, signal: AbortSignal): Promise<(() => void) | undefined> {
    const { clock } = this.#o;
    return new Promise((resolve) => {
      const givenUp = () => {
        if (!gate.withdraw(waiting)) return;
        resolve(undefined);
        this.#publishBusy();
      };
      const waiting: Waiting = {
        method,
        pod,
        go: () => {
          signal.removeEventListener('abort', givenUp);
          const idleShare = this.#idleShare();
          const fromMonoMs = clock.monoMs();
          let held = true;
          const leave = () => {
            if (!held) return;
            held = false;
            clock.clearTimeout(timer);
            gate.leave(waiting);
            this.#publishBusy();
          };
          const late = () => {
            if (holdsOn(method, { ms: clock.monoMs() - fromMonoMs, idleShare: idleShare() })) {
              timer = clock.setTimeout(late, heldMsMax(method));
            } else leave();
          };
          let timer = clock.setTimeout(late, heldMsMax(method));
          resolve(leave);
        },
      };
      signal.addEventListener('abort', givenUp, { once: true });
      if (signal.aborted) resolve(undefined);
      else gate.enter(waiting);
      this.#publishBusy();
    });
  }

  /** Gives the share of the processors' time since now in which they had nothing to do. */
  #idleShare(): () => number {
    const { processors, clock } = this.#o;
    const [fromMs, idleMs] = [clock.monoMs(), processors.idleMs?.()];
    return () => {
      if (idleMs === undefined || processors.idleMs === undefined) return 1;
      return (processors.idleMs() - idleMs) / (Math.max(1, clock.monoMs() - fromMs) * processors.count);
    };
  }

  #publishBusy(): void {
    const busy = this.#gates.some((g) => g.waiting() > 0);
    if (busy === this.#busy) return;
    this.#busy = busy;
    this.#o.onBusy(busy);
  }

  /** Aborted {@link GIVEN_UP_START_MS} after its asker gave up, with this server at once. */
  #lasting(given: AbortSignal): { signal: AbortSignal; end(): void } {
    const { clock, signal: own } = this.#o;
    const abort = new AbortController();
    const now = () => abort.abort();
    let timer: unknown;
    const later = () => {
      timer ??= clock.setTimeout(now, GIVEN_UP_START_MS);
    };
    own.addEventListener('abort', now, { once: true });
    given.addEventListener('abort', later, { once: true });
    if (own.aborted) now();
    else if (given.aborted) later();
    return {
      signal: abort.signal,
      end: () => {
        own.removeEventListener('abort', now);
        given.removeEventListener('abort', later);
        if (timer !== undefined) clock.clearTimeout(timer);
      },
    };
  }

  async #call(method: CriMethod, request: unknown, timeoutMs: number | null, signal: AbortSignal): Promise<CriResult> {
    const id = this.#nextCall++;
    const sinceMonoMs = this.#o.clock.monoMs();
    this.#inFlight.set(id, { method, sinceMonoMs });
    let ok = true;
    const lasting = method === 'StartContainer' ? this.#lasting(signal) : undefined;
    try {
      // The request's type was checked against its method where it was written (actors/runtime/client.ts).
      const ask = () => this.#o.cri.call(method, request as CriRequest<typeof method>, { timeoutMs, signal: lasting?.signal ?? signal });
      const about = imageCall(method, request);
      return { ok: true, value: await (about === null ? ask() : this.#o.calls.during(about.of, ask, { signal, secrets: about.secrets })) };
    } catch (error) {
      if (!(error instanceof CriError)) throw error;
      if (error.code === NOT_FOUND && CRI_METHODS[method].notFoundIsDone) return { ok: true, value: {} };
      ok = false;
      if (error.code === UNAVAILABLE) this.#o.onUnavailable();
      return { ok: false, error: { method, code: error.code, outcome: error.outcome, details: error.details } };
    } finally {
      lasting?.end();
      this.#inFlight.delete(id);
      this.#o.metrics.ended(method, (this.#o.clock.monoMs() - sinceMonoMs) / 1000, ok);
    }
  }
}
