/**
 * A controller with a bug to find: it keeps the ConfigMap `site-copy` equal to `site`. It lists, then watches from the newest version that
 * it has ever seen. After a stale list that is too far: it writes what is old, and the changes between the two versions never come.
 */
import { CoreV1Api, KubeConfig, type V1ConfigMap, Watch } from '@kubernetes/client-node';

const namespace = 'default';
const path = `/api/v1/namespaces/${namespace}/configmaps`;
const config = new KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(CoreV1Api);

let site: V1ConfigMap | undefined;
let seen = 0;
let written: string | undefined;

/** Gives the version to watch from. */
async function list(): Promise<number> {
  const { items, metadata } = await core.listNamespacedConfigMap({ namespace, resourceVersion: '0' });
  site = items.find((item) => item.metadata?.name === 'site');
  const listed = Number(metadata?.resourceVersion);
  seen = Math.max(seen, listed);
  return seen;
}

/** Until the watch ends. */
function watch(from: number): Promise<void> {
  return new Promise((resolve) => {
    const onEvent = (phase: string, object: V1ConfigMap): void => {
      if (phase === 'ERROR') return;
      seen = Math.max(seen, Number(object.metadata?.resourceVersion));
      if (object.metadata?.name === 'site') site = phase === 'DELETED' ? undefined : object;
    };
    new Watch(config).watch(path, { resourceVersion: String(from) }, onEvent, () => resolve()).catch(() => resolve());
  });
}

async function reconcile(): Promise<void> {
  const text = site?.data?.text;
  if (text === undefined || text === written) return;
  const body: V1ConfigMap = { metadata: { name: 'site-copy' }, data: { text } };
  const { items } = await core.listNamespacedConfigMap({ namespace, fieldSelector: 'metadata.name=site-copy' });
  if (items.length === 0) await core.createNamespacedConfigMap({ namespace, body });
  else await core.replaceNamespacedConfigMap({ name: 'site-copy', namespace, body });
  written = text;
}

async function forever(act: () => Promise<void>, everyMs: number): Promise<never> {
  for (;;) {
    await act().catch((error: unknown) => console.error(`tried again: ${String(error)}`));
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}

await Promise.all([forever(async () => watch(await list()), 100), forever(reconcile, 200)]);
