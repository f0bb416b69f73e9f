/** The Node object through the official client, which is loaded only when it is wanted. */

import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { MASKED, shownUrl } from '@actorlet/kubelet/machines/text/shownUrl.ts';
import type { ApiNode } from '@actorlet/shown/src/nodePage.ts';
import type { CoordinationV1Api, CoreV1Api, V1Pod } from '@kubernetes/client-node';

/** The oldest Node.js on which the client's HTTP library runs. */
const NODE_MIN = [22, 19] as const;

/** @throws CtlError on an older Node.js, whose errors from within the client would tell nobody what is wrong. */
export function checkNode(version: string): void {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  if (major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1])) return;
  throw new CtlError(
    EXIT.failed,
    `actorctl node and actorctl delete need Node.js ${NODE_MIN.join('.')} or newer for @kubernetes/client-node; this is ${version}. kubectl does the same on any machine.`,
  );
}

export interface NodeApi {
  core: CoreV1Api;
  coordination: CoordinationV1Api;
  server: string;
  /** Options of a call that patches. */
  merge: Parameters<CoreV1Api['patchNode']>[1];
}

/** `kubeconfig`: '' for $KUBECONFIG or ~/.kube/config, else that of the daemon. */
export async function nodeApi(o: {
  kubeconfig: string;
  fallback: string;
  env: Readonly<Record<string, string | undefined>>;
}): Promise<NodeApi> {
  checkNode(process.version);
  const { KubeConfig, CoreV1Api, CoordinationV1Api, setHeaderOptions, PatchStrategy } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  try {
    if (o.kubeconfig !== '') config.loadFromFile(o.kubeconfig);
    else if ((o.env.KUBECONFIG ?? '') !== '' || o.fallback === '') config.loadFromDefault();
    else config.loadFromFile(o.fallback);
  } catch (error) {
    // The parser quotes the file, which holds credentials.
    const why = error instanceof Error && error.name === 'YAMLException' ? 'it is not YAML' : messageOf(error);
    throw new CtlError(EXIT.failed, `the kubeconfig cannot be read: ${why}; give --kubeconfig FILE, or set KUBECONFIG`);
  }
  return {
    core: config.makeApiClient(CoreV1Api),
    coordination: config.makeApiClient(CoordinationV1Api),
    server: shownUrl(config.getCurrentCluster()?.server ?? ''),
    merge: setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
  };
}

/** Node's `fetch` repeats a URL with the user in it. */
const withoutUser = (text: string): string => text.replaceAll(/:\/\/[^\s/@]*@/g, `://${MASKED}@`);

/** What the API server answered, in one line; never a header or a token. */
export function apiError(error: unknown, what: string): CtlError {
  const { code, body, message } = error as { code?: unknown; body?: unknown; message?: string };
  const said = typeof body === 'string' ? messageIn(body) : (message ?? String(error));
  const exit = code === 404 ? EXIT.no : code === 401 || code === 403 ? EXIT.noPermission : EXIT.failed;
  return new CtlError(
    exit,
    `${what}: ${typeof code === 'number' ? `${code} ` : ''}${withoutUser(said.split('\n', 1)[0] ?? '').slice(0, 500)}`,
  );
}
function messageIn(body: string): string {
  try {
    const { message } = JSON.parse(body) as { message?: unknown };
    return typeof message === 'string' ? message : body;
  } catch {
    return body;
  }
}

const MIRROR = 'kubernetes.io/config.mirror';

export async function podsOf(api: NodeApi, name: string): Promise<V1Pod[]> {
  return (await api.core.listPodForAllNamespaces({ fieldSelector: `spec.nodeName=${name}` })).items;
}
export function isMirror(pod: V1Pod): boolean {
  return pod.metadata?.annotations?.[MIRROR] !== undefined;
}

/** The client gives some times as text, whatever its types say. */
function timeOf(value: unknown): number {
  const ms = typeof value === 'string' || value instanceof Date ? new Date(value).getTime() : 0;
  return Number.isNaN(ms) ? 0 : ms;
}

/** The node as the API server shows it. */
export async function readNode(api: NodeApi, name: string): Promise<ApiNode> {
  const [node, pods, lease] = await Promise.all([
    api.core.readNode({ name }),
    podsOf(api, name),
    api.coordination.readNamespacedLease({ name, namespace: 'kube-node-lease' }).catch((error: unknown) => {
      if ((error as { code?: unknown }).code === 404) return null;
      throw error;
    }),
  ]);
  return {
    uid: node.metadata?.uid ?? '',
    unschedulable: node.spec?.unschedulable === true,
    kubeletVersion: node.status?.nodeInfo?.kubeletVersion ?? '',
    runtimeVersion: node.status?.nodeInfo?.containerRuntimeVersion ?? '',
    conditions: (node.status?.conditions ?? []).map((c) => ({
      type: c.type,
      status: c.status,
      reason: c.reason ?? '',
      message: c.message ?? '',
    })),
    taints: (node.spec?.taints ?? []).map((t) => `${t.key}${t.value ? `=${t.value}` : ''}:${t.effect}`),
    lease: lease === null ? null : { renewMs: timeOf(lease.spec?.renewTime), durationS: lease.spec?.leaseDurationSeconds ?? 0 },
    pods: pods.map((p) => ({
      uid: p.metadata?.uid ?? '',
      namespace: p.metadata?.namespace ?? '',
      name: p.metadata?.name ?? '',
      phase: p.status?.phase ?? '',
      mirror: isMirror(p),
      deleting: p.metadata?.deletionTimestamp !== undefined,
    })),
  };
}
