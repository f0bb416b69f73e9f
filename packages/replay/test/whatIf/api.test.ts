/** Experiments with the recording of a node of a cluster: its API server is played, and what others did there happens again. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { type Change, type KnownApi, knownApi } from '@actorlet/ctl/src/commands/replay/whatIf/api/known.ts';
import { silenced } from '@actorlet/ctl/src/commands/replay/whatIf/silent.ts';
import { runWhatIf, type WhatIfOptions } from '@actorlet/ctl/src/commands/replay/whatIf/whatIf.ts';
import type { KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { pod, type VirtualNode } from '../../../../test/integration/virtualNode.ts';
import { inTurn } from '../../../../test/rotation.ts';
import { learn } from '../../src/player/learn.ts';
import { AROUND, inputsOf, OWN, recordedNode } from '../less/quickStart.ts';
import { toldTo } from '../toldTo.ts';

/** Six runs of a node each, on a machine that is busy with other tests. */
vi.setConfig({ testTimeout: 180_000 });
const plays = inTurn('what-ifs of a cluster', 4);

const NAMESPACE = '/api/v1/namespaces/default';
const NODE = '/api/v1/nodes/n1';
let dir: string;
let path: string;
let lines: string[];

function asUser(h: VirtualNode, request: KubeRequest): void {
  const done = h.kube.handle(request);
  if (!done.ok) throw new Error(done.failure.message);
}
function create(h: VirtualNode, name: string, o: NonNullable<Parameters<typeof pod>[1]> = {}): void {
  const body = pod(name, { ...o, spec: { nodeName: 'n1', ...o.spec } });
  asUser(h, { verb: 'POST', path: `${NAMESPACE}/pods`, body });
}
const merge = (h: VirtualNode, at: string, body: object) => asUser(h, { verb: 'PATCH', path: at, patchType: 'merge', body });
const remove = (h: VirtualNode, at: string, query = {}) => asUser(h, { verb: 'DELETE', path: at, query });

/** A minute in which users and controllers work, a node is deleted, and the API server is away, or its answer to a lease. */
async function busy(h: VirtualNode): Promise<void> {
  let left = 2;
  h.kube.trouble.verdict = ({ verb, path: at }) =>
    verb === 'PUT' && at.includes('/leases/') && left-- > 0 ? { delayMs: 0, lost: 'with-effect' } : { delayMs: 0 };
  asUser(h, { verb: 'POST', path: `${NAMESPACE}/secrets`, body: { metadata: { name: 'keys' }, data: { a: btoa('one') } } });
  const from = { env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'keys', key: 'a' } } }] };
  create(h, 'secret', { container: from, life: 'run=25s,exit=1' });
  create(h, 'steady');
  create(h, 'crashes', { life: 'run=1s,exit=3' });
  create(h, 'deleted');
  create(h, 'forced');
  create(h, 'job', { life: 'run=2s,exit=0', spec: { restartPolicy: 'Never' } });
  await h.advance(10_000);
  merge(h, `${NAMESPACE}/secrets/keys`, { data: { a: btoa('two'), b: btoa('more') } });
  merge(h, NODE, { metadata: { labels: { zone: 'a' } }, spec: { taints: [{ key: 'full', effect: 'NoSchedule' }] } });
  await h.advance(5_000);
  remove(h, `${NAMESPACE}/pods/forced`, { gracePeriodSeconds: '0' });
  remove(h, `${NAMESPACE}/pods/job`);
  remove(h, `${NAMESPACE}/pods/deleted`);
  await h.advance(10_000);
  create(h, 'deleted');
  await h.advance(10_000);
  remove(h, NODE);
  await h.advance(10_000);
  h.kube.trouble.down = true;
  h.kube.cutWatches('truncate');
  await h.advance(5_000);
  create(h, 'meanwhile');
  merge(h, `${NAMESPACE}/pods/steady`, { metadata: { labels: { new: 'yes' } } });
  await h.advance(10_000);
  h.kube.trouble.down = false;
  await h.advance(20_000);
}

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-what-if-api-'));
  path = join(dir, 'cluster.inputs.zst');
  lines = await recordedNode({ cluster: true }, busy);
  writeFileSync(path, zstdCompressSync(`${lines.join('\n')}\n`));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

interface Shown {
  difference: { path: string } | null;
  pods: { pod: string; verdict: string; recorded: string; unchanged: string; changed: string; later?: { unchanged: string } }[];
  untold: string[];
  failure: string | null;
}

async function whatIf(o: Partial<WhatIfOptions>): Promise<Shown> {
  const io = toldTo();
  await runWhatIf(io, { path, json: true, set: [], drop: [], fault: undefined, ...o });
  return JSON.parse(io.told()) as Shown;
}

async function known(): Promise<KnownApi> {
  const { header, entries } = inputsOf(lines);
  const { script } = await learn({ header, next: entries(), own: OWN, entropy: AROUND.hashes, drain: () => AROUND.drain() });
  return knownApi(script, (monoMs) => monoMs - header.monoMs + header.wallMs);
}

const words = ({ resource, before, after }: Change): string =>
  `${resource.name}/${(before ?? after)?.metadata.name} ${before === null ? 'made' : after === null ? 'removed' : 'changed'}`;

it('what others did is told apart from what the node wrote', async () => {
  const { first, changes } = await known();
  expect(first.map(([r, { metadata }]) => `${r.name}/${metadata.name}`).sort()).toEqual(
    ['crashes', 'deleted', 'forced', 'job', 'secret', 'steady'].map((name) => `pods/${name}`).concat('secrets/keys'),
  );
  expect(changes.map(words)).toEqual([
    'secrets/keys changed',
    'nodes/n1 changed',
    'pods/forced removed',
    'pods/job removed',
    'pods/deleted changed',
    'pods/deleted made',
    'nodes/n1 removed',
    'pods/meanwhile made',
    'pods/steady changed',
  ]);
});

