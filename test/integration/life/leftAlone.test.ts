/** Fields that this node does not know or cannot honour, on a whole node: left alone and told, or refused without a flood of pods. */
import { expect } from 'vitest';
import { create, created, createReady, drop, envOf, events, inApi, isReady } from '../cluster/clusterPods.ts';
import { itOnCluster as it } from '../onNode.ts';
import { runningOf, whyOf } from '../told.ts';
import { pod, virtualNode } from '../virtualNode.ts';

const OWNED = { ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'rs', uid: 'u', controller: true }] };
const REFUSED = { volumes: [{ name: 'v', cephfs: { monitors: ['m'] } }] };

it('a pod of a newer API server runs: its fields are told once by an event, and by why', async ({ h }) => {
  create(h, 'web', {
    container: { newField: { a: 1 }, env: [{ name: 'A', valueFrom: { vaultRef: { name: 'x' } } }] },
    spec: {
      schedulingGroup: { podGroupName: 'g' },
      workloadRef: { name: 'w' },
      securityContext: { windowsOptions: { runAsUserName: 'a' } },
    },
  });
  await h.until('it is ready', () => isReady(h, 'web'));
  const fields = [
    'spec.schedulingGroup (unknown field)',
    'spec.workloadRef (unknown field)',
    'spec.containers[0].newField (unknown field)',
    'spec.containers[0].env[0].valueFrom.vaultRef (unknown field)',
    'spec.securityContext.windowsOptions (it is for Windows',
  ];
  const said = events(h, 'FieldsLeftAlone');
  expect(said).toHaveLength(1);
  expect(envOf(created(h, 'web')[0])).toMatchObject({ A: '' });
  const why = whyOf(h, 'web');
  for (const field of fields) for (const text of [said[0], why]) expect(text).toContain(field);
  await h.restart();
  await h.until('it is ready again', () => whyOf(h, 'web').includes('phase   Running'));
  await h.advance(60_000);
  expect(events(h, 'FieldsLeftAlone')).toEqual([]);
  expect(runningOf(h, 'web')).toHaveLength(1);
});

it('a volume of a kind that nobody knows keeps its pod waiting: it does not run without it', async ({ h }) => {
  create(h, 'web', {
    container: { volumeMounts: [{ name: 'v', mountPath: '/v' }] },
    spec: { volumes: [{ name: 'v', floppy: { drive: 'A' } }] },
  });
  await h.advance(60_000);
  expect(runningOf(h, 'web')).toHaveLength(0);
  expect(inApi(h, 'web')?.status.phase).toBe('Pending');
  expect(whyOf(h, 'web')).toContain('spec.volumes[0].floppy (unknown field)');
});

it('a pod of a controller that must be refused stays Pending, with one warning, and goes when it is deleted', async ({ h }) => {
  create(h, 'one', { spec: REFUSED });
  const owned = create(h, 'owned', { spec: REFUSED });
  const held = h.kube.handle({
    verb: 'PATCH',
    path: `/api/v1/namespaces/default/pods/${owned.metadata.name}`,
    patchType: 'merge',
    body: { metadata: OWNED },
  });
  expect(held.ok).toBe(true);
  create(h, 'fine');
  await h.until('a pod of nobody fails', () => inApi(h, 'one')?.status.phase === 'Failed');
  expect(inApi(h, 'one')?.status.reason).toBe('UnsupportedField');
  await h.until('the other runs', () => isReady(h, 'fine'));
  await h.advance(300_000);
  expect(inApi(h, 'owned')?.status.phase).toBe('Pending');
  expect(whyOf(h, 'owned')).toContain(
    'its controller would replace it without end, or it ran here already: this node cannot honour the field',
  );
  expect(events(h, 'UnsupportedField').filter((message) => message.endsWith('the pod is not started'))).toHaveLength(1);
  drop(h, 'pods/owned', 5);
  await h.until('it is gone', () => inApi(h, 'owned') === undefined);
});

it('a pod that ran here before the node came to refuse it runs on, and is stopped when it is deleted', async ({ h }) => {
  await createReady(h, 'web');
  const [before] = runningOf(h, 'web');
  await h.crash();
  // As a takeover shows it: another agent ran it with a field that this one cannot honour.
  const path = '/api/v1/namespaces/default/pods/web';
  expect(h.kube.handle({ verb: 'PATCH', path, patchType: 'merge', body: { spec: REFUSED } }).ok).toBe(true);
  await h.boot();
  await h.until('why says so', () => whyOf(h, 'web').includes('or it ran here already: this node cannot honour the field'));
  await h.advance(300_000);
  expect(runningOf(h, 'web').map((c) => c.id)).toEqual([before?.id]);
  expect(inApi(h, 'web')?.status.phase).toBe('Running');
  expect(events(h, 'UnsupportedField').filter((message) => message.endsWith('runs on as it is'))).toHaveLength(1);
  drop(h, 'pods/web', 5);
  await h.until('it is gone', () => inApi(h, 'web') === undefined && runningOf(h, 'web').length === 0, 300_000);
});

it('a manifest runs with fields that only the API server serves and that the kubelet runs without', async () => {
  await using h = await virtualNode({ config: { featureGates: { PreventStaticPodAPIReferences: false } } });
  await h.run('web', pod('web', { spec: { imagePullSecrets: [{ name: 'a' }], schedulingGates: [{ name: 'b' }] } }));
  const [said] = events(h, 'FieldsLeftAlone');
  expect(said).toContain('spec.imagePullSecrets (only the API server has secrets; images are pulled without)');
});
