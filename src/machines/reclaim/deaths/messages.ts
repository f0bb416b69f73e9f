/** Messages of the actor that keeps a bundle of facts for each death, and what it shows of the bundles. */
import type { Pod } from '../../kube/types.ts';
import { type PodRef, podRef } from '../../pod/names.ts';
import { address, type Message, viewKey } from '../../supervision/address.ts';

/**
 * - `oom`: the kernel killed it for want of memory. `probe`: this node stopped it after a failed probe.
 * - `exit`, `signal`: it ended by itself, or by a signal of an unknown sender.
 * - `start`: it could not be created or started. `image`: its image could not be had.
 * - `evicted`: this node ended the pod. `refused`: this node did not let it in.
 * - `stuck`: it stays where it should not: see {@link StuckAt}.
 */
export type DeathKind = 'oom' | 'probe' | 'exit' | 'signal' | 'start' | 'image' | 'evicted' | 'refused' | 'stuck';
export type StuckAt = 'pulling' | 'mounting' | 'sandbox' | 'creating' | 'terminating' | 'unmounting' | 'quarantined';

export interface ContainerEnd {
  exitCode: number;
  signal: number;
  reason: string;
  message: string;
  /** Wall ms; 0: the runtime did not say. */
  startedAtMs: number;
  finishedAtMs: number;
  /** Without the runtime's name before it. */
  containerId: string;
}

/** What was seen of one death, before anything was gathered about it. */
export interface Death {
  kind: DeathKind;
  pod: PodRef;
  /** Who made the pod, `KIND/NAME` of its controller; '': nobody. */
  owner: string;
  /** '' for a pod as a whole. */
  container: string;
  init: boolean;
  /** Wall ms. */
  atMs: number;
  /** The same death is kept once. */
  key: string;
  /** Where it is stuck, or the reason that a status gives. */
  reason: string;
  message: string;
  restartCount: number;
  image: string;
  end?: ContainerEnd;
  /** Only what is known of it later tells whether it is one: it ended with code 0. */
  doubtful?: boolean;
  /** Since when it is stuck. */
  sinceMs?: number;
}

/** What a death of this pod begins with. */
export function deathOf(pod: Pod, kind: DeathKind, atMs: number): Death {
  const controller = pod.metadata.ownerReferences?.find((o) => o.controller === true);
  return {
    kind,
    pod: podRef(pod),
    owner: controller === undefined ? '' : `${controller.kind}/${controller.name}`,
    ...{ container: '', init: false, atMs, key: '', reason: '', message: '', restartCount: 0, image: '' },
  };
}

/** What a list shows of a bundle. The first line of its file. */
export interface DeathHead {
  id: string;
  kind: DeathKind;
  pod: PodRef;
  owner: string;
  container: string;
  atMs: number;
  key: string;
  /** In plain words, one line. */
  title: string;
  /** Which one of its loop it is, from 1, as far as this node knows. */
  nth: number;
}

export type DeathsEvent = Message & { type: 'deaths.seen'; deaths: readonly Death[] };

export const deathsAddr = address<DeathsEvent>('node/reclaim/deaths');
/** The bundles that are kept, the oldest first. */
export const deathsView = viewKey<readonly DeathHead[]>('deaths');

/** Where bundles are, below the root directory. */
export function deathsDir(rootDir: string): string {
  return `${rootDir.replace(/\/+$/, '')}/actorlet/deaths`;
}
const ID = /^[0-9]{8}-[0-9]{6}-[0-9a-f]{6}$/;
export function isDeathId(text: string): boolean {
  return ID.test(text);
}
export const DEATH_FILE = /^([0-9]{8}-[0-9]{6}-[0-9a-f]{6})\.json$/;

/** `20261129-081530-3f2a9c`: sorts by time, and needs no quotes in a shell. */
export function deathId(atMs: number, digest: string): string {
  const at = new Date(atMs).toISOString();
  return `${at.slice(0, 10).replaceAll('-', '')}-${at.slice(11, 19).replaceAll(':', '')}-${digest.slice(0, 6)}`;
}

/** Deaths of the same loop: one container of one pod that fails in one way. Refused pods are replaced under new names: their owner counts. */
export function loopOf({ pod, owner, container, kind }: Pick<DeathHead, 'pod' | 'owner' | 'container' | 'kind'>): string {
  if (kind === 'refused') return JSON.stringify([pod.namespace, owner === '' ? pod.name : owner, kind]);
  const family = kind === 'oom' || kind === 'probe' || kind === 'exit' || kind === 'signal' ? 'end' : kind;
  return JSON.stringify([pod.uid, container, family]);
}
