/** What is found of the kubelet of a machine, and what a process that is none can do about it. */
import { symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { defaultKubeletConfiguration } from '@actorlet/kubelet/machines/config/defaults.ts';
import { describe, expect, test } from 'vitest';
import { findKubelet } from '../src/found/found.ts';
import { resolvedBelow } from '../src/found/hostView.ts';
import { differencesOf } from '../src/found/running.ts';
import { jsonOf, linesOf } from '../src/found/shown.ts';
import { observeArguments } from '../src/found/step.ts';
import { type KubeletChange, watchKubelet } from '../src/found/watch.ts';
import { BOOT_SECONDS, CONFIG, FakeNode, kubelet, SHAPES } from './nodes.ts';

const WORDS = ['/usr/bin/kubelet', '--kubeconfig=/etc/kubernetes/kubelet.conf', '--config=/var/lib/kubelet/config.yaml'];

describe('kubelets of distributions', () => {
  for (const { name, process, files, expected } of SHAPES)
    test(name, async () => {
      using node = new FakeNode();
      node.start(812, process);
      for (const [path, text] of Object.entries(files)) node.write(path, text);
      const found = await findKubelet(node.options());
      const { flags, config } = found.loaded;
      expect(flags.kubeconfig).toBe(expected.kubeconfig);
      expect(flags.rootDir).toBe(expected.rootDir ?? '/var/lib/kubelet');
      if (expected.runtime !== undefined) expect(config.containerRuntimeEndpoint).toBe(expected.runtime);
      if (expected.cgroupDriver !== undefined) expect(config.cgroupDriver).toBe(expected.cgroupDriver);
      if (expected.nodeName !== undefined) expect(found.nodeName.value).toBe(expected.nodeName);
      if (expected.staticPods !== undefined) expect(config.staticPodPath).toBe(expected.staticPods);
      if (expected.maxPods !== undefined) expect(config.maxPods).toBe(expected.maxPods);
      const unread = found.remarks.flatMap((r) => /^the flag (\S+) of the kubelet is not read/.exec(r)?.[1] ?? []);
      expect(unread).toEqual(expected.unread ?? []);
      expect(linesOf(found).join('\n')).toContain('process 812');
      expect(jsonOf(found)).not.toContain('secret');
    });
});

describe('which process it is', () => {
  test('says how many there are, and takes the one that is chosen', async () => {
    using node = new FakeNode();
    node.start(812, kubelet(WORDS));
    node.start(900, kubelet(['/opt/kubelet', '--root-dir=/data']));
    await expect(findKubelet(node.options())).rejects.toThrow(
      'processes 812 (/usr/bin/kubelet), 900 (/opt/kubelet). Choose one with --kubelet-pid',
    );
    expect((await findKubelet(node.options({ pid: 900 }))).loaded.flags.rootDir).toBe('/data');
    await expect(findKubelet(node.options({ pid: 4 }))).rejects.toThrow('there is no process 4');
  });

  test.each([
    ['belongs to a user', { uid: 1000 }, 'runs as user 1000, not as root'],
    ['is in a container', { inner: [7] }, 'runs in a container with processes of its own'],
    ['is in a pod', { cgroup: '/kubepods/burstable/pod12345678-1234-1234-1234-123456789abc/abc' }, 'runs in a pod'],
    [
      'is in a pod of the systemd driver',
      { cgroup: '/a.slice/b-pod12345678_1234_1234_1234_123456789abc.slice/cri.scope' },
      'runs in a pod',
    ],
    ['has ended', { state: 'Z' }, 'has ended'],
    ['tells its version', { words: ['/usr/bin/kubelet', '--version'] }, 'says its version or its flags, and ends'],
    ['is a script', { words: ['/bin/sh', '/usr/bin/kubelet-wrapper'] }, "has a kubelet's name, and its program is /bin/sh"],
    ['has no words', { words: [] }, 'has no command line'],
    [
      'floods its words',
      { words: ['kubelet', 'x'.repeat(2 << 20)] },
      'has a command line that cannot be read: it is larger than 1048576 bytes',
    ],
  ])('a process that calls itself kubelet and %s is named, and is none', async (_, over, why) => {
    using node = new FakeNode();
    node.start(666, kubelet(['kubelet', '--root-dir=/evil'], over));
    await expect(findKubelet(node.options())).rejects.toThrow(`process 666 (kubelet) ${why}`);
    node.start(812, kubelet(WORDS));
    expect((await findKubelet(node.options())).process.pid).toBe(812);
  });

  test('says where a /proc without a kubelet is that of a container', async () => {
    using node = new FakeNode();
    await expect(findKubelet(node.options())).rejects.toThrow(
      'none of its 1 processes is a kubelet. In a container it needs hostPID: true',
    );
    await expect(findKubelet(node.options({ proc: join(node.folder, 'none') }))).rejects.toThrow('it cannot be read: ENOENT');
  });

  test('a process that the kubelet has just made, with its words still, is no second kubelet', async () => {
    using node = new FakeNode();
    node.start(812, kubelet(WORDS));
    node.start(813, kubelet(WORDS, { parent: 812 }));
    expect((await findKubelet(node.options())).process.pid).toBe(812);
  });

  test('words with line ends and colours stay in one line', async () => {
    using node = new FakeNode();
    node.start(812, kubelet(['/usr/bin/kubelet\n\u001b[31m', '--node-labels=\u001b[2Ja=b', '--no-such\nflag=secret']));
    const lines = linesOf(await findKubelet(node.options()));
    expect(lines.join('')).not.toMatch(/\n|\p{Cc}/u);
    expect(lines.join('')).not.toContain('secret');
  });
});

test('this program as the kubelet is taken where a person chooses it', async () => {
  using node = new FakeNode();
  node.start(70, { comm: 'node', words: ['/x/bin/node', '--expose-gc', '/x/dist/actorlet.mjs', '--root-dir=/data'], uid: 1000 });
  const found = await findKubelet(node.options({ pid: 70 }));
  expect(found.loaded.flags.rootDir).toBe('/data');
  expect(found.remarks.join()).not.toContain('not read');
});

test('what the kubelet has filled in by itself is no difference, and what it runs with instead of a file is one', () => {
  const files = { ...defaultKubeletConfiguration(), maxPods: 7 };
  const running = { ...defaultKubeletConfiguration(), tlsCertFile: '/pki/kubelet.crt', clusterDomain: 'x', nodeLeaseDurationSeconds: 60 };
  const setBy = (path: string): string | null => (path === 'maxPods' ? '/etc/k.yaml:3' : null);
  expect(differencesOf(running, files, { setBy, changed: [] })).toEqual([
    { field: 'maxPods', running: '110', files: '7', why: '/etc/k.yaml:3 sets it, and the kubelet runs with something else' },
    {
      field: 'nodeLeaseDurationSeconds',
      running: '60',
      files: '40',
      why: 'no file and no flag sets it: the kubelet has another default, or found it out by itself',
    },
  ]);
});

describe('its files', () => {
  test('lie below the root of the machine, behind links that begin at it', async () => {
    using node = new FakeNode();
    node.start(812, kubelet(WORDS));
    node.write('/data/kubelet/real.yaml', CONFIG('maxPods: 5\nstaticPodPath: manifests\n'));
    node.write('/var/lib/kubelet/.keep', '');
    symlinkSync('/data/kubelet/real.yaml', join(node.root, 'var/lib/kubelet/config.yaml'));
    const { loaded } = await findKubelet(node.options());
    expect(loaded.config.maxPods).toBe(5);
    expect(loaded.config.staticPodPath).toBe('/data/kubelet/manifests');
    expect(loaded.flags.config).toBe('/var/lib/kubelet/config.yaml');
    symlinkSync('loop', join(node.root, 'loop'));
    await expect(resolvedBelow(node.root, '/loop')).rejects.toThrow('has more than 40 links');
    expect(await resolvedBelow(node.root, '/../../../etc/passwd')).toBe(`${node.root}/etc/passwd`);
  });

  test('that changed after the start are named, and those before are not', async () => {
    using node = new FakeNode();
    // Later than now: the files are older than the process.
    const later = Math.round((Date.now() / 1_000 + 60 - BOOT_SECONDS) * 100);
    node.start(812, kubelet(WORDS, { startTicks: later }));
    node.write('/var/lib/kubelet/config.yaml', CONFIG('maxPods: 5\n'));
    utimesSync(join(node.root, 'var/lib/kubelet/config.yaml'), 1, 1);
    const of = async (): Promise<string[]> => (await findKubelet(node.options())).remarks.filter((r) => r.includes('changed after'));
    expect(await of()).toEqual([]);
    node.start(812, kubelet(WORDS));
    expect(await of()).toEqual(['/var/lib/kubelet/config.yaml changed after the kubelet was started: it runs with what was there before']);
  });

  test('that cannot be read are remarks, and the rest counts', async () => {
    using node = new FakeNode();
    node.start(812, kubelet([...WORDS, '--max-pods=9', '--address=nowhere', '--rotate-certificates=perhaps', '-z']));
    node.write('/var/lib/kubelet/config.yaml', 'kind: SomethingElse\n');
    const found = await findKubelet(node.options());
    expect(found.loaded.config.maxPods).toBe(9);
    const said = found.remarks.join('\n');
    expect(said).toContain('kind must be KubeletConfiguration');
    expect(said).toContain('the flag --address of the kubelet is not read: "nowhere" is not an IP address');
    expect(said).toContain('the flag -z of the kubelet is not read');
    expect(found.access.what).toContain('the kubeconfig of the kubelet, /etc/kubernetes/kubelet.conf, cannot be read: ENOENT');
  });
});

describe('another start of the kubelet', () => {
  test('is named, and says what is something else', async () => {
    using node = new FakeNode();
    node.start(812, kubelet(WORDS));
    node.start(700, kubelet(['/opt/kubelet', '--root-dir=/data']));
    const changes: KubeletChange[] = [];
    let turn: (() => void) | undefined;
    const found = await findKubelet(node.options({ pid: 812 }));
    let nowMs = found.process.startedMs + 1_000;
    const wallMs = () => nowMs;
    const clock = { ...node.options().clock, wallMs, setTimeout: (fn: () => void) => (turn = fn), clearTimeout: () => (turn = undefined) };
    using _ = watchKubelet({
      ...{ found, proc: node.proc, clock },
      find: (before) => findKubelet(node.options({ pid: 812, before })),
      onChange: (change) => void changes.push(change),
    });
    const look = async (): Promise<void> => {
      const now = turn;
      turn = undefined;
      now?.();
      await expect.poll(() => turn).toBeDefined();
    };
    await look();
    expect(changes).toEqual([]);
    node.start(812, kubelet(WORDS, { state: 'T' }));
    await look();
    await look();
    node.start(812, kubelet(WORDS));
    await look();
    expect(changes.splice(0).map(({ kind }) => kind)).toEqual(['stopped', 'continued']);
    // What a busy machine does not say is no end.
    node.unread(812);
    await look();
    node.start(812, kubelet(WORDS));
    await look();
    expect(changes).toEqual([]);
    // Another kubelet that was there beside it is not its next start.
    node.end(812);
    await look();
    await look();
    expect(changes.map(({ kind }) => kind)).toEqual(['ended', 'unclear']);
    // The same pid for another program, another kubelet beside it, and its own next start.
    node.start(812, kubelet(['/usr/bin/kubelet-helper', '--root-dir=/x'], { startTicks: 9_000, uid: 1000 }));
    node.start(900, kubelet(WORDS, { startTicks: 9_100 }));
    await look();
    expect(changes.at(-1)).toMatchObject({ kind: 'restarted', pid: 900 });
    // Another node's kubelet that starts meanwhile is none of its starts.
    node.end(900);
    const other = ['--root-dir=/o', '--config=/o/c', '--kubeconfig=/o/k', '--hostname-override=o'];
    node.start(950, kubelet(['/usr/bin/kubelet', ...other], { startTicks: 99_000_000 }));
    await look();
    expect(changes.slice(-2).map(({ kind }) => kind)).toEqual(['ended', 'unclear']);
    node.start(900, kubelet([...WORDS, '--root-dir=/data', '--max-pods=7'], { startTicks: 9_900 }));
    await look();
    nowMs += 120_000;
    await look();
    expect(changes.slice(-1)).toMatchObject([{ kind: 'changed', what: ['adminSocket', 'maxPods', 'rootDir'] }]);
  });
});

test('drop-ins that change count from the next start of the kubelet on', async () => {
  using node = new FakeNode();
  const words = ['/usr/bin/kubelet', '--config-dir=/etc/kubelet.d'];
  node.write('/etc/kubelet.d/10-a.conf', CONFIG('maxPods: 5\n'));
  node.start(812, kubelet(words));
  const found = await findKubelet(node.options());
  const changes: KubeletChange[] = [];
  let turn: (() => void) | undefined;
  const clock = { ...node.options().clock, wallMs: () => Date.now(), setTimeout: (fn: () => void) => (turn = fn), clearTimeout: () => {} };
  const onChange = (change: KubeletChange) => void changes.push(change);
  using _ = watchKubelet({ found, proc: node.proc, clock, find: (before) => findKubelet(node.options({ before })), onChange });
  const look = async (): Promise<void> => {
    const now = turn;
    turn = undefined;
    now?.();
    await expect.poll(() => turn).toBeDefined();
  };
  node.write('/etc/kubelet.d/20-b.conf', CONFIG('maxPods: 9\n'));
  await look();
  expect(changes).toEqual([]);
  node.start(813, kubelet(words, { startTicks: 9_000 }));
  node.end(812);
  await look();
  expect(changes).toMatchObject([{ kind: 'ended' }, { kind: 'changed', pid: 813, what: ['maxPods'] }]);
});

test('a kubelet that has just started and does not answer yet is judged when it does', async () => {
  using node = new FakeNode();
  node.start(812, kubelet(WORDS));
  const plain = await findKubelet(node.options());
  const config = { ...plain.loaded.config, tlsCertFile: '/pki/kubelet.crt' };
  const answers = { version: 'v1.36.2', noVersion: '', config, configFrom: '', unknownFields: [], forbidden: [] };
  const before = { ...plain, running: answers, loaded: { ...plain.loaded, config } };
  const nowMs = plain.process.startedMs + 2_000;
  const process = { ...plain.process, startTicks: '1' };
  const found = [
    { ...plain, process, running: { ...answers, version: null, config: null } },
    { ...before, process },
  ];
  const changes: KubeletChange[] = [];
  const turns: (() => void)[] = [];
  const clock = { ...node.options().clock, wallMs: () => nowMs, setTimeout: (fn: () => void) => turns.push(fn), clearTimeout: () => {} };
  const first = { ...before, process: { ...plain.process, startTicks: '0' } };
  using _ = watchKubelet({
    ...{ found: first, proc: node.proc, clock },
    async find(_, seen) {
      seen(process.pid);
      return found.shift() ?? before;
    },
    onChange: (change) => void changes.push(change),
  });
  for (let turn = 0; turn < 2; turn++) {
    turns.at(turn)?.();
    await expect.poll(() => turns.length).toBe(turn + 2);
  }
  expect(changes.map(({ kind }) => kind)).toEqual(['ended', 'starts', 'restarted']);
});

test('the words behind observe are read, and all that is wrong is said', () => {
  const read = observeArguments(['observe', '--kubelet-pid=7', '--host-root', '/host/', '--show-kubelet', '-o', 'json', '--v=2'], {
    cwd: '/',
  });
  expect(read).toMatchObject({ pid: 7, hostRoot: '/host', show: true, json: true });
  expect(read.own.given.get('v')?.value).toBe(2);
  expect(() => observeArguments(['observe', '--kubelet-pid=-1', '-o', 'xml', '--nothing'], { cwd: '/' })).toThrow(
    /--kubelet-pid: "-1" is not the number of a process[\s\S]*"xml" is not a format[\s\S]*unknown flag --nothing/,
  );
});

test('the service account of a pod is taken before the credentials of the kubelet', async () => {
  using node = new FakeNode();
  node.start(812, kubelet(WORDS));
  node.write('../account/token', 'secret-token');
  writeFileSync(join(node.folder, 'account/ca.crt'), 'no certificate');
  const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '6443', NODE_NAME: 'worker-1' };
  const found = await findKubelet(node.options({ env }));
  expect(found.access.client?.server.href).toBe('https://[fd00::1]:6443/');
  expect(found.nodeName).toEqual({ value: 'worker-1', from: 'NODE_NAME of this pod' });
  expect(found.running?.version).toBeNull();
  expect(linesOf(found).join('\n')).not.toContain('secret-token');
});
