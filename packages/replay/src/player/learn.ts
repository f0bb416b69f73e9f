/** Replays a recording once, to know what it tells of the world and of its pods. */
import type { Node } from '@actorlet/kubelet/actors/node.ts';
import type { SupervisionEvent } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { Input, Json } from '../entries.ts';
import { Learner, type Script, type When } from '../lenient/script.ts';
import type { WhoActs } from '../seen/whose.ts';
import { type KnownPod, KnownPods, knownOf, uidOf } from './pods.ts';
import { type Replayed, type ReplayInput, replay } from './replay.ts';

/** A step of the worker of a pod. `order`: number of the input. */
export interface Lived {
  readonly what: string;
  readonly order: number;
}
export interface Learned {
  readonly script: Script;
  readonly pods: KnownPods;
  /** By UID. */
  readonly lives: Lives;
  /** How each pod was before the daemon was told to stop, or at the end, by UID. `since`: of the pod that was named, since which input. */
  readonly ends: ReadonlyMap<string, { readonly end: string; readonly since: When }>;
  /** What their workers know at the end, by UID. */
  readonly known: ReadonlyMap<string, Json>;
  readonly replayed: Replayed;
}

/** @param o `pod`: its name; it is looked at after each input. */
export async function learn(o: Omit<ReplayInput, 'watch' | 'step' | 'leaves'> & { pod?: string | undefined }): Promise<Learned> {
  const [pods, lives, ends] = [new KnownPods(), new Lives(), new Map<string, { end: string; since: When }>()];
  let live: Node | null = null;
  let stops = false;
  const learner = new Learner();
  const look = (which: readonly KnownPod[]): void => {
    if (live === null || stops) return;
    for (const { uid } of which) {
      const end = pods.howIs(live, uid);
      if (ends.get(uid)?.end !== end) ends.set(uid, { end, since: learner.now });
    }
  };
  const heard = learner.input.bind(learner);
  learner.input = (input, at) => {
    const named = o.pod === undefined ? null : pods.named(o.pod);
    look(isStop(input) ? pods.all : named === null ? [] : [named]);
    stops ||= isStop(input);
    heard(input, at);
  };
  const step = (e: SupervisionEvent, node: Node): void => {
    live = node;
    pods.see(e, node);
    lives.see(e, learner.now.order);
  };
  const known = new Map<string, Json>();
  const leaves = (node: Node): void => {
    look(pods.all);
    for (const { uid } of pods.all) known.set(uid, knownOf(node, uid));
  };
  const { who } = o;
  const acting: WhoActs['acting'] = (by, act) => {
    lives.acts(by.path, learner.now.order);
    who?.acting(by, act);
  };
  const replayed = await replay({ ...o, watch: learner, step, leaves, ...(who === undefined ? {} : { who: { ...who, acting } }) });
  return { script: learner.script(), pods, lives, ends, known, replayed };
}

export function isStop(input: Input): boolean {
  return input[0] === 'told' && input[2] === 'stop';
}

/** Steps of the workers of pods. */
export class Lives {
  readonly #of = new Map<string, Lived[]>();
  readonly #acts = new Map<string, Set<number>>();

  /** UIDs. */
  get all(): string[] {
    return [...this.#of.keys()];
  }

  /** An actor takes something: the worker of a pod, perhaps. */
  acts(path: string, order: number): void {
    const uid = uidOf(path);
    if (uid === '') return;
    const orders = this.#acts.get(uid);
    if (orders === undefined) this.#acts.set(uid, new Set([order]));
    else orders.add(order);
  }

  /** Numbers of the inputs after which the worker took something, up to this one. */
  inputs(uid: string, until: number): number[] {
    return [...(this.#acts.get(uid) ?? [])].filter((order) => order <= until);
  }

  see(e: SupervisionEvent, order: number): void {
    const uid = e.kind === 'transition' ? uidOf(e.path) : '';
    if (e.kind !== 'transition' || uid === '') return;
    const steps = this.#of.get(uid) ?? [];
    steps.push({ what: `${e.from} -> ${e.to} on ${e.event}`, order });
    this.#of.set(uid, steps);
  }

  /** In one text. `until`: number of the last input. */
  of(uid: string, until = Number.POSITIVE_INFINITY): string {
    return (this.#of.get(uid) ?? []).flatMap(({ what, order }) => (order <= until ? [what] : [])).join();
  }
}
