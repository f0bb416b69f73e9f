/** The pods of a replay, and how each of them is. */
import type { Node } from '@actorlet/kubelet/actors/node.ts';
import type { SupervisionEvent } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { ContainerState } from '@actorlet/kubelet/machines/kube/types.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import { workersAddr } from '@actorlet/kubelet/machines/pods/workers/messages.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Json } from '../entries.ts';
import { crossed } from './ports.ts';

export interface KnownPod {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** With its containers. */
  readonly spec: Json;
}

/** Smaller numbers are counts. */
const TIME_MS_MIN = 1_000;
const APART_MS_MAX = 50;

export class KnownPods {
  readonly #byUid = new Map<string, KnownPod>();
  /** Of their workers. */
  readonly #states = new Map<string, string>();

  get all(): KnownPod[] {
    return [...this.#byUid.values()];
  }

  /** An actor made a step: the worker of a pod, perhaps. */
  see(e: SupervisionEvent, node: Node): void {
    const uid = e.kind === 'transition' ? uidOf(e.path) : '';
    if (e.kind !== 'transition' || uid === '') return;
    this.#states.set(uid, e.to);
    if (this.#byUid.has(uid)) return;
    const pod = node.tree.registry.read(podsView)?.value.records.get(uid)?.pod;
    if (pod === undefined) return;
    const { name, namespace = 'default' } = pod.metadata;
    this.#byUid.set(uid, { uid, namespace, name, spec: pod.spec as unknown as Json });
  }

  has(uid: string): boolean {
    return this.#byUid.has(uid);
  }

  /** The last one of this name. */
  named(fullName: string | undefined): KnownPod | null {
    return this.all.findLast((pod) => fullNameOf(pod) === fullName) ?? null;
  }

  /**
   * How a pod is, for people: the state of its worker, its phase, and the states of its containers. Asks the tree for nothing that
   * would let it look at its clock.
   */
  howIs({ tree }: Node, uid: string): string {
    const status = tree.registry.read(statusesView)?.value.get(uid)?.status;
    const containers = (status?.containerStatuses ?? []).map((c) => `${c.name} ${stateWords(c.state)} after ${c.restartCount} restarts`);
    const isKnown = tree.registry.read(podsView)?.value.records.has(uid) === true;
    const worker = isKnown ? (this.#states.get(uid) ?? 'starting') : 'gone';
    return [worker, status?.phase ?? '', ...containers].filter((word) => word !== '').join(', ');
  }
}

/** What the worker of a pod knows; null where there is none. */
export function knownOf({ tree }: Node, uid: string): Json {
  const ref =
    'actorAt' in tree ? (tree.actorAt as (path: string) => { getSnapshot(): unknown } | null)(`${workersAddr.path}/${uid}`) : null;
  const snapshot = ref?.getSnapshot();
  if (!isRecord(snapshot) || !isRecord(snapshot.context)) return null;
  // Lives are numbered over all pods, and causes are words for people about all of them.
  const { causes: _, life: __, ...context } = snapshot.context;
  return crossed(context).json;
}

/** Whether a worker knows the same. With less around it, it does the same a little sooner or later. */
export function knowsSame(a: Json | undefined, b: Json | undefined): boolean {
  if (typeof a === 'number' && typeof b === 'number') return a === b || (Math.min(a, b) >= TIME_MS_MIN && Math.abs(a - b) <= APART_MS_MAX);
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b;
  const [then, now] = [a as Readonly<Record<string, Json>>, b as Readonly<Record<string, Json>>];
  const keys = Object.keys(then);
  return keys.length === Object.keys(now).length && keys.every((key) => knowsSame(then[key], now[key]));
}

export function fullNameOf({ namespace, name }: Pick<KnownPod, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`;
}

/** '' where it is no worker's path. */
export function uidOf(path: string): string {
  return path.startsWith(`${workersAddr.path}/`) ? path.slice(workersAddr.path.length + 1) : '';
}

function stateWords({ waiting, running, terminated }: ContainerState): string {
  if (terminated !== undefined) return `terminated (exit code ${terminated.exitCode})`;
  if (running !== undefined) return 'running';
  return waiting?.reason === undefined || waiting.reason === '' ? 'waiting' : `waiting (${waiting.reason})`;
}
