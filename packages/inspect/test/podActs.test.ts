/** Restart and deletion of pods from the inspection page, on a node of a cluster in virtual time. */
import { eventsView } from '@actorlet/kubelet/machines/foundation/messages.ts';
import type { KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { expect, it } from 'vitest';
import { pod, type VirtualNode, virtualNode } from '../../../test/integration/virtualNode.ts';
import { actOnPod, type PodAct, type PodActAnswer } from '../src/boot/podActs.ts';
import { INSPECT, inspectedOf } from './rig.ts';

const PODS = '/api/v1/namespaces/default/pods';

/** `kube`: what the daemon's own client asks. */
async function act(h: VirtualNode, what: PodAct, wish: object): Promise<PodActAnswer> {
  const kube = { server: 'https://api.example.test', request: (request: KubeRequest) => Promise.resolve(h.kube.handle(request)) };
  let answer: PodActAnswer | undefined;
  void actOnPod(inspectedOf(h), { kube }, { act: what, body: JSON.stringify(wish) }).then((a) => {
    answer = a;
  });
  await h.until('it is answered', () => answer !== undefined, 10_000);
  if (answer === undefined) throw new Error('no answer');
  return answer;
}

it('deletes a pod of the API by its UID, once it was said what happens; a static pod by its manifest alone', async () => {
  await using h = await virtualNode({ cluster: true, ...INSPECT });
  h.write('static', pod('static'));
  const web = pod('web', { spec: { nodeName: 'n1', terminationGracePeriodSeconds: 7 } }) as Pod;
  const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'rs', uid: 'r', controller: true }];
  const made = h.kube.handle({ verb: 'POST', path: PODS, body: { ...web, metadata: { ...web.metadata, ownerReferences } } });
  if (!made.ok) throw new Error(JSON.stringify(made));
  const uid = (made.body as Pod).metadata.uid;
  await h.until('both run', () => h.pods().filter((p) => p.status.phase === 'Running').length === 2, 60_000);
  const ask = await act(h, 'delete', { uid, preview: true });
  expect(ask).toEqual({
    ...{ status: 200, can: true },
    lines: [
      'The API server at https://api.example.test deletes the pod, and this node ends its containers.',
      'They have up to 7 s to end, and preStop hooks run.',
      'Its controller, ReplicaSet rs, may make another.',
    ],
  });
  expect(h.running()).toHaveLength(2);
  expect(await act(h, 'delete', { uid })).toMatchObject({ status: 200, can: true });
  await h.until('it is gone', () => h.pods().length === 1, 60_000);
  expect(await act(h, 'delete', { uid })).toMatchObject({ status: 404, can: false });
  const still = { uid: h.uid('static') };
  expect(await act(h, 'delete', { ...still, preview: true })).toMatchObject({ status: 200, can: false });
  expect(await act(h, 'delete', still)).toMatchObject({
    ...{ status: 409, can: false },
    lines: [expect.stringMatching(/static pod, which no API call deletes. Move its manifest \S+static\S* out of that folder/)],
  });
});

it('restarts a pod, and the event says over what', async () => {
  await using h = await virtualNode(INSPECT);
  const never = { name: 'job', image: 'busybox:1', restartPolicy: 'Never' };
  await h.run('web', pod('web', { spec: { containers: [{ name: 'main', image: 'busybox:1' }, never] } }));
  const uid = h.uid('web');
  expect((await act(h, 'restart', { uid, preview: true })).lines).toEqual([
    'These containers end and start again in place: main.',
    'They have up to 30 s to end, and preStop hooks run.',
    'Container job is left as it is: its restart policy is Never, so it would end and not start again.',
  ]);
  expect(await act(h, 'restart', { uid, container: 'job', preview: true })).toMatchObject({ status: 200, can: false });
  expect(await act(h, 'restart', { uid, container: 'job' })).toMatchObject({ status: 409, can: false });
  expect((await act(h, 'restart', { uid })).lines[0]).toBe('main: ends, and starts again');
  const counts = () => h.status('web')?.status.containerStatuses?.map((c) => `${c.name} ${c.restartCount}`);
  await h.until('it restarted', () => counts()?.includes('main 1'), 60_000);
  expect(counts()).toEqual(['job 0', 'main 1']);
  const said = (h.tree.registry.read(eventsView)?.value ?? []).filter((e) => e.reason === 'Killing').map((e) => e.message);
  expect(said).toEqual(['Container main will be restarted: a person asked for it over the inspection page']);
});
