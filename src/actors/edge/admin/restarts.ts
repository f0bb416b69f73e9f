/** A restart of pods that a person asks for: each pod's worker is asked, and none unless all of them can be. */

import { findPod, recordMeant } from '../../../machines/edge/findPod.ts';
import { podRef } from '../../../machines/pod/names.ts';
import type { AskedOver, RestartAnswer, RestartedPod } from '../../../machines/pod/restart/asked.ts';
import { waitingPodsView } from '../../../machines/pods/admission/messages.ts';
import { type PodRecord, podsView, restartRefused } from '../../../machines/pods/manager/messages.ts';
import { type WorkerEvent, workersAddr } from '../../../machines/pods/workers/messages.ts';
import type { Registry } from '../../supervision/types.ts';

export interface RestartWish {
  /** Never empty. UIDs, names or `namespace/name`. */
  pods: readonly string[];
  /** '' = all that may start again. */
  container: string;
  over: AskedOver;
}
export type RestartResult = { ok: true; pods: readonly RestartedPod[] } | { ok: false; status: number; why: string };

interface Asking {
  registry: Pick<Registry, 'read' | 'ask'>;
  /** Path of the actor that asks, and the time. */
  by: string;
  nowMs: number;
  signal?: AbortSignal;
}
/** A worker answers in the step in which it hears of it. */
const TIMEOUT_MS = 5_000;

export async function askRestart(wish: RestartWish, at: Asking): Promise<RestartResult> {
  const records = at.registry.read(podsView)?.value.records;
  if (records === undefined) return { ok: false, status: 503, why: 'the node has no list of its pods yet; ask again' };
  const meant = new Map<string, PodRecord>();
  for (const query of wish.pods) {
    const found = findPod(query, records);
    if (found.kind === 'many') return { ok: false, status: 400, why: `${query} fits several pods: ${found.names.join(', ')}` };
    if (found.kind === 'none') return { ok: false, ...notFound(query, records, at) };
    const why = restartRefused(found.record, wish.container);
    if (why !== null) return { ok: false, status: 409, why: `${nameOf(found.record)} is not restarted: ${why}` };
    meant.set(found.uid, found.record);
  }
  const pods = await Promise.all([...meant].map(([uid, record]) => askOne({ uid, record }, wish, at)));
  const [only] = pods;
  if (pods.length === 1 && only?.ok === false)
    return { ok: false, status: only.later ? 503 : 409, why: `pod ${only.namespace}/${only.name} is not restarted: ${only.why}` };
  return { ok: true, pods };
}

function nameOf({ pod: { metadata } }: PodRecord): string {
  return `pod ${metadata.namespace}/${metadata.name}`;
}

function notFound(query: string, records: ReadonlyMap<string, PodRecord>, { registry }: Asking): { status: number; why: string } {
  const candidate = registry.read(waitingPodsView)?.value.get(query);
  if (candidate === undefined)
    return { status: 404, why: `no pod called ${JSON.stringify(query)} on this node${recordMeant(query, records)}` };
  const { namespace, name } = candidate.pod.metadata;
  return { status: 409, why: `pod ${namespace}/${name} is not restarted: nothing of it runs, since this node has not let it in yet` };
}

async function askOne({ uid, record }: { uid: string; record: PodRecord }, wish: RestartWish, at: Asking): Promise<RestartedPod> {
  const { namespace, name } = podRef(record.pod);
  const { container, over } = wish;
  const answer = await at.registry.ask<WorkerEvent, RestartAnswer>(
    workersAddr,
    (replyTo) => ({
      ...{ type: 'pod.restart', uid, life: record.life ?? 0, container, over, replyTo },
      causes: [{ atMs: at.nowMs, by: at.by, what: `a person asked for its restart over ${over}` }],
    }),
    { timeoutMs: TIMEOUT_MS, ...(at.signal === undefined ? {} : { signal: at.signal }) },
  );
  const of = { uid, namespace, name };
  if (answer.kind === 'reply') return { ...of, ...answer.value };
  const why =
    answer.kind === 'refused'
      ? `its worker takes no question: ${answer.reason}`
      : `its worker gave no answer (${answer.reason}), so it may restart all the same: actorctl why ${namespace}/${name}`;
  return { ...of, ok: false, later: true, why };
}