plays('without a change every pod ends as it was recorded, in the node and in the API', async () => {
  const fault = join(dir, 'runtime-down.yaml');
  const down = { kind: 'runtime.down', at: '12s', for: '20s' };
  writeFileSync(
    fault,
    JSON.stringify({
      ...{ apiVersion: 'actorlet.dev/v1alpha1', kind: 'FaultScenario', metadata: { name: 'away' } },
      spec: { duration: '40s', faults: [down] },
    }),
  );
  const { pods, difference, untold, failure } = await whatIf({ fault });
  expect({ untold, failure, first: difference?.path }).toEqual({ untold: [], failure: null, first: 'node/runtime/cri' });
  for (const { recorded, unchanged } of pods) expect(unchanged).toBe(recorded);
  const of = (name: string) => pods.filter((one) => one.pod === `default/${name}`);
  const steady = 'syncing.settled, Running, main running after 0 restarts; in the API Running, Ready';
  for (const name of ['steady', 'meanwhile']) expect(of(name)).toEqual([expect.objectContaining({ verdict: 'same', recorded: steady })]);
  // The first of that name ends later than then, so the second is made later.
  expect(of('deleted')).toMatchObject([
    { verdict: 'same', changed: 'gone' },
    { verdict: 'same', changed: steady },
  ]);
});

plays('what the node writes with the change is there when others change it, and pods that others make come all the same', async () => {
  const { pods } = await whatIf({ set: ['maxPods=3'], drop: ['pod=default/crashes'] });
  const of = (name: string) => pods.filter((one) => one.pod === `default/${name}`);
  const refused = pods.filter(({ changed }) => changed.endsWith('in the API Failed'));
  expect(refused.map(({ pod: name, verdict }) => `${name} ${verdict}`)).toContain('default/steady change');
  // The server removes a pod that was refused at once when a user deletes it, and the next one of that name is let in.
  expect(of('deleted').map(({ changed }) => changed.replace(/.*; /, ''))).toEqual(['gone', 'in the API Running, Ready']);
  expect(of('crashes')).toMatchObject([{ verdict: 'change', changed: expect.stringMatching(/^gone/) }]);
});

plays('streams of a port that is left out say nothing', async () => {
  const gone = new AbortController();
  const hints = silenced(new Set(['cri']))('cri.hints', [gone.signal])?.result as AsyncIterable<unknown>;
  expect(silenced(new Set(['kube']))('cri.hints', [gone.signal])).toBeUndefined();
  const next = hints[Symbol.asyncIterator]().next();
  gone.abort();
  expect(await next).toEqual({ done: true, value: undefined });
  const { pods } = await whatIf({ drop: ['port=kube'] });
  const meanwhile = pods.find((one) => one.pod === 'default/meanwhile');
  expect(meanwhile).toMatchObject({ verdict: 'change', changed: 'gone; in the API Pending' });
});

plays('what the recording does not tell of is named', async () => {
  const small = join(dir, 'small.inputs.zst');
  const recorded = await recordedNode({ cluster: true, config: { maxPods: 1 } }, async (h) => {
    create(h, 'a');
    await h.advance(2_000);
    create(h, 'b', { container: { env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'unread', key: 'a' } } }] } });
    await h.advance(3_000);
  });
  writeFileSync(small, zstdCompressSync(`${recorded.join('\n')}\n`));
  const io = toldTo();
  await runWhatIf(io, { path: small, json: false, set: ['maxPods=5'], drop: [], fault: undefined });
  expect(io.told()).toContain(`NOT IN THE RECORDING: ${NAMESPACE}/secrets/unread. The API server answered that it is not there.`);
});

plays('in its second life, pods keep their volumes, end when they are deleted, and fail their probes as they did', async () => {
  const both = await recordedNode({ cluster: true, hollow: { exec: () => ({ exitCode: 1 }) } }, async (h) => {
    asUser(h, { verb: 'POST', path: `${NAMESPACE}/secrets`, body: { metadata: { name: 'keys' }, data: { a: btoa('one') } } });
    const volumes = [{ name: 'v', secret: { secretName: 'keys' } }];
    const container = { volumeMounts: [{ name: 'v', mountPath: '/v' }] };
    for (const name of ['stays', 'goes']) create(h, name, { container, spec: { volumes } });
    create(h, 'unready', {
      container: { ...container, readinessProbe: { exec: { command: ['x'] }, periodSeconds: 1 } },
      spec: { volumes },
    });
    await h.advance(15_000);
    await h.restart();
    await h.advance(10_000);
    remove(h, `${NAMESPACE}/pods/goes`);
    await h.advance(20_000);
  });
  const second = join(dir, 'second.inputs.zst');
  const at = both.findLastIndex((line) => line.startsWith('{'));
  writeFileSync(second, zstdCompressSync(`${both.slice(at).join('\n')}\n`));
  const { pods } = await whatIf({ path: second, set: ['maxPods=50'] });
  const ends = pods.map(({ pod: name, unchanged, later }) => [name, (later?.unchanged ?? unchanged).replace(/.*; /, '')]);
  expect(ends.sort()).toEqual([
    ['default/goes', 'gone'],
    ['default/stays', 'in the API Running, Ready'],
    ['default/unready', 'in the API Running'],
  ]);
});
