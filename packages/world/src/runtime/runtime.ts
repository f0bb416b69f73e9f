/**
 * A container runtime that can be far away: the hollow runtime behind delays, refusals, lost answers and outages. It
 * outlives the daemons that talk to it, and what a dead daemon asked for may still happen.
 */

import type { RuntimeHint } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { CriMethod, CriResponse } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { type Clock, type Cri, CriError } from '@actorlet/kubelet/ports/ports.ts';
import { createHollowRuntime, type HollowOptions, type HollowRuntime } from '@actorlet/runtimes/src/hollow/index.ts';
import type { SimRng } from '../rng.ts';
import { HOOK_COMMAND, type RuntimeServer, runtimeClient, UNAVAILABLE } from './runtimeClient.ts';
import type { HookSeen, RuntimeDaemon, RuntimeTrouble, RuntimeWatcher, SimRuntime } from './types.ts';

/** Nobody uses it, and the runtime keeps it. */
export const PINNED_IMAGE = 'registry.sim/pause:3';
/** There before any daemon was. */
const LEFT_IMAGES = [PINNED_IMAGE, 'left:1', 'left:2'];

/** What it says that it can do for pods. */
const FEATURES: NonNullable<HollowOptions['features']> = {
  runtimeHandlers: [{ name: '', features: { recursiveReadOnlyMounts: false, userNamespaces: true } }],
  features: { supplementalGroupsPolicy: true },
};
export interface SimRuntimeOptions extends Pick<HollowOptions, 'cgroupDriver' | 'held' | 'layerDir'> {
  clock: Clock;
  rng: SimRng;
  latencyMs(): number;
}

export function simRuntime(o: SimRuntimeOptions): SimRuntime {
  return new Runtime(o);
}

class Runtime implements SimRuntime {
  readonly hollow: HollowRuntime;
  trouble: RuntimeTrouble = {
    verdict: () => ({ delayMs: 0 }),
    hint: () => 'pass',
    noHints: false,
    anonymousHints: false,
    lagMs: 0,
    noFigures: 0,
  };
  watcher: RuntimeWatcher = { arrived: () => {}, settled: () => {} };
  readonly hooks: HookSeen[] = [];
  refusesPull: SimRuntime['refusesPull'] = () => undefined;
  onLog: SimRuntime['onLog'] = null;
  changed = true;
  readonly #clock: Clock;
  readonly #server: RuntimeServer;
  /** Monotonic ms of each end that was announced lately. */
  readonly #ends = new Map<string, number>();

  constructor(o: SimRuntimeOptions) {
    this.#clock = o.clock;
    this.hollow = hollowFor(o);
    this.#server = {
      runtime: this,
      clock: o.clock,
      latencyMs: o.latencyMs,
      hooks: this.hooks,
      abandoned: o.rng.fork('abandoned'),
      inFlight: new Set(),
      isDown: false,
      epoch: 0,
      underWay: 0,
      lagging: (method, value) => this.#lagging(method, value),
    };
    void watch(this.hollow, (hint) => {
      this.changed = true;
      if (hint.kind === 'stopped') this.#ends.set(hint.id, o.clock.monoMs());
    });
  }

  connect(daemon: RuntimeDaemon): Cri {
    return runtimeClient(this.#server, daemon);
  }

  underWay(): number {
    return this.#server.underWay;
  }

  down(): void {
    this.#server.isDown = true;
    this.#hangUp();
  }

  up(): void {
    this.#server.isDown = false;
  }

  powerLoss(): void {
    this.#hangUp();
    this.hollow.dropCalls();
  }

  #hangUp(): void {
    this.#server.epoch += 1;
    for (const cut of [...this.#server.inFlight])
      cut(new CriError({ method: 'any', code: UNAVAILABLE, outcome: 'unknown', details: 'the connection was lost' }));
    this.hollow.dropStreams();
  }

  #lagging(method: CriMethod, value: unknown): unknown {
    if (method === 'ContainerStats' && this.trouble.noFigures > 0) return { stats: null } satisfies CriResponse<'ContainerStats'>;
    if (this.trouble.lagMs === 0) return value;
    if (method === 'ListContainers') {
      const list = value as CriResponse<'ListContainers'>;
      return { ...list, containers: list.containers.map((c) => this.#stillShown(c)) };
    }
    if (method !== 'ContainerStatus') return value;
    const answer = value as CriResponse<'ContainerStatus'>;
    return answer.status === null ? answer : { ...answer, status: this.#stillShown(answer.status) };
  }

  #stillShown<C extends { id: string; state: string }>(c: C): C {
    const at = this.#ends.get(c.id);
    return at === undefined || this.#clock.monoMs() >= at + this.trouble.lagMs
      ? c
      : { ...c, state: 'CONTAINER_RUNNING', finishedAt: '0', exitCode: 0 };
  }
}

function hollowFor(o: SimRuntimeOptions): HollowRuntime {
  return createHollowRuntime({
    clock: o.clock,
    rng: o.rng.fork('hollow'),
    features: FEATURES,
    ...(o.cgroupDriver === undefined ? {} : { cgroupDriver: o.cgroupDriver }),
    ...(o.held === undefined ? {} : { held: o.held }),
    ...(o.layerDir === undefined ? {} : { layerDir: o.layerDir }),
    images: LEFT_IMAGES,
    pinned: [PINNED_IMAGE],
    exec: ({ attempt }, [name, , delayMs, fails]) =>
      name === HOOK_COMMAND ? { delayMs: Number(delayMs), exitCode: fails === 'first' && attempt === 0 ? 1 : 0 } : undefined,
  });
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
