/**
 * The status of the node behind the border. The tree patches what it would have otherwise, so each field of its patch is a difference,
 * and the kubelet has some time to write it. Heartbeats are looked at apart: both programs have their own times for these.
 */
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { KIND_FACTS } from '../kinds.ts';
import type { Wanted } from '../wanted.ts';
import { missingOf } from './shows.ts';

/** A kubelet looks at its node every 10 s, and writes at once what changed. */
const CHANGE_BOUND_MS = 60_000;
/** The tree looks again after 10 s. It is not to wait for as long: it would take the server for dead. */
export const NODE_WAIT_MS = 8_000;

/** Of the program itself: each has its own. */
const OF_THE_PROGRAM: readonly string[] = ['kubeletVersion', 'kubeProxyVersion'];

export interface NodeWish extends Wanted {
  /** What the object lacks of it, in words. */
  missing(node: KubeObject, nowMs: number): string[];
}

export function nodeWish({ metadata, status }: Record<string, unknown>, node: KubeObject | undefined): NodeWish {
  const change = { ...(metadata === undefined ? {} : { metadata }), ...(status === undefined ? {} : { status: ofTheNode(status) }) };
  const wish = { kind: 'NodeStatus' as const, pod: '', uid: '' };
  if (node !== undefined && missingOf(change, node).length === 0) {
    const isOld = (now: KubeObject, nowMs: number): boolean => nowMs - heartbeatMs(now) > KIND_FACTS.NodeStatus.boundMs;
    const missing: NodeWish['missing'] = (now, nowMs) => (isOld(now, nowMs) ? [`the last heartbeat is ${heartbeatOf(now)}`] : []);
    return { ...wish, what: 'renewed the heartbeats of the node', missing };
  }
  return { ...wish, what: 'written the status of the node', boundMs: CHANGE_BOUND_MS, missing: (now) => missingOf(change, now) };
}

function ofTheNode(status: unknown): unknown {
  if (!isRecord(status) || !isRecord(status.nodeInfo)) return status;
  return { ...status, nodeInfo: Object.fromEntries(Object.entries(status.nodeInfo).filter(([name]) => !OF_THE_PROGRAM.includes(name))) };
}

function heartbeatOf(node: KubeObject): string {
  const ms = heartbeatMs(node);
  return ms === 0 ? 'absent' : `of ${new Date(ms).toISOString()}`;
}
function heartbeatMs({ status }: KubeObject): number {
  const { conditions } = isRecord(status) ? status : {};
  const times = Array.isArray(conditions)
    ? conditions.map((c: unknown) => (isRecord(c) ? Date.parse(String(c.lastHeartbeatTime)) : 0))
    : [];
  return Math.max(0, ...times.filter((t) => t > 0));
}
