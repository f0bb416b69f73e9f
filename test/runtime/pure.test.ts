/** Pure decisions of the container side. */
import { describe, expect, test } from 'vitest';
import { parseImageRef, shownImage, withDefaultTag } from '../../src/machines/kube/imageRef.ts';
import { groupByPod } from '../../src/machines/pod/runtime/listed.ts';
import { linkBackoffMs, readStatus } from '../../src/machines/runtime/cri/criLinkMachine.ts';
import { deadlineMs } from '../../src/machines/runtime/cri/deadlines.ts';
import { type FencedJob, Fences } from '../../src/machines/runtime/cri/fence.ts';
import { decideImage } from '../../src/machines/runtime/imagePuller/imagePolicy.ts';
import { HintTrust, RELIST_PERIODS_MS } from '../../src/machines/runtime/pleg/hintTrust.ts';
import { CRI_LABELS, type CriContainer } from '../../src/machines/wire/cri.ts';

const it = test.extend('trust', () => new HintTrust());

describe('deadlines', () => {
  const timeout = 120_000;
  it('follow the table: twice for a sandbox, grace on top for a stop, none for a pull', () => {
    expect(deadlineMs('RunPodSandbox', {}, timeout)).toBe(240_000);
    expect(deadlineMs('StopContainer', { containerId: 'c', timeout: 300 }, timeout)).toBe(420_000);
    expect(deadlineMs('StopContainer', { containerId: 'c', timeout: '30' }, timeout)).toBe(150_000);
    expect(deadlineMs('PullImage', {}, timeout)).toBeNull();
    expect(deadlineMs('ListContainers', {}, timeout)).toBe(120_000);
  });
  it('leave an exec without a limit of its own without a deadline', () => {
    expect(deadlineMs('ExecSync', { timeout: 0 }, timeout)).toBeNull();
    expect(deadlineMs('ExecSync', { timeout: 5 }, timeout)).toBe(125_000);
  });
});

describe('the link', () => {
  it('backs off 0.1 s, doubled, at most 0.25 s', () => {
    expect([0, 1, 2, 3, 99].map(linkBackoffMs)).toEqual([100, 200, 250, 250, 250]);
  });
  it('gives handlers in the order of their names: the runtime names them in any', () => {
    const handlers = (...names: string[]) =>
      readStatus({ status: { conditions: [] }, info: {}, runtimeHandlers: names.map((name) => ({ name })) }, 0).handlers;
    expect(handlers('runc', '', 'kata')?.map((h) => h.name)).toEqual(['', 'kata', 'runc']);
    expect(handlers('kata', 'runc', '')).toEqual(handlers('runc', '', 'kata'));
  });
  it('keeps what the runtime says of a condition that is true, for the reader', () => {
    const remark = (...conditions: { type: string; status: boolean; reason: string; message: string }[]) =>
      readStatus({ status: { conditions }, info: {} }, 0).remark;
    const network = { type: 'NetworkReady', status: true, reason: 'LoopbackOnly', message: 'no default route' };
    expect(remark(network)).toBe('LoopbackOnly: no default route');
    expect(remark({ ...network, message: '' })).toBeUndefined();
    expect(remark({ ...network, status: false })).toBeUndefined();
    expect(remark({ ...network, type: 'Other' })).toBeUndefined();
  });

  it('takes a missing condition for a false one and says which', () => {
    const reading = readStatus({ status: { conditions: [{ type: 'RuntimeReady', status: true, reason: '', message: '' }] }, info: {} }, 5);
    expect(reading).toMatchObject({
      runtimeReady: true,
      networkReady: false,
      networkReason: 'the runtime reports no NetworkReady condition',
    });
  });
});

