/** Writers to the API that are lost over their work, found by the simulation: what they had still to write is written all the same. */
import { describe, expect, it } from 'vitest';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { pod as manifest, type VirtualNode, virtualNode } from '../virtualNode.ts';

const PODS = '/api/v1/namespaces/default/pods';
const WRITERS = 'node/api/podWriters';
/** A bookmark comes about once a minute. */
const FOUND_AGAIN_MS = 130_000;

function inApi(h: VirtualNode, name: string): Pod | undefined {
  const got = h.kube.handle({ verb: 'GET', path: `${PODS}/${name}` });
  return got.ok ? (got.body as Pod) : undefined;
}
/** From now on the API server does nothing of this. */
function refuse(h: VirtualNode, verb: string): void {
  h.kube.trouble.verdict = (r) => (r.verb === verb ? { delayMs: 0, refuse: { status: 500 } } : { delayMs: 0 });
}
const well = (h: VirtualNode): void => {
  h.kube.trouble.verdict = () => ({ delayMs: 0 });
};

describe('what the API server has', () => {
  it('is told apart from what comes after the status manager began anew: no version is given twice', async () => {
    await using h = await virtualNode({ cluster: true });
    h.write('web', manifest('web'));
    await h.until('its mirror runs', () => inApi(h, 'web-n1')?.status.phase === 'Running');
    const before = h.status('web')?.version ?? 0;
    expect(before).toBeGreaterThan(1);
    expect(h.kill('node/pods/status')).toBe(true);
    await h.advance(30_000);
    await h.until('it is known again', () => h.status('web') !== undefined);
    expect(h.status('web')?.version).toBeGreaterThan(before);
  });

  it('is a mirror again, when one was deleted before the watch ever showed it', async () => {
    await using h = await virtualNode({ cluster: true });
    await h.until('the node is in the API', () => h.kube.handle({ verb: 'GET', path: '/api/v1/nodes/n1' }).ok);
    // The watch has said something, and then says nothing; what is written arrives.
    await h.advance(65_000);
    expect(h.kube.openWatches()).toBeGreaterThan(0);
    h.kube.silenceWatches();
    h.write('web', manifest('web'));
    await h.until('its mirror runs', () => inApi(h, 'web-n1')?.status.phase === 'Running', 20_000);
    await h.until('nothing is left to write', () => h.state(`${WRITERS}/${h.uid('web')}`) === 'resting');
    await h.advance(5_000);
    expect(h.kube.handle({ verb: 'DELETE', path: `${PODS}/web-n1`, query: { gracePeriodSeconds: '0' } }).ok).toBe(true);
    h.kube.store.compact();
    h.kube.cutWatches('close');
    await h.until('there is another', () => inApi(h, 'web-n1')?.status.phase === 'Running', 600_000);
  });
});

describe('writers that are lost over their work', () => {
  it('leave no mirror of a static pod that is gone', async () => {
    await using h = await virtualNode({ cluster: true });
    h.write('web', manifest('web'));
    await h.until('its mirror runs', () => inApi(h, 'web-n1')?.status.phase === 'Running');
    refuse(h, 'DELETE');
    h.remove('web');
    await h.until('the pod is over', () => h.pods().length === 0);
    await h.until('the writer backs off', () => h.actor(WRITERS)?.children.some((c) => h.state(c.path) === 'backingOff'));
    expect(h.kill(WRITERS)).toBe(true);
    well(h);
    await h.until('the mirror is gone', () => inApi(h, 'web-n1') === undefined, FOUND_AGAIN_MS);
  });

  it('leave no pod that is deleted and over', async () => {
    await using h = await virtualNode({ cluster: true });
    const body = manifest('job') as Pod;
    expect(h.kube.handle({ verb: 'POST', path: PODS, body: { ...body, spec: { ...body.spec, nodeName: 'n1' } } }).ok).toBe(true);
    await h.until('it runs', () => inApi(h, 'job')?.status.phase === 'Running');
    expect(h.kube.handle({ verb: 'DELETE', path: `${PODS}/job`, query: { gracePeriodSeconds: '2' } }).ok).toBe(true);
    refuse(h, 'DELETE');
    await h.until('the writer backs off', () => h.actor(WRITERS)?.children.some((c) => h.state(c.path) === 'backingOff'), 60_000);
    expect(h.kill(WRITERS)).toBe(true);
    well(h);
    await h.until('it is gone', () => inApi(h, 'job') === undefined, FOUND_AGAIN_MS);
  });

  it('take no word of an API server that has just started for the end of a mirror', async () => {
    await using h = await virtualNode({ cluster: true });
    h.write('web', manifest('web'));
    await h.until('its mirror runs', () => inApi(h, 'web-n1')?.status.phase === 'Running');
    const before = inApi(h, 'web-n1')?.metadata.uid;
    h.kube.trouble.down = true;
    h.write('web', manifest('web', { container: { image: 'busybox:2' } }));
    await h.advance(60_000);
    h.kube.trouble.down = false;
    await h.until('its new mirror runs', () => inApi(h, 'web-n1')?.spec.containers[0]?.image === 'busybox:2', 15_000);
    expect(inApi(h, 'web-n1')?.metadata.uid).not.toBe(before);
  });

  it('nor for the end of a pod that is deleted', async () => {
    await using h = await virtualNode({ cluster: true });
    await h.until('the node is in the API', () => h.kube.handle({ verb: 'GET', path: '/api/v1/nodes/n1' }).ok);
    const body = manifest('api') as Pod;
    h.kube.handle({ verb: 'POST', path: PODS, body: { ...body, spec: { ...body.spec, nodeName: 'n1' } } });
    await h.until('it runs', () => inApi(h, 'api')?.status.phase === 'Running', 60_000);
    let left = 1;
    h.kube.trouble.verdict = ({ verb }) =>
      verb === 'DELETE' && left-- > 0 ? { delayMs: 0, refuse: { status: 404, reason: 'NotFound' } } : { delayMs: 0 };
    h.kube.handle({ verb: 'DELETE', path: `${PODS}/api`, body: { gracePeriodSeconds: 1 } });
    await h.until('it is gone', () => inApi(h, 'api') === undefined, 15_000);
  });
});
