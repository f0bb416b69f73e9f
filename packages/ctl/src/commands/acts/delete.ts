/** `actorctl delete pod`: pods of the API server are deleted there; a static pod is deleted by its manifest alone. */
import { setTimeout as sleep } from 'node:timers/promises';
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { deleteRefused } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { printable } from '@actorlet/kubelet/machines/text/table.ts';
import type { NodeFactsPage } from '@actorlet/shown/src/nodePage.ts';
import type { PodSummary } from '@actorlet/shown/src/pods/podSummary.ts';
import { type Asked, type Command, printNames } from '../../asked.ts';
import { attach, type NodeArgs } from '../node.ts';
import { apiError, type NodeApi } from '../nodeApi.ts';
import { named, uidOf } from '../show/show.ts';

export interface DeleteArgs extends NodeArgs {
  /** Never empty. */
  names: readonly string[];
  /** Undefined: the pod's own. */
  graceSeconds: number | undefined;
  wait: boolean;
  timeoutMs: number;
}
/** Between two looks at a pod that ends. */
const LOOK_MS = 500;

type Leaving = Pick<PodSummary, 'uid' | 'namespace' | 'name'>;

/** Nothing is deleted unless each of the names can be. */
export function deletePods(args: DeleteArgs): Command {
  return async (asked) => {
    const { pods } = (await asked.client.json('/pods')) as { pods: readonly PodSummary[] };
    const uids = new Set(args.names.map((name) => uidOf(named(name, asked), pods)));
    const meant = pods.filter((p) => uids.has(p.uid));
    for (const pod of meant) if (pod.source !== 'api') throw new CtlError(EXIT.no, await elsewhere(pod, asked));
    const { api, known } = await attach(asked, args);
    for (const pod of meant) await deletePod(pod, { api, asked, args });
    const deadlineMs = asked.io.nowMs() + args.timeoutMs;
    for (const pod of args.wait ? meant : []) await gone(pod, { api, node: known.name, asked, deadlineMs });
    return EXIT.ok;
  };
}

/** What ends a pod that the API server has no say in. */
async function elsewhere(pod: PodSummary, asked: Asked): Promise<string> {
  const { source, removed } = pod;
  const who = `${pod.namespace}/${pod.name}`;
  const manifest = source === 'file' ? await fileOf(pod.uid, asked) : source === 'http' ? await urlOf(asked) : '';
  const why = deleteRefused({ source, removed, who, manifest }) ?? '';
  return source === 'runtime' || removed ? `${why}: actorctl why ${printable(who)}` : why;
}

async function fileOf(uid: string, { client }: Asked): Promise<string> {
  const { pods } = (await client.json('/node')) as NodeFactsPage;
  return pods.find((p) => p.uid === uid)?.manifest ?? 'in staticPodPath';
}

/** Without a user and a query, which may be secrets. */
async function urlOf({ client }: Asked): Promise<string> {
  const { kubeletconfig } = (await client.json('/configz')) as { kubeletconfig?: { staticPodURL?: string } };
  const url = URL.parse(kubeletconfig?.staticPodURL ?? '');
  return url === null ? 'staticPodURL' : `${url.origin}${url.pathname}`;
}

/** `uid`: a pod of the same name that came after it, or is of another cluster, is not meant. */
async function deletePod({ uid, namespace, name }: Leaving, o: { api: NodeApi; asked: Asked; args: DeleteArgs }): Promise<void> {
  const { graceSeconds } = o.args;
  const body = { preconditions: { uid }, ...(graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds }) };
  await o.api.core.deleteNamespacedPod({ name, namespace, body }).catch((error: unknown) => {
    throw apiError(error, `pod ${printable(`${namespace}/${name}`)} cannot be deleted at ${o.api.server}`);
  });
  if (o.asked.format === 'name') printNames(o.asked, 'pod', [name]);
  else o.asked.io.out(`pod "${printable(name)}" deleted from ${printable(namespace)} namespace\n`);
}

async function gone({ uid, namespace, name }: Leaving, o: { api: NodeApi; node: string; asked: Asked; deadlineMs: number }): Promise<void> {
  const { io } = o.asked;
  const fieldSelector = `spec.nodeName=${o.node},metadata.name=${name}`;
  const who = printable(`${namespace}/${name}`);
  for (;;) {
    // A list: once a pod is gone, the API server refuses that its node reads it by name (403, not 404).
    const list = await o.api.core.listNamespacedPod({ namespace, fieldSelector }).catch((error: unknown) => {
      throw apiError(error, `pod ${who} is being deleted, and whether it is gone cannot be read`);
    });
    const left = list.items.find((p) => p.metadata?.uid === uid);
    if (left === undefined) return;
    if (io.nowMs() >= o.deadlineMs) {
      const held = left.metadata?.finalizers ?? [];
      const why = held.length === 0 ? '' : ` (finalizers: ${printable(held.join(', '))})`;
      throw new CtlError(EXIT.failed, `pod ${who} is still being deleted${why}: actorctl why ${who}`);
    }
    await sleep(LOOK_MS, undefined, { signal: io.signal }).catch(() => undefined);
    if (io.signal.aborted) throw new CtlError(EXIT.interrupted, `interrupted; pod ${who} is still being deleted.`);
  }
}
