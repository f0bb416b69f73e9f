/** The way from one daemon to the simulated runtime: delays, refusals, lost answers, outages, hints that go missing. */

import type { RuntimeHint } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { CriMethod, CriRequest, CriResponse } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { CRI_METHODS } from '@actorlet/kubelet/machines/wire/criMethods.ts';
import { type Clock, type Cri, CriError } from '@actorlet/kubelet/ports/ports.ts';
import type { SimRng } from '../rng.ts';
import type { Power } from '../time.ts';
import type { CallSeen, HookSeen, RuntimeDaemon, SimRuntime, Verdict } from './types.ts';

/** The command of a hook of the simulation: this word, which hook, how many ms it takes, and whether the first instance fails it. */
export const HOOK_COMMAND = 'hook';
/** A connection without life is given up after this long, whatever the call's own deadline. */
const LOST_AFTER_MS = 60_000;
export const UNAVAILABLE = 14;
const CANCELLED = 1;
const DEADLINE = 4;
const UNIMPLEMENTED = 12;
const UNKNOWN = 2;
const INTERNAL = 13;

/** What calls share, whichever daemon makes them. */
export interface RuntimeServer {
  /** Read at each call and hint. */
  readonly runtime: SimRuntime;
  readonly clock: Clock;
  latencyMs(): number;
  readonly hooks: HookSeen[];
  /** Decides what becomes of a call that nobody waits for any more. */
  readonly abandoned: SimRng;
  /** Ends each call on its way. */
  readonly inFlight: Set<(error: CriError) => void>;
  isDown: boolean;
  /** Counts the outages. */
  epoch: number;
  underWay: number;
  /** What an answer says while the runtime has announced an end and not yet written it down. */
  lagging(method: CriMethod, value: unknown): unknown;
}

export function runtimeClient(server: RuntimeServer, daemon: RuntimeDaemon): Cri {
  const client = server.runtime.hollow.connect();
  return {
    call: <M extends CriMethod>(method: M, req: CriRequest<M>, opts: CallOptions) =>
      new Promise<CriResponse<M>>((resolve, reject) => {
        if (daemon.power.on) new RuntimeCall<M>(server, { daemon, client, method, req, opts, resolve, reject }).begin();
      }),
    async hints(signal) {
      await wait(server.clock, server.latencyMs());
      if (server.isDown) throw failed('GetContainerEvents', UNAVAILABLE, 'connection refused');
      if (server.runtime.trouble.noHints) throw failed('GetContainerEvents', UNIMPLEMENTED, 'unknown method GetContainerEvents');
      const { via, stream } = await client.hints(signal);
      return { via, stream: faulty(server, daemon.power, stream) };
    },
    reconnect: () => client.reconnect(),
    close: () => client.close(),
  };
}

interface CallOptions {
  timeoutMs: number | null;
  signal: AbortSignal;
}

interface CallMade<M extends CriMethod> {
  daemon: RuntimeDaemon;
  client: Cri;
  method: M;
  req: CriRequest<M>;
  opts: CallOptions;
  resolve(value: CriResponse<M>): void;
  reject(error: unknown): void;
}

/** One for each call: what a world that is over still waits for must not be held by those after it. */
const unending = (): AbortSignal => new AbortController().signal;

function wait(clock: Clock, ms: number): Promise<void> | undefined {
  return ms <= 0 ? undefined : new Promise<void>((wake) => void clock.setTimeout(wake, ms));
}

function failed(method: string, code: number, details: string): CriError {
  return new CriError({ method, code, outcome: 'failed', details });
}

/** One call: it ends once, with its answer, its deadline, its caller or its connection. */
class RuntimeCall<M extends CriMethod> {
  readonly #server: RuntimeServer;
  readonly #o: CallMade<M>;
  readonly #seen: CallSeen;
  readonly #mutating: boolean;
  #hook: HookSeen | null = null;
  #open = true;
  #timer: unknown;

  constructor(server: RuntimeServer, o: CallMade<M>) {
    this.#server = server;
    this.#o = o;
    this.#seen = { method: o.method, req: o.req, boot: o.daemon.boot };
    this.#mutating = CRI_METHODS[o.method].mutating;
  }

  begin(): void {
    const { method, req, opts, reject } = this.#o;
    const server = this.#server;
    if (opts.signal.aborted) {
      reject(failed(method, CANCELLED, 'cancelled before it was sent'));
      return;
    }
    this.#report();
    const verdict = server.runtime.trouble.verdict(method, req);
    this.#armTimer(verdict);
    opts.signal.addEventListener('abort', this.#cancel, { once: true });
    server.inFlight.add(this.#cut);
    const effects = this.#mutating ? 1 : 0;
    server.underWay += effects;
    void this.#travel(verdict, server.epoch).finally(() => {
      server.underWay -= effects;
    });
  }

