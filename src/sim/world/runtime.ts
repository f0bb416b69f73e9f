/**
 * A container runtime that can be far away: the hollow runtime behind delays, refusals, lost answers and outages. It
 * outlives the daemons that talk to it, and what a dead daemon asked for may still happen.
 */

import type { CriMethod, CriRequest, CriResponse, RuntimeHint } from '../../machines/cri.ts';
import { CRI_METHODS } from '../../machines/runtime/cri/methods.ts';
import { type Clock, type Cri, CriError } from '../../ports/ports.ts';
import { createHollowRuntime, type HollowOptions, type HollowRuntime } from '../../sandbox/hollow/index.ts';
import type { SimRng } from './rng.ts';
import type { Power } from './time.ts';

/** What becomes of one call. */
export interface Verdict {
  /** Before its effect. */
  delayMs: number;
  refuse?: { code: number; details: string };
  /** No answer: without effect, with it, or with an effect that comes `lateMs` after the call. */
  lost?: 'without-effect' | 'with-effect' | 'late-effect';
  lateMs?: number;
}
export type HintVerdict = 'pass' | 'drop' | 'duplicate' | 'reorder' | { delayMs: number };

/** What the nemesis does to this runtime; asked at every call and hint. */
export interface RuntimeTrouble {
  verdict(method: CriMethod, request: unknown): Verdict;
  hint(hint: RuntimeHint): HintVerdict;
  /** Opening a hint stream fails with UNIMPLEMENTED: an older runtime. */
  noHints: boolean;
  /** Hints do not say of which pod they are: containerd's own stream. */
  anonymousHints: boolean;
  /** For this long after an end was announced, answers still show the container running, as real runtimes do. */
  lagMs: number;
  /** More than 0: answers about a container say nothing of its memory. */
  noFigures: number;
}

/** A call as it reached the runtime. */
export interface CallSeen {
  method: CriMethod;
  req: unknown;
  /** 1 for the first daemon of this node. */
  boot: number;
}
/** The command of a hook of the simulation: this word, which hook, how many ms it takes, and whether the first instance fails it. */
export const HOOK_COMMAND = 'hook';

/** A hook's command as it reached the runtime. */
export interface HookSeen {
  readonly boot: number;
  readonly containerId: string;
  readonly which: string;
  readonly beganMs: number;
  /** Null: neither answered nor given up. */
  endedMs: number | null;
  ok: boolean;
  /** The node gave it up. */
  cancelled: boolean;
  /** The runtime was away: what came of it nobody knows, and it may be run again within the same grace. */
  unheard: boolean;
}
export interface RuntimeWatcher {
  arrived(call: CallSeen): void;
  /** An image is about to be pulled, which changes no pod. */
  pulls?(call: CallSeen): void;
  /** An image is about to be removed. */
  removesImage?(call: CallSeen): void;
  /** The daemon has its answer, gave up, or died. */
  settled(call: CallSeen, outcome: 'done' | 'failed' | 'unknown'): void;
}

export interface SimRuntime {
  readonly hollow: HollowRuntime;
  trouble: RuntimeTrouble;
  watcher: RuntimeWatcher;
  /** Every command of a hook so far. */
  readonly hooks: readonly HookSeen[];
  /** Why a registry gives nothing to who comes with this password; undefined: it does. */
  refusesPull: (password: string) => string | undefined;
  /** A container has opened its log there, at its start or since it was asked to. Null: nobody writes logs. */
  onLog: ((containerId: string, path: string) => void) | null;
  /** Something in the runtime changed since this was last set to false. */
  changed: boolean;
  connect(daemon: { power: Power; clock: Clock; boot: number }): Cri;
  /** Calls that may change something yet, whoever asked. */
  underWay(): number;
  /** Calls in flight end with an unknown outcome, streams are cut, calls are refused until `up`. Containers live on. */
  down(): void;
  up(): void;
}

/** Nobody uses it, and the runtime keeps it. */
export const PINNED_IMAGE = 'registry.sim/pause:3';
/** There before any daemon was. */
const LEFT_IMAGES = [PINNED_IMAGE, 'left:1', 'left:2'];

/** What it says that it can do for pods. */
const FEATURES: NonNullable<HollowOptions['features']> = {
  runtimeHandlers: [{ name: '', features: { recursiveReadOnlyMounts: false, userNamespaces: true } }],
  features: { supplementalGroupsPolicy: true },
};
/** A connection without life is given up after this long, whatever the call's own deadline. */
const LOST_AFTER_MS = 60_000;
const UNAVAILABLE = 14;
const CANCELLED = 1;
const DEADLINE = 4;
const UNIMPLEMENTED = 12;
const UNKNOWN = 2;

export interface SimRuntimeOptions extends Pick<HollowOptions, 'cgroupDriver'> {
  clock: Clock;
  rng: SimRng;
  latencyMs(): number;
}

