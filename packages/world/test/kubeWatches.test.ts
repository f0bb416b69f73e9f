/** Which watches a change goes to: those whose selector its object fits, or fitted before. */
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { describe, expect, it } from 'vitest';
import { simKube } from '../src/kube/kubeApi.ts';
import { type Indexed, WatchIndex } from '../src/kube/watches/watchIndex.ts';
import { simRng } from '../src/rng.ts';
import { SimTime } from '../src/time.ts';

const PODS = '/api/v1/namespaces/default/pods';

/** Watches of pods: by node, name, phase and label, of all, and with terms that exclude. */
const SELECTORS: readonly Readonly<Record<string, string>>[] = [
  {},
  ...['n0', 'n1', 'n2', ''].map((node) => ({ fieldSelector: `spec.nodeName=${node}` })),
  { fieldSelector: 'spec.nodeName!=n1' },
  { fieldSelector: 'metadata.name=p1' },
  { fieldSelector: 'status.phase=Running' },
  { fieldSelector: 'status.phase!=Failed,spec.nodeName==n2' },
  { fieldSelector: 'spec.nodeName=n0,metadata.name=p2' },
  { labelSelector: 'tier=a' },
  { fieldSelector: 'spec.nodeName=n1', labelSelector: 'tier!=a' },
];

/** As a server without an index would decide. */
function fits({ fieldSelector = '', labelSelector = '' }: Readonly<Record<string, string>>, pod: KubeObject): boolean {
  const { spec, status, metadata } = pod as unknown as {
    spec: { nodeName?: string };
    status: { phase: string };
    metadata: { name: string; labels?: { tier?: string } };
  };
  const values: Record<string, string> = {
    ...{ 'spec.nodeName': spec.nodeName ?? '', 'metadata.name': metadata.name, 'status.phase': status.phase },
    tier: metadata.labels?.tier ?? '',
  };
  return [...fieldSelector.split(','), labelSelector].every((term) => {
    const [, field = '', not = '', value] = /^(.*?)(!?)==?(.*)$/.exec(term) ?? [];
    return term === '' || (values[field] === value) === (not === '');
  });
}

describe('watches', () => {
  it('are sent the changes that their selectors select, each in order, whatever the selectors are', async () => {
    const time = new SimTime(simRng('ties'));
    const clock = time.clockFor({ on: true });
    const kube = simKube({ clock, rng: simRng('kube'), latencyMs: () => 1 });
    const api = kube.connect({ power: { on: true }, clock });
    const over = new AbortController();
    const advance = async (): Promise<void> => {
      const end = time.monoMs + 1_000;
      while (await time.step(end)) {}
    };
    const heard = SELECTORS.map((): string[] => []);
    const wanted = SELECTORS.map((): string[] => []);
    const opened = SELECTORS.map(async (query, i) => {
      const watch = await api.watch(
        { path: '/api/v1/pods', query: { ...query, resourceVersion: '1000' } },
        { timeoutMs: null, signal: over.signal },
      );
      if (!watch.ok) throw new Error(watch.failure.message);
      for await (const line of watch.lines) {
        const { type, object } = JSON.parse(line) as { type: string; object: KubeObject };
        heard[i]?.push(`${type} ${object.metadata.name} ${object.metadata.resourceVersion}`);
      }
    });
    await advance();
    kube.store.onEvent(({ type, object, before }) => {
      for (const [i, query] of SELECTORS.entries()) {
        const was = before !== undefined && fits(query, before);
        const is = type !== 'DELETED' && fits(query, object);
        const said = is ? (was ? 'MODIFIED' : 'ADDED') : was ? 'DELETED' : null;
        if (said !== null) wanted[i]?.push(`${said} ${object.metadata.name} ${object.metadata.resourceVersion}`);
      }
    });
    const chance = simRng('changes');
    for (let i = 0; i < 400; i++) {
      const name = `p${chance.int(4)}`;
      const tier = chance.pick(['a', 'b']);
      const nodeName = chance.pick(['n0', 'n1', 'n2']);
      const spec = { containers: [{ name: 'c', image: 'i' }], ...(chance.int(3) === 0 ? {} : { nodeName }) };
      const metadata = { labels: { tier } };
      const phase = chance.pick(['Pending', 'Running', 'Failed']);
      kube.handle({ verb: 'POST', path: PODS, body: { metadata: { ...metadata, name }, spec } });
      kube.handle({ verb: 'POST', path: `${PODS}/${name}/binding`, body: { target: { name: nodeName } } });
      kube.handle({ verb: 'PATCH', path: `${PODS}/${name}`, body: { metadata } });
      kube.handle({ verb: 'PATCH', path: `${PODS}/${name}/status`, body: { status: { phase } } });
      if (chance.int(3) === 0) kube.handle({ verb: 'DELETE', path: `${PODS}/${name}`, body: { gracePeriodSeconds: 0 } });
      if (i % 50 === 0) await advance();
    }
    await advance();
    expect(heard).toEqual(wanted);
    expect(wanted.filter((lines) => lines.length === 0)).toEqual([]);
    const listed = SELECTORS.map((query) => {
      const answer = kube.handle({ verb: 'GET', path: '/api/v1/pods', query });
      return answer.ok ? (answer.body as { items: KubeObject[] }).items.map((o) => o.metadata.name) : answer.failure.message;
    });
    expect(listed).toEqual(
      SELECTORS.map((query) => kube.store.list('pods').flatMap((pod) => (fits(query, pod) ? [pod.metadata.name] : []))),
    );
    over.abort();
    await advance();
    await Promise.allSettled(opened);
    expect(kube.openWatches()).toBe(0);
  });

  it('of other nodes are not looked at, of a thousand', () => {
    const index = new WatchIndex<Indexed>();
    const watches = Array.from({ length: 3_000 }, (_, order): Indexed => {
      const field = order % 2 === 0 ? 'spec.nodeName' : 'metadata.name';
      return { order, resource: order % 3 === 0 ? 'nodes' : 'pods', pin: { field, value: `n${order % 1_000}` } };
    });
    const all: Indexed = { order: 3_000, resource: 'pods', pin: undefined };
    for (const watch of [all, ...watches]) index.add(watch);
    const pod = (nodeName: string): KubeObject => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec: { nodeName } });
    expect(index.concerned('pods', pod('n4'), undefined).map((w) => w.order)).toEqual([4, 1_004, 3_000]);
    expect(index.concerned('pods', pod('n4'), pod('n8')).map((w) => w.order)).toEqual([4, 8, 1_004, 2_008, 3_000]);
    expect(index.concerned('services', pod('n4'), undefined)).toEqual([]);
    for (const watch of [all, ...watches]) index.delete(watch);
    expect(index.concerned('pods', pod('n4'), undefined)).toEqual([]);
  });
});
