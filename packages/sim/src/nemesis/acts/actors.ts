/** Kills of actors. */

import type { SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { pathsOf } from '../../steady.ts';
import type { EntryOf } from '../attack/hits.ts';
import { type Acts, hit, missed, type Stage } from './act.ts';

/** Kills of one worker that its supervisor forgives, with room to spare: more would put it in quarantine, where it stays. */
const WORKER_KILLS_MAX = 3;
const WORKERS = 'node/pods/workers/';

export function actorActs(stage: Stage): Acts<'actor.kill'> {
  const kills = new Kills(stage);
  return {
    'actor.kill'(f, node) {
      const tree = node.daemon?.tree;
      const killed = tree === undefined ? [] : kills.victims(f, node, tree).filter((path) => tree.kill(path, 'nemesis'));
      return killed.length === 0 ? missed() : hit(killed.join(' '), killed.length);
    },
  };
}

class Kills {
  readonly #stage: Stage;
  /** By node and path. */
  readonly #ofWorkers = new Map<string, number>();

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  victims(f: EntryOf<'actor.kill'>, node: SimNode, tree: SupervisionTree): string[] {
    const wanted = this.#selected(f, tree);
    const chosen = f.pick === 'all' ? wanted : [this.#stage.active.chanceOf(f).pick(wanted) ?? ''];
    return chosen.filter((path) => path !== '' && (f.name !== undefined || this.#isForgiven(node, path)));
  }

  #selected(f: EntryOf<'actor.kill'>, tree: SupervisionTree): string[] {
    const { match } = this.#stage;
    const { actors, pods, namespaces } = f.select;
    const ofPods = pods !== undefined || namespaces !== undefined;
    const records = ofPods ? tree.registry.read(podsView)?.value.records : undefined;
    return pathsOf(tree.state()).filter((path) => {
      if (!match.any(actors, path)) return false;
      if (!ofPods) return true;
      const pod = records?.get(path.startsWith(WORKERS) ? path.slice(WORKERS.length) : '')?.pod.metadata;
      return pod !== undefined && match.any(pods, pod.name) && match.any(namespaces, pod.namespace);
    });
  }

  /** Drawn faults kill each worker only as often as its supervisor forgives. */
  #isForgiven(node: SimNode, path: string): boolean {
    if (!path.startsWith(WORKERS)) return true;
    const key = `${node.index} ${path}`;
    const before = this.#ofWorkers.get(key) ?? 0;
    this.#ofWorkers.set(key, before + 1);
    return before < WORKER_KILLS_MAX;
  }
}
