/** `actorctl node`: the Node object beside what its daemon knows; cordon, uncordon and drain. */
import { setTimeout as sleep } from 'node:timers/promises';
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { clockTime, shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';
import { renderTable } from '@actorlet/kubelet/machines/text/table.ts';
import { compareNode, type NodeFactsPage } from '@actorlet/shown/src/nodePage.ts';
import type { V1Pod } from '@kubernetes/client-node';
import { type Asked, type Command, print, printData, wantsData, widthOf } from '../asked.ts';
import type { CtlIo } from '../io.ts';
import { apiError, isMirror, type NodeApi, nodeApi, podsOf, readNode } from './nodeApi.ts';

export interface NodeArgs {
  kubeconfig: string;
}

/** @throws CtlError of a standalone node. */
export async function attach({ io, client }: Asked, { kubeconfig }: NodeArgs): Promise<{ known: NodeFactsPage; api: NodeApi }> {
  const known = (await client.json('/node')) as NodeFactsPage;
  if (known.api === null && kubeconfig === '') {
    throw new CtlError(EXIT.no, `${known.name} is a standalone node: its daemon has no --kubeconfig, so no API server knows it.`);
  }
  return { known, api: await nodeApi({ kubeconfig, fallback: known.kubeconfig, env: io.env }) };
}

/** 1 where the two sides differ. */
export function showNode(args: NodeArgs): Command {
  return async (asked) => {
    const { known, api } = await attach(asked, args);
    const node = await readNode(api, known.name).catch((error: unknown) => {
      throw apiError(error, `node ${known.name} at ${api.server}`);
    });
    const rows = compareNode(known, node, asked.io.nowMs());
    const differ = rows.filter((r) => r.differs).length;
    if (wantsData(asked.format)) {
      printData(asked, { daemon: known, api: node, compared: rows });
      return differ === 0 ? EXIT.ok : EXIT.no;
    }
    const about = [
      `Node ${known.name} at ${api.server}${node.unschedulable ? ', cordoned' : ''}${node.taints.length > 0 ? `, taints ${node.taints.join(' ')}` : ''}`,
      `daemon up ${shortDuration(asked.io.nowMs() - known.startedAtMs)}, API server ${known.api?.state ?? 'not used'}${known.api?.reason ? `: ${known.api.reason}` : ''}`,
    ];
    const table = renderTable(
      ['', 'WHAT', 'API SERVER', 'DAEMON'],
      rows.map((r) => [r.differs ? '!' : '', r.what, r.api, r.daemon]),
      { widthMax: widthOf(asked) },
    );
    print(asked, [...about, '', ...table, '', differ === 0 ? 'Both sides agree.' : `${differ} of ${rows.length} differ (!).`]);
    return differ === 0 ? EXIT.ok : EXIT.no;
  };
}

export function cordon(args: NodeArgs & { unschedulable: boolean }): Command {
  return async (asked) => {
    const { known, api } = await attach(asked, args);
    await setUnschedulable(api, known.name, args.unschedulable);
    asked.io.out(`node ${known.name} ${args.unschedulable ? 'cordoned' : 'uncordoned'}\n`);
    return EXIT.ok;
  };
}

async function setUnschedulable(api: NodeApi, name: string, unschedulable: boolean): Promise<void> {
  // Null takes the field away, as kubectl does.
  const body = { spec: { unschedulable: unschedulable ? true : null } };
  await api.core.patchNode({ name, body }, api.merge).catch((error: unknown) => {
    throw apiError(error, `node ${name} cannot be changed`);
  });
}

export interface DrainArgs extends NodeArgs {
  /** Pods that nothing will make again. */
  force: boolean;
  ignoreDaemonsets: boolean;
  deleteEmptydirData: boolean;
  timeoutMs: number;
}
/** A pod that a disruption budget holds is asked for again this often. */
const AGAIN_MS = 5_000;
const LOOK_MS = 1_000;

export function drain(args: DrainArgs): Command {
  return async (asked) => {
    const { io } = asked;
    const { known, api } = await attach(asked, args);
    const pods = await podsOf(api, known.name).catch((error: unknown) => {
      throw apiError(error, `pods of ${known.name} cannot be listed`);
    });
    const leaving = toEvict(pods, args);
    await setUnschedulable(api, known.name, true);
    io.out(`node ${known.name} cordoned\n`);
    const deadlineMs = io.nowMs() + args.timeoutMs;
    for (const pod of leaving) await evict(pod, { api, io, deadlineMs });
    await gone(leaving, { api, io, deadlineMs, name: known.name });
    io.out(`node ${known.name} drained, ${leaving.length} pods evicted\n`);
    return EXIT.ok;
  };
}

/** @throws CtlError naming every pod that must not go without being asked for. */
function toEvict(pods: readonly V1Pod[], args: DrainArgs): V1Pod[] {
  const leaving: V1Pod[] = [];
  const held: string[] = [];
  for (const pod of pods) {
    const over = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
    const owner = pod.metadata?.ownerReferences?.find((r) => r.controller === true);
    if (isMirror(pod)) continue;
    if (owner?.kind === 'DaemonSet' && !over) {
      if (!args.ignoreDaemonsets) held.push(`${nameOf(pod)} belongs to a DaemonSet (--ignore-daemonsets)`);
      continue;
    }
    if (owner === undefined && !over && !args.force) held.push(`${nameOf(pod)} has no controller and is lost (--force)`);
    else if (!over && !args.deleteEmptydirData && pod.spec?.volumes?.some((v) => v.emptyDir !== undefined))
      held.push(`${nameOf(pod)} has an emptyDir, whose data is lost (--delete-emptydir-data)`);
    else leaving.push(pod);
  }
  if (held.length > 0) throw new CtlError(EXIT.no, `nothing was done:\n  ${held.join('\n  ')}`);
  return leaving;
}

function nameOf(pod: V1Pod): string {
  return `${pod.metadata?.namespace}/${pod.metadata?.name}`;
}

interface Draining {
  api: NodeApi;
  io: CtlIo;
  deadlineMs: number;
}

async function evict(pod: V1Pod, o: Draining): Promise<void> {
  const { name = '', namespace = '' } = pod.metadata ?? {};
  for (;;) {
    try {
      await o.api.core.createNamespacedPodEviction({ name, namespace, body: { metadata: { name, namespace } } });
      o.io.out(`pod ${nameOf(pod)} evicted\n`);
      return;
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (code === 404) return;
      // 429: its disruption budget does not allow it now.
      if (code !== 429) throw apiError(error, `pod ${nameOf(pod)} cannot be evicted`);
      if (o.io.nowMs() + AGAIN_MS > o.deadlineMs) throw apiError(error, `pod ${nameOf(pod)} was not evicted in time`);
      progress(o.io, `${nameOf(pod)} waits for its disruption budget`);
    }
    await rest(o, AGAIN_MS);
  }
}

async function gone(leaving: readonly V1Pod[], o: Draining & { name: string }): Promise<void> {
  const waiting = new Set(leaving.map((p) => p.metadata?.uid));
  for (;;) {
    const left = (await podsOf(o.api, o.name)).filter((p) => waiting.has(p.metadata?.uid));
    if (left.length === 0) return;
    if (o.io.nowMs() > o.deadlineMs) {
      throw new CtlError(EXIT.failed, `${left.length} pods did not end in time: ${left.map(nameOf).join(', ')}`);
    }
    progress(o.io, `${left.length} of ${leaving.length} pods are still ending`);
    await rest(o, LOOK_MS);
  }
}

/** On a terminal only. */
function progress(io: CtlIo, text: string): void {
  if (io.columns > 0) io.err(`${clockTime(io.nowMs()).slice(0, 8)} ${text}\n`);
}

async function rest({ io }: Draining, ms: number): Promise<void> {
  await sleep(ms, undefined, { signal: io.signal }).catch(() => undefined);
  if (io.signal.aborted) throw new CtlError(EXIT.interrupted, 'interrupted; the node stays cordoned.');
}
