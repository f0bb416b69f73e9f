/** A pull that is under way, as a person sees it: below the image puller, with its own chart. */
import { expect, it } from 'vitest';
import { pod, virtualNode } from '../../../test/integration/virtualNode.ts';
import { attach, hubOf, INSPECT, viewer, watch } from './rig.ts';

const PULLER = 'node/runtime/imagePuller';

it('shows each image that a container waits for, where its pull stands, and why it waits', async () => {
  await using h = await virtualNode(INSPECT);
  const page = viewer();
  const joined = attach(hubOf(h), page);
  watch(joined, { actor: PULLER });
  const live = () => page.of('actor').findLast((f) => f.path === PULLER)?.live;
  const child = (pods: string) => live()?.children.find(({ id }) => id.startsWith(`default/${pods}`));
  h.faults.latencyMs.PullImage = 5_000;
  h.write('first', pod('first', { container: { image: 'large:1' } }));
  await h.until('it is pulled', () => child('first')?.state === 'pulling.running');
  h.write('second', pod('second', { container: { image: 'larger:1' } }));
  await h.until('the other waits', () => child('second')?.state === 'pulling.queued');
  expect(live()?.context).toMatchObject({ active: 2, backingOff: 0 });
  watch(joined, { actor: `${PULLER}>${child('second')?.id}` });
  await h.advance(200);
  const shown = page.of('actor').findLast((f) => f.path.startsWith(`${PULLER}>`))?.live;
  expect(shown?.context).toEqual({
    ...{ image: 'larger:1', policy: 'IfNotPresent', pod: 'default/second-n1', container: 'main' },
    ...{ failure: null, backOffMs: 0 },
  });
  expect(
    page
      .of('chart')
      .findLast((f) => f.path.startsWith(`${PULLER}>`))
      ?.chart?.root.states.map((s) => s.key),
  ).toContain('backingOff');
  // Refused when its turn comes.
  h.faults.fault = (m) => (m === 'PullImage' ? { kind: 'refuse', code: 2, details: 'no such image' } : undefined);
  watch(joined, { actor: PULLER });
  await h.until('it backs off', () => child('second')?.state === 'backingOff');
  expect(live()?.context).toMatchObject({ active: 0, backingOff: 1 });
  expect(child('first')).toBeUndefined();
});
