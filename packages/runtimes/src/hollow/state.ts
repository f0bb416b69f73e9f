/** The state of a hollow runtime: sandboxes and containers, their names and ids, conditions, counts, open hint streams. */
import type { ContainerConfig, LinuxContainerResources, PodSandboxConfig, RuntimeHint } from '@actorlet/kubelet/machines/wire/cri.ts';
import { CODE, type ContainerRow, RuntimeRefusal, type SandboxRow } from '../shared/model.ts';
import type { HintStream } from './hints.ts';
import type { HollowLife } from './life.ts';
import type { Timing } from './timing.ts';
import type { HollowOptions } from './types.ts';
import type { Usage } from './usage.ts';

/** What all parts of one runtime use. */
export interface Shared {
  state: State;
  timing: Timing;
  options: HollowOptions;
}

export interface Sandbox extends SandboxRow {
  config: PodSandboxConfig;
  key: string;
}
export interface Container extends ContainerRow {
  config: ContainerConfig;
  userImage: string;
  life: HollowLife;
  usage: Usage;
  key: string;
  /** As it was made, and as it was changed since. */
  resources: LinuxContainerResources;
  starting: boolean;
  runTimer: unknown;
  logTimer: unknown;
  /** Called at the exit; empty most of the time. */
  onExit: (() => void)[];
}

/** Unique for 2^32 ids; scattered, since people read the first characters. */
function scatteredId(n: number): string {
  const hex = (x: number) => (x >>> 0).toString(16).padStart(8, '0');
  return hex(Math.imul(n, 0x9e3779b1)) + hex(n);
}

export class State {
  readonly sandboxes = new Map<string, Sandbox>();
  readonly containers = new Map<string, Container>();
  /** Keys of sandboxes and containers that are taken. */
  readonly names = new Set<string>();
  readonly conditions = {
    RuntimeReady: { ok: true, reason: '' },
    NetworkReady: { ok: true, reason: '' },
  };
  readonly counts = { sandboxesRun: 0, containersCreated: 0, containersStarted: 0, pulls: 0 };
  readonly streams = new Set<HintStream>();
  #lastId = 0;

  newId(): string {
    return scatteredId(++this.#lastId);
  }

  /** An id of an earlier process: none is made again. */
  took(id: string): void {
    if (/^[0-9a-f]{16}$/.test(id)) this.#lastId = Math.max(this.#lastId, Number.parseInt(id.slice(8), 16));
  }

  sandbox(id: string): Sandbox {
    const s = this.sandboxes.get(id);
    if (s === undefined) throw new RuntimeRefusal(CODE.notFound, `sandbox ${id} not found`);
    return s;
  }

  container(id: string): Container {
    const c = this.containers.get(id);
    if (c === undefined) throw new RuntimeRefusal(CODE.notFound, `container ${id} not found`);
    return c;
  }

  running(id: string): Container {
    const c = this.container(id);
    if (c.state !== 'CONTAINER_RUNNING') throw new RuntimeRefusal(CODE.failedPrecondition, `container ${id} is not running`);
    return c;
  }

  containersOf(sandboxId: string): Container[] {
    return [...this.containers.values()].filter((c) => c.sandboxId === sandboxId);
  }

  hint(kind: RuntimeHint['kind'], id: string, sandbox: Sandbox | undefined): void {
    const uid = sandbox?.metadata.uid;
    for (const s of [...this.streams]) s.push(uid === undefined ? { kind, id } : { kind, id, podUid: uid });
  }
}