  #report(): void {
    const { watcher } = this.#server.runtime;
    const { method } = this.#o;
    if (this.#mutating) watcher.arrived(this.#seen);
    if (method === 'PullImage') watcher.pulls?.(this.#seen);
    if (method === 'RemoveImage') watcher.removesImage?.(this.#seen);
    this.#hook = hookOf(this.#seen, this.#server.clock.monoMs());
    if (this.#hook !== null) this.#server.hooks.push(this.#hook);
  }

  #armTimer({ lost }: Verdict): void {
    const { opts, daemon } = this.#o;
    const limitMs = Math.min(opts.timeoutMs ?? Number.POSITIVE_INFINITY, LOST_AFTER_MS);
    const own = opts.timeoutMs !== null && opts.timeoutMs <= LOST_AFTER_MS;
    if (!own && lost === undefined) return;
    const late = () =>
      own ? this.#unknown(DEADLINE, `no answer within ${limitMs} ms`) : this.#unknown(UNAVAILABLE, 'the connection went dead');
    this.#timer = daemon.clock.setTimeout(late, limitMs);
  }

  readonly #cut = (error: CriError): void => {
    if (this.#hook !== null && this.#open) this.#hook.unheard = error.code === UNAVAILABLE;
    this.#end(error.outcome, () => this.#o.reject(error));
  };
  readonly #cancel = (): void => {
    if (this.#hook !== null) this.#hook.cancelled = true;
    this.#unknown(CANCELLED, 'cancelled by the caller');
  };

  #unknown(code: number, details: string): void {
    this.#cut(new CriError({ method: this.#o.method, code, outcome: 'unknown', details }));
  }

  #end(outcome: 'done' | 'failed' | 'unknown', fn: () => void): void {
    if (!this.#open) return;
    this.#open = false;
    const { daemon, opts } = this.#o;
    daemon.clock.clearTimeout(this.#timer);
    opts.signal.removeEventListener('abort', this.#cancel);
    this.#server.inFlight.delete(this.#cut);
    if (this.#mutating) this.#server.runtime.watcher.settled(this.#seen, outcome);
    if (this.#hook !== null) this.#hook.endedMs = this.#server.clock.monoMs();
    if (daemon.power.on) fn();
  }

  async #travel(verdict: Verdict, born: number): Promise<void> {
    const server = this.#server;
    const { method } = this.#o;
    await wait(server.clock, server.latencyMs() + verdict.delayMs + (verdict.lost === 'late-effect' ? (verdict.lateMs ?? 0) : 0));
    const refused = this.#refusal(verdict, born);
    if (refused !== undefined) {
      this.#cut(refused);
      return;
    }
    if (verdict.lost === 'without-effect') return;
    const refusal = method === 'PullImage' ? this.#refusesPull() : undefined;
    if (refusal !== undefined) {
      this.#cut(failed(method, UNKNOWN, `failed to pull: ${refusal}`));
      return;
    }
    // Nobody waits any more: a runtime may have noticed in time, or not.
    if ((!this.#open || !this.#o.daemon.power.on) && verdict.lost === undefined && server.abandoned.chance(0.5)) return;
    await this.#act(verdict);
  }

  #refusal({ refuse }: Verdict, born: number): CriError | undefined {
    const { method } = this.#o;
    if (this.#server.isDown || born !== this.#server.epoch) return failed(method, UNAVAILABLE, 'connection refused');
    return refuse === undefined ? undefined : failed(method, refuse.code, refuse.details);
  }

  #refusesPull(): string | undefined {
    return this.#server.runtime.refusesPull((this.#o.req as CriRequest<'PullImage'>).auth?.password ?? '');
  }

  async #act({ lost }: Verdict): Promise<void> {
    const { client, method, req, resolve } = this.#o;
    const { runtime, lagging } = this.#server;
    try {
      const value = await client.call(method, req, { timeoutMs: null, signal: unending() });
      if (this.#mutating) runtime.changed = true;
      if (runtime.onLog !== null && (method === 'StartContainer' || method === 'ReopenContainerLog'))
        await opensLog(runtime, (req as CriRequest<'StartContainer'>).containerId, runtime.onLog);
      if (this.#hook !== null && lost === undefined) this.#hook.ok = (value as CriResponse<'ExecSync'>).exitCode === 0;
      if (lost === undefined) this.#end('done', () => resolve(lagging(method, value) as CriResponse<M>));
    } catch (error) {
      if (lost !== undefined) return;
      this.#cut(error instanceof CriError ? error : failed(method, INTERNAL, String(error)));
    }
  }
}

async function opensLog({ hollow }: SimRuntime, containerId: string, opened: NonNullable<SimRuntime['onLog']>): Promise<void> {
  const { status } = await hollow.call('ContainerStatus', { containerId }, { timeoutMs: null, signal: unending() });
  if (status !== null && status.state === 'CONTAINER_RUNNING' && status.logPath !== '') opened(containerId, status.logPath);
}

async function* faulty(
  { runtime, clock }: RuntimeServer,
  power: Power,
  stream: AsyncIterable<RuntimeHint>,
): AsyncGenerator<RuntimeHint, void, undefined> {
  let held: RuntimeHint | undefined;
  for await (const told of stream) {
    if (!power.on) return;
    const hint: RuntimeHint = runtime.trouble.anonymousHints ? { kind: told.kind, id: told.id } : told;
    const verdict = runtime.trouble.hint(hint);
    if (typeof verdict === 'object') await wait(clock, verdict.delayMs);
    if (!power.on) return;
    if (verdict === 'drop') continue;
    if (verdict === 'reorder' && held === undefined) {
      held = hint;
      continue;
    }
    yield hint;
    if (verdict === 'duplicate') yield hint;
    if (held !== undefined) yield held;
    held = undefined;
  }
  if (held !== undefined && power.on) yield held;
}

function hookOf({ method, req, boot }: CallSeen, beganMs: number): HookSeen | null {
  if (method !== 'ExecSync') return null;
  const { containerId, cmd } = req as CriRequest<'ExecSync'>;
  return cmd[0] === HOOK_COMMAND
    ? { boot, containerId, which: cmd[1] ?? '', beganMs, endedMs: null, ok: false, cancelled: false, unheard: false }
    : null;
}
