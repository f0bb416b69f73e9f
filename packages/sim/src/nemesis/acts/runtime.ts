/** Faults of the container runtime, and of what runs in it. */
import type { CriMethod, CriRequest } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { CriError } from '@actorlet/kubelet/ports/ports.ts';
import type { HollowContainerDump, HollowDump, HollowSandboxDump } from '@actorlet/runtimes/src/hollow/index.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import type { FaultEntry } from '../faults.ts';
import { type Acts, hit, missed, type Stage } from './act.ts';

type Kind = 'hints.cut' | 'runtime.down' | 'network.down' | 'container.exit' | 'container.remove' | 'sandbox.stop';

export class RuntimeTrouble {
  /** Sandboxes that were stopped behind the node's back. */
  readonly disturbed = new Set<string>();
  /** UIDs of pods of which somebody removed a container. */
  readonly robbed = new Set<string>();
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  readonly acts: Acts<Kind> = {
    'hints.cut': (_, { runtime }) => {
      runtime.hollow.dropStreams();
      return hit();
    },
    'runtime.down': (f, { runtime }) => {
      runtime.down();
      this.#stage.windows.openShared(f, () => runtime.up());
      return hit();
    },
    'network.down': (f, { runtime }) => {
      runtime.hollow.setCondition('NetworkReady', false, 'no network plugin');
      this.#stage.windows.openShared(f, () => runtime.hollow.setCondition('NetworkReady', true, ''));
      return hit();
    },
    'container.exit': (f, node) => {
      const chosen = this.#pickContainer(f, node);
      if (chosen === undefined) return missed('no container runs');
      node.runtime.hollow.exit(chosen.id, { exitCode: f.exitCode, reason: f.reason });
      return hit(chosen.name);
    },
    'container.remove': (f, node) => {
      const chosen = this.#pickContainer(f, node);
      if (chosen === undefined) return missed('no container runs');
      this.robbed.add(chosen.podUid);
      void byHand(node, 'RemoveContainer', { containerId: chosen.id });
      return hit(chosen.name);
    },
    'sandbox.stop': (f, node) => {
      const ready = this.#sandboxesOf(f, node.runtime.hollow.dump()).filter((s) => s.ready);
      const chosen = this.#stage.active.chanceOf(f).pick(ready);
      if (chosen === undefined) return missed();
      this.#stop(node, chosen.id);
      return hit(chosen.id);
    },
  };

  /** Whatever ran has ended when the machine is on again, and nobody knows how: as containerd has it after a boot. */
  halt(node: SimNode): void {
    node.runtime.powerLoss();
    const { hollow } = node.runtime;
    const { containers, sandboxes } = hollow.dump();
    for (const { id } of containers) hollow.exit(id, { exitCode: 255, reason: 'Unknown' });
    for (const { id, ready } of sandboxes) if (ready) this.#stop(node, id);
  }

  #stop(node: SimNode, podSandboxId: string): void {
    this.disturbed.add(podSandboxId);
    void byHand(node, 'StopPodSandbox', { podSandboxId });
  }

  #sandboxesOf(f: FaultEntry, dump: HollowDump): HollowSandboxDump[] {
    const { match } = this.#stage;
    return dump.sandboxes.filter((s) => match.any(f.select.pods, s.name) && match.any(f.select.namespaces, s.namespace));
  }

  /** A container that runs, of those that the fault selects. */
  #pickContainer(f: FaultEntry, node: SimNode): HollowContainerDump | undefined {
    const { match, active } = this.#stage;
    const dump = node.runtime.hollow.dump();
    const boxes = new Set(this.#sandboxesOf(f, dump).map((s) => s.id));
    const running = dump.containers.filter(
      (c) => c.state === 'CONTAINER_RUNNING' && boxes.has(c.sandboxId) && match.any(f.select.containers, c.name),
    );
    return active.chanceOf(f).pick(running);
  }
}

/** A call of the runtime by another program than the node, which may be refused: a process that waits for a disk does not end. */
async function byHand<M extends CriMethod>(node: SimNode, method: M, request: CriRequest<M>): Promise<void> {
  try {
    await node.runtime.hollow.call(method, request, { timeoutMs: null, signal: new AbortController().signal });
  } catch (error) {
    if (!(error instanceof CriError)) throw error;
  }
}
