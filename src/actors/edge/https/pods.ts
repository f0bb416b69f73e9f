/** From what a request names to what the node and its runtime have: pods, running containers, sandboxes. */

import type { ServerEvent } from '../../../machines/edge/messages.ts';
import { pickContainer } from '../../../machines/edge/podLogs.ts';
import { isWanted, type PodRecord, podManagerAddr, podsView } from '../../../machines/pods/manager/messages.ts';
import { CRI_LABELS, type CriContainer, type PodSandbox } from '../../../machines/wire/cri.ts';
import type { HttpReply } from '../../../ports/sockets/net.ts';
import type { CriClient } from '../../runtime/client.ts';
import type { ActorCtx } from '../../supervision/types.ts';
import { text } from '../answers/answers.ts';
import { readView } from '../answers/views.ts';
import type { Inspect } from '../server.ts';

export type Found<T> = { ok: true; value: T } | { ok: false; reply: HttpReply };

/**
 * The pod of that name. Of several (one ends while its successor waits) the one that is wanted; orphans that only the
 * runtime knows are not found. `uid` '' means any.
 */
export function findPodByName(
  from: { ctx: ActorCtx<ServerEvent> } & Pick<Inspect, 'stateAt'>,
  name: { namespace: string; pod: string; uid: string },
): Found<PodRecord> {
  const pods = readView({ registry: from.ctx.registry, stateAt: from.stateAt }, podsView, podManagerAddr.path);
  if (!pods.ok) return pods;
  let found: PodRecord | undefined;
  for (const record of pods.value.records.values()) {
    const { metadata } = record.pod;
    if (record.source === 'runtime' || metadata.name !== name.pod || metadata.namespace !== name.namespace) continue;
    if (name.uid !== '' && metadata.uid !== name.uid) continue;
    if (found === undefined || (!isWanted(found) && isWanted(record))) found = record;
  }
  if (found === undefined) return { ok: false, reply: text(`pod does not exist: ${name.namespace}/${name.pod}\n`, 404) };
  return { ok: true, value: found };
}

/** The newest running instance, asked of the runtime: a status may be a moment old. Undefined when none runs. */
export async function runningContainer(
  cri: CriClient,
  o: { record: PodRecord; container: string; signal: AbortSignal },
): Promise<CriContainer | undefined> {
  const labelSelector = { [CRI_LABELS.podUid]: o.record.pod.metadata.uid, [CRI_LABELS.containerName]: o.container };
  const filter = { state: { state: 'CONTAINER_RUNNING' as const }, labelSelector };
  const { containers } = await cri.read('ListContainers', { filter }, { signal: o.signal });
  return newest(containers.filter((c) => c.state === 'CONTAINER_RUNNING'));
}

export async function readySandbox(cri: CriClient, o: { record: PodRecord; signal: AbortSignal }): Promise<PodSandbox | undefined> {
  const filter = { state: { state: 'SANDBOX_READY' as const }, labelSelector: { [CRI_LABELS.podUid]: o.record.pod.metadata.uid } };
  const { items } = await cri.read('ListPodSandbox', { filter }, { signal: o.signal });
  return newest(items.filter((s) => s.state === 'SANDBOX_READY'));
}

function newest<T extends { createdAt: string }>(items: readonly T[]): T | undefined {
  return items.reduce<T | undefined>(
    (best, c) => (best === undefined || BigInt(c.createdAt) > BigInt(best.createdAt) ? c : best),
    undefined,
  );
}

/** Whether the definition has that container, of any kind. */
export function hasContainer(record: PodRecord, container: string): boolean {
  return container !== '' && pickContainer(record, container).ok;
}