export function simRuntime(o: SimRuntimeOptions): SimRuntime {
  const hollow = createHollowRuntime({
    clock: o.clock,
    rng: o.rng.fork('hollow'),
    features: FEATURES,
    ...(o.cgroupDriver === undefined ? {} : { cgroupDriver: o.cgroupDriver }),
    images: LEFT_IMAGES,
    pinned: [PINNED_IMAGE],
    exec: ({ attempt }, [name, , delayMs, fails]) =>
      name === HOOK_COMMAND ? { delayMs: Number(delayMs), exitCode: fails === 'first' && attempt === 0 ? 1 : 0 } : undefined,
  });
  const hooks: HookSeen[] = [];
  const chance = o.rng.fork('abandoned');
  const inFlight = new Set<(error: CriError) => void>();
  const forever = new AbortController().signal;
  let isDown = false;
  let underWay = 0;
  let epoch = 0;
  /** Monotonic ms of each end that was announced lately. */
  const ends = new Map<string, number>();
  const stillShown = <C extends { id: string; state: string }>(c: C): C => {
    const at = ends.get(c.id);
    return at === undefined || o.clock.monoMs() >= at + self.trouble.lagMs
      ? c
      : { ...c, state: 'CONTAINER_RUNNING', finishedAt: '0', exitCode: 0 };
  };
  /** What an answer says while the runtime has announced an end and not yet written it down. */
  const lagging = (method: CriMethod, value: unknown): unknown => {
    if (method === 'ContainerStats' && self.trouble.noFigures > 0) return { stats: null } satisfies CriResponse<'ContainerStats'>;
    if (self.trouble.lagMs === 0) return value;
    if (method === 'ListContainers') {
      const list = value as CriResponse<'ListContainers'>;
      return { ...list, containers: list.containers.map(stillShown) };
    }
    if (method !== 'ContainerStatus') return value;
    const answer = value as CriResponse<'ContainerStatus'>;
    return answer.status === null ? answer : { ...answer, status: stillShown(answer.status) };
  };
  const opensLog = async (containerId: string, opened: NonNullable<SimRuntime['onLog']>): Promise<void> => {
    const { status } = await hollow.call('ContainerStatus', { containerId }, { timeoutMs: null, signal: forever });
    if (status !== null && status.state === 'CONTAINER_RUNNING' && status.logPath !== '') opened(containerId, status.logPath);
  };
  const wait = (ms: number) => (ms <= 0 ? undefined : new Promise<void>((wake) => void o.clock.setTimeout(wake, ms)));

  const self: SimRuntime = {
    hollow,
    trouble: { verdict: () => ({ delayMs: 0 }), hint: () => 'pass', noHints: false, anonymousHints: false, lagMs: 0, noFigures: 0 },
    watcher: { arrived: () => {}, settled: () => {} },
    hooks,
    refusesPull: () => undefined,
    onLog: null,
    changed: true,
    underWay: () => underWay,
    down() {
      isDown = true;
      epoch += 1;
      for (const cut of [...inFlight])
        cut(new CriError({ method: 'any', code: UNAVAILABLE, outcome: 'unknown', details: 'the connection was lost' }));
      hollow.dropStreams();
    },
    up() {
      isDown = false;
    },
    connect(daemon) {
      const { power } = daemon;
      const client = hollow.connect();
      const failed = (method: string, code: number, details: string) => new CriError({ method, code, outcome: 'failed', details });

      function call<M extends CriMethod>(method: M, req: CriRequest<M>, opts: { timeoutMs: number | null; signal: AbortSignal }) {
        return new Promise<CriResponse<M>>((resolve, reject) => {
          if (!power.on) return;
          if (opts.signal.aborted) {
            reject(failed(method, CANCELLED, 'cancelled before it was sent'));
            return;
          }
          const { mutating } = CRI_METHODS[method];
          const seen: CallSeen = { method, req, boot: daemon.boot };
          if (mutating) self.watcher.arrived(seen);
          if (method === 'PullImage') self.watcher.pulls?.(seen);
          if (method === 'RemoveImage') self.watcher.removesImage?.(seen);
          const hook = hookOf(seen, o.clock.monoMs());
          if (hook !== null) hooks.push(hook);
          let open = true;
          const end = (outcome: 'done' | 'failed' | 'unknown', fn: () => void): void => {
            if (!open) return;
            open = false;
            daemon.clock.clearTimeout(timer);
            opts.signal.removeEventListener('abort', cancel);
            inFlight.delete(cut);
            if (mutating) self.watcher.settled(seen, outcome);
            if (hook !== null) hook.endedMs = o.clock.monoMs();
            if (power.on) fn();
          };
          const cut = (error: CriError): void => {
            if (hook !== null && open) hook.unheard = error.code === UNAVAILABLE;
            end(error.outcome, () => reject(error));
          };
          const unknown = (code: number, details: string): void => cut(new CriError({ method, code, outcome: 'unknown', details }));
          const cancel = (): void => {
            if (hook !== null) hook.cancelled = true;
            unknown(CANCELLED, 'cancelled by the caller');
          };
          const limitMs = Math.min(opts.timeoutMs ?? Number.POSITIVE_INFINITY, LOST_AFTER_MS);
          const own = opts.timeoutMs !== null && opts.timeoutMs <= LOST_AFTER_MS;
          const verdict = self.trouble.verdict(method, req);
          const timer =
            own || verdict.lost !== undefined
              ? daemon.clock.setTimeout(
                  () => (own ? unknown(DEADLINE, `no answer within ${limitMs} ms`) : unknown(UNAVAILABLE, 'the connection went dead')),
                  limitMs,
                )
              : undefined;
          opts.signal.addEventListener('abort', cancel, { once: true });
          inFlight.add(cut);
          const born = epoch;
          const work = async (): Promise<void> => {
            await wait(o.latencyMs() + verdict.delayMs + (verdict.lost === 'late-effect' ? (verdict.lateMs ?? 0) : 0));
            if (isDown || born !== epoch) {
              cut(failed(method, UNAVAILABLE, 'connection refused'));
              return;
            }
            if (verdict.refuse !== undefined) {
              cut(failed(method, verdict.refuse.code, verdict.refuse.details));
              return;
            }
            if (verdict.lost === 'without-effect') return;
            const refusal = method === 'PullImage' ? self.refusesPull((req as CriRequest<'PullImage'>).auth?.password ?? '') : undefined;
            if (refusal !== undefined) {
              cut(failed(method, UNKNOWN, `failed to pull: ${refusal}`));
              return;
            }
            // Nobody waits any more: a runtime may have noticed in time, or not.
            if ((!open || !power.on) && verdict.lost === undefined && chance.chance(0.5)) return;
            try {
              const value = await client.call(method, req, { timeoutMs: null, signal: forever });
              if (mutating) self.changed = true;
              if (self.onLog !== null && (method === 'StartContainer' || method === 'ReopenContainerLog'))
                await opensLog((req as CriRequest<'StartContainer'>).containerId, self.onLog);
              if (hook !== null && verdict.lost === undefined) hook.ok = (value as CriResponse<'ExecSync'>).exitCode === 0;
              if (verdict.lost === undefined) end('done', () => resolve(lagging(method, value) as CriResponse<M>));
            } catch (error) {
              if (verdict.lost !== undefined) return;
              cut(error instanceof CriError ? error : failed(method, 13, String(error)));
            }
          };
          underWay += mutating ? 1 : 0;
          void work().finally(() => {
            underWay -= mutating ? 1 : 0;
          });
        });
      }

      async function* faulty(stream: AsyncIterable<RuntimeHint>): AsyncGenerator<RuntimeHint, void, undefined> {
        let held: RuntimeHint | undefined;
        for await (const told of stream) {
          if (!power.on) return;
          const hint: RuntimeHint = self.trouble.anonymousHints ? { kind: told.kind, id: told.id } : told;
          const verdict = self.trouble.hint(hint);
          if (typeof verdict === 'object') await wait(verdict.delayMs);
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

      return {
        call,
        async hints(signal) {
          await wait(o.latencyMs());
          if (isDown) throw failed('GetContainerEvents', UNAVAILABLE, 'connection refused');
          if (self.trouble.noHints) throw failed('GetContainerEvents', UNIMPLEMENTED, 'unknown method GetContainerEvents');
          const { via, stream } = await client.hints(signal);
          return { via, stream: faulty(stream) };
        },
        reconnect: () => client.reconnect(),
        close: () => client.close(),
      };
    },
  };
  void watch(hollow, (hint) => {
    self.changed = true;
    if (hint.kind === 'stopped') ends.set(hint.id, o.clock.monoMs());
  });
  return self;
}

function hookOf({ method, req, boot }: CallSeen, beganMs: number): HookSeen | null {
  if (method !== 'ExecSync') return null;
  const { containerId, cmd } = req as CriRequest<'ExecSync'>;
  return cmd[0] === HOOK_COMMAND
    ? { boot, containerId, which: cmd[1] ?? '', beganMs, endedMs: null, ok: false, cancelled: false, unheard: false }
    : null;
}

/** Exits that nobody asked for are only seen here. */
async function watch(hollow: HollowRuntime, changed: (hint: RuntimeHint) => void): Promise<never> {
  for (;;) {
    const { stream } = await hollow.connect().hints(new AbortController().signal);
    try {
      for await (const hint of stream) changed(hint);
    } catch {
      // Cut by a scripted outage: opened again at once.
    }
  }
}