describe('fences', () => {
  const job = (uid: string, incarnation: number | null, name = ''): FencedJob & { name: string } => ({ uid, incarnation, name });

  it('run one act per pod at a time and the others in order', () => {
    const fences = new Fences<ReturnType<typeof job>>();
    const [a, b, c, other] = [job('u', 1, 'a'), job('u', 1, 'b'), job('u', 1, 'c'), job('v', 1)];
    expect(fences.submit(a).start).toEqual([a]);
    expect(fences.submit(b).start).toEqual([]);
    expect(fences.submit(c).start).toEqual([]);
    expect(fences.submit(other).start).toEqual([other]);
    expect(fences.settled(a)).toEqual([b]);
    expect(fences.settled(a)).toEqual([]);
    expect(fences.settled(b)).toEqual([c]);
    expect(fences.settled(c)).toEqual([]);
    expect(fences.running()).toBe(1);
  });
  it('refuse an older incarnation, queued or new, but let its running act end first', () => {
    const fences = new Fences<ReturnType<typeof job>>();
    const [running, queued, newer, late] = [job('u', 1), job('u', 1), job('u', 2), job('u', 1)];
    fences.submit(running);
    fences.submit(queued);
    const step = fences.submit(newer);
    expect(step.start).toEqual([]);
    expect(step.refuse.map((r) => r.job)).toEqual([queued]);
    expect(fences.submit(late).refuse.map((r) => r.job)).toEqual([late]);
    expect(fences.settled(running)).toEqual([newer]);
  });
  it('let an act of no incarnation wait its turn without superseding anybody', () => {
    const fences = new Fences<ReturnType<typeof job>>();
    const [worker, gc, worker2] = [job('u', 3), job('u', null), job('u', 3)];
    fences.submit(worker);
    expect(fences.submit(gc)).toEqual({ start: [], refuse: [] });
    expect(fences.submit(worker2)).toEqual({ start: [], refuse: [] });
    expect(fences.settled(worker)).toEqual([gc]);
  });
  it('let stops of one incarnation run side by side, and nothing else beside them', () => {
    const fences = new Fences<FencedJob & { name: string }>();
    const stop = (name: string, incarnation = 1) => ({ uid: 'u', incarnation, name, shares: true });
    const [a, b, act, c, d, later] = [stop('a'), stop('b'), job('u', 1, 'act'), stop('c'), stop('d'), stop('e', 2)];
    expect(fences.submit(a).start).toEqual([a]);
    expect(fences.submit(b).start).toEqual([b]);
    expect(fences.submit(act).start).toEqual([]);
    // It came after the act: it does not overtake it.
    expect(fences.submit(c).start).toEqual([]);
    expect(fences.submit(d).start).toEqual([]);
    expect(fences.settled(a)).toEqual([]);
    expect(fences.settled(b)).toEqual([act]);
    expect(fences.settled(act)).toEqual([c, d]);
    // Of a later incarnation: it waits for both.
    expect(fences.submit(later).start).toEqual([]);
    expect(fences.settled(d)).toEqual([]);
    expect(fences.settled(c)).toEqual([later]);
    expect(fences.settled(later)).toEqual([]);
    expect(fences.running()).toBe(0);
  });
  it('forget a queued act whose asker gave up, and leave no lane behind', () => {
    const fences = new Fences<ReturnType<typeof job>>();
    const [a, b] = [job('u', 1), job('u', 1)];
    fences.submit(a);
    fences.submit(b);
    expect(fences.withdraw(b)).toBe(true);
    expect(fences.withdraw(a)).toBe(false);
    expect(fences.settled(a)).toEqual([]);
    expect([fences.running(), fences.queued()]).toEqual([0, 0]);
  });
});

function container(id: string, o: Partial<CriContainer> = {}): CriContainer {
  return {
    id,
    podSandboxId: 's',
    metadata: { name: 'main', attempt: 0 },
    image: null,
    imageRef: '',
    state: 'CONTAINER_RUNNING',
    createdAt: '1',
    labels: {
      [CRI_LABELS.podUid]: 'u',
      [CRI_LABELS.podName]: 'p',
      [CRI_LABELS.podNamespace]: 'default',
      [CRI_LABELS.containerName]: 'main',
    },
    annotations: {},
    ...o,
  };
}

describe('listings', () => {
  it('order by creation, newest first, beyond the precision of a number', () => {
    const pods = groupByPod(
      [],
      [container('old', { createdAt: '1795235363546401895' }), container('new', { createdAt: '1795235363546401896' })],
    );
    expect(pods.get('u')?.containers.map((c) => c.id)).toEqual(['new', 'old']);
  });
});

describe('trust in the hint stream', () => {
  const cleanListing = (trust: HintTrust) => trust.listingEnded([]);
  const died = (id: string) => [{ kind: 'ContainerDied' as const, id }];
  it('slows the listings down only after three clean ones each, up to a minute', ({ trust }) => {
    trust.streamOpened();
    const seen: number[] = [];
    for (let i = 0; i < 18; i++) {
      seen.push(trust.periodMs());
      cleanListing(trust);
    }
    expect([...new Set(seen)]).toEqual([...RELIST_PERIODS_MS]);
    expect(seen.filter((p) => p === 1000)).toHaveLength(3);
  });
  it('never slows down without a stream', ({ trust }) => {
    for (let i = 0; i < 10; i++) cleanListing(trust);
    expect(trust.periodMs()).toBe(1000);
  });
  it('ends when a listing finds a change that is still unannounced at the next one', ({ trust }) => {
    trust.streamOpened();
    for (let i = 0; i < 6; i++) cleanListing(trust);
    expect(trust.periodMs()).toBe(5000);
    expect(trust.listingEnded(died('c'))).toEqual([]);
    expect(trust.periodMs()).toBe(1000);
    expect(trust.listingEnded([])).toEqual(['c']);
    expect(trust.trusted).toBe(false);
  });
  it('forgives a hint that arrives just after the listing that showed its change', ({ trust }) => {
    trust.streamOpened();
    for (let i = 0; i < 3; i++) cleanListing(trust);
    trust.listingEnded(died('c'));
    trust.announced('c', 'stopped');
    expect(trust.listingEnded([])).toEqual([]);
    expect(trust.trusted).toBe(true);
  });
  it('accepts a change that the runtime shows only some listings after its hint', ({ trust }) => {
    trust.streamOpened();
    trust.announced('c', 'started');
    for (let i = 0; i < 5; i++) cleanListing(trust);
    expect(trust.listingEnded([{ kind: 'ContainerStarted', id: 'c' }])).toEqual([]);
    expect(cleanListing(trust)).toEqual([]);
    expect(trust.trusted).toBe(true);
  });
  it('does not take a start for the announcement of an exit, nor one exit for two', ({ trust }) => {
    trust.streamOpened();
    trust.announced('c', 'started');
    trust.announced('d', 'stopped');
    trust.listingEnded([...died('c'), ...died('d')]);
    expect(trust.listingEnded(died('d'))).toEqual(['c']);
    expect(cleanListing(trust)).toEqual(['d']);
  });
  it('takes a removal for the announcement of the death that came with it', ({ trust }) => {
    trust.streamOpened();
    trust.announced('c', 'deleted');
    trust.listingEnded([...died('c'), { kind: 'ContainerRemoved', id: 'c' }]);
    expect(cleanListing(trust)).toEqual([]);
  });
  it('begins again at one second when the stream is lost', ({ trust }) => {
    trust.streamOpened();
    for (let i = 0; i < 9; i++) cleanListing(trust);
    trust.streamLost();
    expect(trust.periodMs()).toBe(1000);
    trust.streamOpened();
    expect(trust.periodMs()).toBe(1000);
  });
});

