/**
 * An API server whose objects this node does not know in full: fields of a newer version, which are left alone, and an object of a
 * wrong type, which is that one object's trouble. The server is real; a proxy changes what it sends.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { type ApiProxy, startApiProxy } from '../../e2e/lab/cluster/apiProxy.ts';
import { minorVersion } from '../../e2e/lab/cluster/controlPlane.ts';
import { sh } from '../../e2e/manifests.ts';
import { type Cluster, isReady, LONG, lifeOf, STAY, startCluster } from '../cluster.ts';

/** Since then the server has the field itself, behind a gate. */
const SCHEDULING_GROUPS_SINCE = 36;
const hasGroups = minorVersion('kube-apiserver') >= SCHEDULING_GROUPS_SINCE;
const GROUP = { schedulingGroup: { podGroupName: 'a-group' } };

let cluster: Cluster;
let proxy: ApiProxy;

type Sent = { metadata?: { name?: string }; spec?: Record<string, unknown> };
function rewrite(object: Sent): unknown {
  const { name = '' } = object.metadata ?? {};
  if (name === 'newer') return { ...object, spec: { ...object.spec, ...GROUP, workloadRef: { name: 'w' } }, news: true };
  return name.startsWith('broken') && object.spec !== undefined ? { ...object, spec: { ...object.spec, initContainers: {} } } : object;
}

beforeAll(async () => {
  const gates = hasGroups ? { 'kube-apiserver': ['--feature-gates=GenericWorkload=true', '--runtime-config=api/all=true'] } : {};
  const flags = { ...gates, 'kube-controller-manager': ['--node-monitor-grace-period=10m'] };
  cluster = await startCluster({
    kubeconfig: async (plane) => {
      proxy = await startApiProxy(plane, NODE_NAME);
      proxy.rewrite = rewrite;
      return proxy.kubeconfig;
    },
    plane: { controllerManager: true, scheduler: true, flags },
  });
});
afterAll(async () => {
  await cluster?.daemon.end('SIGKILL');
  await proxy?.stop();
  await cluster?.stop();
});

const steady = { nodeName: NODE_NAME, containers: [sh('main', STAY)] };
const why = (name: string) => cluster.daemon.ctl('why', name).catch((error: Error) => error.message);

it('runs a pod with fields that it does not know, and says so once', async () => {
  await cluster.create('newer', steady);
  await cluster.ready('newer');
  expect(await why('newer')).toContain('spec.schedulingGroup (unknown field)');
  const events = await cluster.kubectl(
    'get',
    'events',
    '-o',
    'jsonpath={range .items[*]}{.reason} {.involvedObject.name} {.count}{"\\n"}{end}',
  );
  expect(events.split('\n').filter((line) => line.startsWith('FieldsLeftAlone newer'))).toHaveLength(1);
});

it.runIf(hasGroups)('runs a pod with the scheduling group of 1.36, as the server keeps it', async () => {
  await cluster.create('grouped', { ...steady, ...(GROUP as object) });
  const pod = await cluster.ready('grouped');
  expect(pod.spec).toMatchObject(GROUP);
  expect(await why('grouped')).toContain('spec.schedulingGroup (unknown field)');
});

it('lives with a pod that it cannot read: its neighbours run, it is named, and it runs when the server mends it', async () => {
  await cluster.create('fine', steady);
  const before = lifeOf(await cluster.ready('fine'));
  await cluster.create('broken', steady);
  await cluster.daemon.wait('it is named', async () => (await why('broken')).includes('spec.initContainers: must be a list'), LONG);
  await cluster.create('beside', steady);
  await cluster.ready('beside');
  expect((await cluster.pod('broken'))?.status.phase).toBe('Pending');
  await cluster.daemon.end('SIGKILL');
  await cluster.daemon.start();
  await cluster.daemon.wait('it is named again', async () => (await why('broken')).includes('spec.initContainers: must be a list'), LONG);
  await cluster.create('later', steady);
  await cluster.ready('later');
  expect(lifeOf((await cluster.pod('fine')) as Pod)).toEqual(before);
  proxy.rewrite = undefined;
  proxy.cut();
  await cluster.merge('pods/broken', { metadata: { labels: { mended: 'yes' } } });
  await cluster.podWhere('broken', 'is Ready', isReady);
});
