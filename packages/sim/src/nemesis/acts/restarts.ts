/** Restarts of pods that a person asks for, as `actorctl restart pod` does. */
import { askRestart } from '@actorlet/kubelet/actors/edge/admin/restarts.ts';
import { isWanted, podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { manifestName } from '../../steady.ts';

export interface AskedRestart {
  readonly node: string;
  readonly uid: string;
  /** Of the daemon that was asked. */
  readonly boot: number;
  readonly askedMs: number;
  /** When it answered. Infinite: it has not. */
  answeredMs: number;
  /** Instances that are to end, or whose back-off is to end. */
  ends: readonly string[];
}

export class PodRestarts {
  readonly all: AskedRestart[] = [];
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** False: no such pod is there. */
  ask({ name, container }: { name: string; container: number }, node: SimNode): boolean {
    const { daemon, boots } = node;
    const registry = daemon?.tree.registry;
    const found = [...(registry?.read(podsView)?.value.records ?? [])].find(
      ([, record]) => isWanted(record) && manifestName(record.pod.metadata.name, node) === name,
    );
    if (registry === undefined || found === undefined) return false;
    const [uid, { pod }] = found;
    const all = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
    const only = container < 0 ? '' : (all[container % all.length]?.name ?? '');
    const asked: AskedRestart = {
      ...{ node: node.name, uid, boot: boots, askedMs: this.#clock.monoMs(), answeredMs: Number.POSITIVE_INFINITY, ends: [] },
    };
    this.all.push(asked);
    void askRestart(
      { pods: [uid], container: only, over: 'the admin socket' },
      { registry, by: 'node/edge/admin', nowMs: this.#clock.wallMs() },
    ).then((result) => {
      asked.answeredMs = this.#clock.monoMs();
      const [one] = result.ok ? result.pods : [];
      if (one?.ok === true) asked.ends = one.containers.flatMap(({ id, how }) => (how === 'ends' ? [id] : []));
    });
    return true;
  }
}
