/**
 * What the page may do to a pod, where `--actorlet-inspect-actions` allows it: a restart as `actorctl restart pod`, a deletion as
 * `actorctl delete pod`. With `preview` nothing is done: it is said what would be.
 */
import { askRestart } from '@actorlet/kubelet/actors/edge/admin/restarts.ts';
import type { Inspected } from '@actorlet/kubelet/actors/recorder/source.ts';
import { failureText, kubePath } from '@actorlet/kubelet/machines/kube/request.ts';
import { type RestartedPod, restartPreview } from '@actorlet/kubelet/machines/pod/restart/asked.ts';
import { deleteRefused, isWanted, type PodRecord, podsView, restartRefused } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { manifestOf, manifestsView } from '@actorlet/kubelet/machines/pods/podConfig/messages.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';

/** Null: a node without an API server. */
export interface PodActsOver {
  kube: Pick<KubeApi, 'server' | 'request'> | null;
}
export type PodAct = 'restart' | 'delete';
export interface PodActAnswer {
  status: number;
  /** Of a preview, whose status is 200 either way. */
  can: boolean;
  /** What happens, or would; or why it does not. */
  lines: readonly string[];
}
const no = (status: number, why: string): PodActAnswer => ({ status, can: false, lines: [why] });
const yes = (...lines: readonly string[]): PodActAnswer => ({ status: 200, can: true, lines });
interface Wish {
  uid: string;
  /** Of a restart: '' = all that may start again. */
  container: string;
  preview: boolean;
}

const BY = 'inspection page';
const TIMEOUT_MS = 20_000;
/** Of the kubelet, where a pod says nothing. */
const GRACE_SECONDS = 30;

/** `body`: JSON {uid, container?, preview?}. */
export async function actOnPod(node: Inspected, over: PodActsOver, o: { act: PodAct; body: string }): Promise<PodActAnswer> {
  const wish = parse(o.body);
  if (wish === null) return no(400, 'expected JSON {uid, container?, preview?}');
  const record = node.tree.registry.read(podsView)?.value.records.get(wish.uid);
  if (record === undefined) return no(wish.preview ? 200 : 404, 'this pod is not on the node (any more)');
  return o.act === 'restart' ? restart(node, wish, record) : remove(node, { ...wish, record, ...over });
}

function parse(body: string): Wish | null {
  try {
    const value: unknown = JSON.parse(body);
    if (!isRecord(value)) return null;
    const { uid, container = '', preview = false } = value;
    return typeof uid === 'string' && typeof container === 'string' && typeof preview === 'boolean' ? { uid, container, preview } : null;
  } catch {
    return null;
  }
}

function graceOf({ pod: { spec } }: PodRecord): string {
  return `They have up to ${spec.terminationGracePeriodSeconds ?? GRACE_SECONDS} s to end, and preStop hooks run.`;
}

// ---- restart -------------------------------------------------------------------------------------------------------

async function restart(node: Inspected, { uid, container, preview }: Wish, record: PodRecord): Promise<PodActAnswer> {
  if (preview) {
    const refused = restartRefused(record, container);
    if (refused !== null) return no(200, `This pod cannot be restarted: ${refused}`);
    const { names, left } = restartPreview(record.pod, container);
    return yes(
      `These containers end and start again in place: ${names.join(', ')}.`,
      graceOf(record),
      ...left.map(({ name, why }) => `Container ${name} is left as it is: ${why}.`),
    );
  }
  const at = { registry: node.tree.registry, by: BY, nowMs: node.clock.wallMs() };
  const result = await askRestart({ pods: [uid], container, over: 'the inspection page' }, at);
  if (!result.ok) return no(result.status, result.why);
  for (const { ok: _, ...pod } of result.pods) node.log.info(pod, 'a person asked for the restart of a pod over the inspection page');
  return yes(...result.pods.flatMap(saidOf));
}

function saidOf(pod: RestartedPod): string[] {
  if (!pod.ok) return [pod.why];
  const named = (how: string) => pod.containers.flatMap((c) => (c.how === how ? [c.name] : [])).join(', ');
  const [ends, starts, isStarting] = [named('ends'), named('starts'), named('isStarting')];
  return [
    ...(ends === '' ? [] : [`${ends}: ends, and starts again`]),
    ...(starts === '' ? [] : [`${starts}: starts now`]),
    ...(isStarting === '' ? [] : [`${isStarting}: is starting already`]),
    ...pod.left.map(({ name, why }) => `${name}: left as it is, ${why}`),
  ];
}

// ---- deletion ------------------------------------------------------------------------------------------------------

interface Removal extends Wish, PodActsOver {
  record: PodRecord;
}

async function remove(node: Inspected, { preview, record, kube }: Removal): Promise<PodActAnswer> {
  const { uid, namespace, name, ownerReferences = [] } = record.pod.metadata;
  const { source } = record;
  const manifests = node.tree.registry.read(manifestsView)?.value;
  const manifest = source === 'file' ? (manifestOf(manifests, { namespace, name }) ?? 'in staticPodPath') : 'staticPodURL';
  const refused = deleteRefused({ source, removed: !isWanted(record), who: `${namespace}/${name}`, manifest });
  if (refused !== null) return no(preview ? 200 : 409, `This pod cannot be deleted here: ${refused}`);
  if (kube === null) return no(preview ? 200 : 409, 'This node has no API server that could delete it.');
  if (preview) {
    const owner = ownerReferences.find((o) => o.controller === true);
    return yes(
      `The API server at ${kube.server} deletes the pod, and this node ends its containers.`,
      graceOf(record),
      owner === undefined ? 'It has no controller that makes another.' : `Its controller, ${owner.kind} ${owner.name}, may make another.`,
    );
  }
  // By its UID: a pod of the same name that came after it is not meant.
  const request = { verb: 'DELETE' as const, path: kubePath.pod(namespace, name), body: { preconditions: { uid } } };
  const answer = await kube.request(request, { timeoutMs: TIMEOUT_MS, signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (!answer.ok) return no(502, `pod ${namespace}/${name} is not deleted: ${failureText(request, answer.failure)}`);
  node.log.info({ uid, namespace, name }, 'a person deleted a pod over the inspection page');
  return yes('The API server deletes it.');
}
