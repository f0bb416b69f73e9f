/** What the files of a volume are made of: objects of the API are asked for, and its files follow from them. */

import { type ObjectAnswer, type ObjectQuery, type ObjectSource, type Objects, queryKey } from '../../../../machines/kube/objects.ts';
import type { Pod } from '../../../../machines/kube/types.ts';
import type { NodeFacts } from '../../../../machines/nodeFacts.ts';
import type { Files } from '../../../../machines/pod/volumes/kinds/files/files.ts';
import { commonUser } from '../../../../machines/pod/volumes/volumes.ts';
import { buildPayload, objectsNeeded, type Payload } from '../../../../machines/services/volumes/payload.ts';
import type { SetUpJob } from '../../../../machines/services/volumes/volumeMachine.ts';
import { handlingPod } from '../../../../ports/handling.ts';
import type { Ports } from '../../../../ports/ports.ts';

export type FilesJob = SetUpJob & { source: Files };

/** `objects` null: this node has no API. */
export async function askObjects(objects: ObjectSource | null, { pod, source, volume }: FilesJob, signal: AbortSignal): Promise<Objects> {
  const queries = objectsNeeded(source.sources);
  const answers = await Promise.all(
    queries.map((q) => (objects === null ? noApi(q) : ask(objects, { pod, volume: volume.name, q }, signal))),
  );
  return new Map(queries.map((q, i) => [queryKey(q), answers[i] as ObjectAnswer]));
}

function noApi({ kind }: ObjectQuery): ObjectAnswer {
  return { kind, result: { kind: 'failed', message: `this node has no API to ask for a ${kind}` } };
}

async function ask(
  objects: ObjectSource,
  { pod, volume, q }: { pod: Pod; volume: string; q: ObjectQuery },
  signal: AbortSignal,
): Promise<ObjectAnswer> {
  switch (q.kind) {
    case 'secret':
      return { kind: 'secret', result: await objects.secret(pod, q.name, signal) };
    case 'configMap':
      return { kind: 'configMap', result: await objects.configMap(pod, q.name, signal) };
    case 'token': {
      const { namespace, name, uid } = pod.metadata;
      const request = {
        namespace,
        serviceAccount: pod.spec.serviceAccountName || 'default',
        audiences: q.audience === '' ? [] : [q.audience],
        expirationSeconds: q.expirationSeconds,
        pod: { name, uid },
      };
      return { kind: 'token', result: await objects.token(request, signal) };
    }
    case 'trustAnchors':
      return { kind: 'trustAnchors', result: await objects.trustAnchors(q, signal) };
    case 'podCertificate': {
      const { namespace, name, uid } = pod.metadata;
      const { kind, ...query } = q;
      const certificate = { ...query, pod: { namespace, name, uid }, serviceAccount: pod.spec.serviceAccountName || 'default', volume };
      return { kind, result: await objects.podCertificate(certificate, signal) };
    }
  }
}

/** Throws with what is missing. */
export function payloadOf(o: { ports: Ports; facts(): NodeFacts }, { pod, source }: FilesJob, objects: Objects): Payload {
  const facts = o.facts();
  const built = handlingPod(o.ports, pod.metadata.uid, () => buildPayload({ pod, source, objects, facts, user: commonUser(pod) }));
  if (!built.ok) throw new Error(built.message);
  return built.value;
}

export function keysOf(objects: Objects): number {
  let keys = 0;
  for (const { kind, result } of objects.values()) {
    if ((kind === 'secret' || kind === 'configMap') && result.kind === 'found') keys += Object.keys(result.value.data).length;
  }
  return keys;
}