describe('image references', () => {
  const digest = `sha256:${'a'.repeat(64)}`;
  it.each([
    ['nginx', { domain: 'docker.io', path: 'library/nginx', tag: undefined, digest: undefined }],
    ['nginx:1.25', { domain: 'docker.io', path: 'library/nginx', tag: '1.25', digest: undefined }],
    ['localhost:5000/a/b', { domain: 'localhost:5000', path: 'a/b', tag: undefined, digest: undefined }],
    ['localhost/a:x', { domain: 'localhost', path: 'a', tag: 'x', digest: undefined }],
    ['registry.k8s.io/pause:3.9', { domain: 'registry.k8s.io', path: 'pause', tag: '3.9', digest: undefined }],
    [`user/app@${digest}`, { domain: 'docker.io', path: 'user/app', tag: undefined, digest }],
    [`h:1/a__b/c-d:t@${digest}`, { domain: 'h:1', path: 'a__b/c-d', tag: 't', digest }],
    ['index.docker.io/nginx', { domain: 'docker.io', path: 'library/nginx', tag: undefined, digest: undefined }],
  ])('%s is understood', (text, ref) => {
    expect(parseImageRef(text)).toEqual({ ok: true, ref });
  });
  it.each([
    '',
    'Nginx',
    'a//b',
    'a:',
    'a:b:c',
    'a@sha256:12',
    `a@sha256:${'A'.repeat(64)}`,
    '-a',
    'a_',
    'a b',
    'f'.repeat(64),
    'a/',
    '/a',
    'x'.repeat(300),
    'http://a/b',
  ])('"%s" is refused', (text) => {
    expect(parseImageRef(text).ok).toBe(false);
  });
  it('get :latest only when they have neither tag nor digest, and are not expanded', () => {
    expect(withDefaultTag('nginx')).toEqual({ ok: true, image: 'nginx:latest' });
    expect(withDefaultTag('h:5000/nginx')).toEqual({ ok: true, image: 'h:5000/nginx:latest' });
    expect(withDefaultTag('nginx:1')).toEqual({ ok: true, image: 'nginx:1' });
    expect(withDefaultTag(`nginx@${digest}`)).toEqual({ ok: true, image: `nginx@${digest}` });
    expect(withDefaultTag('UPPER')).toEqual({
      ok: false,
      error: `couldn't parse image name "UPPER": invalid reference format: repository name must be lowercase`,
    });
  });
});

describe('image policy', () => {
  it('pulls by the table, and not at all for a policy it does not know', () => {
    expect(decideImage('Always', true)).toBe('pull');
    expect(decideImage('IfNotPresent', true)).toBe('present');
    expect(decideImage('IfNotPresent', false)).toBe('pull');
    expect(decideImage('Never', true)).toBe('present');
    expect(decideImage('Never', false)).toBe('never');
    expect(decideImage('', false)).toBe('never');
  });
});

describe('a user and a password in an image reference', () => {
  it.each([
    ['user:hunter2@registry.example.com/app:1', '<masked>@registry.example.com/app:1'],
    ['https://user:hunter2@registry.example.com/app', 'https://<masked>@registry.example.com/app'],
    ['user:hunter2@registry:5000/app@sha256:abc', '<masked>@registry:5000/app@sha256:abc'],
    ['hunter2@registry/a', '<masked>@registry/a'],
    ['a:b@c@hunter2@d', '<masked>@d'],
  ])('are not repeated: %s', (image, shown) => {
    expect(shownImage(image)).toBe(shown);
    const named = withDefaultTag(image);
    expect(named.ok).toBe(false);
    expect(JSON.stringify(named)).not.toContain('hunter2');
    expect(JSON.stringify(named)).toContain(shown);
  });

  it.each(['nginx', 'nginx:1.2@sha256:bad', 'r:5000/a@sha256:abc', 'NGINX', ''])('a reference without stays as it is: %s', (image) => {
    expect(shownImage(image)).toBe(image);
  });
});
