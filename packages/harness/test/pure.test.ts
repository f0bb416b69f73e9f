/** What the harness decides without a node: manifests, expectations, timelines, mounts. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { ContainerStatus, PodPhase } from '@actorlet/kubelet/machines/kube/types.ts';
import { afterEach, describe, expect, it } from 'vitest';
import { parseExpectation, parseTime } from '../src/expectation.ts';
import { History, type Look, type PodView, podText, type TimelineEntry } from '../src/history.ts';
import { readManifests } from '../src/manifests.ts';
import { prepare } from '../src/options.ts';
import { checkNode } from '../src/programs.ts';
import { isOwn, mountsBelow } from '../src/reaper/cleanup.ts';
import { cleanEnv } from '../src/reaper/client.ts';

const dirs: string[] = [];
afterEach(() => {
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true, force: true });
});
function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-pure-'));
  dirs.push(dir);
  return dir;
}
const at = { nodeName: 'n1', folder: '/m' };
const podYaml = (name: string, more = ''): string =>
  `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}${more}}\nspec:\n  containers:\n  - {name: app, image: x}\n`;

describe('manifests', () => {
  it('are objects, text, files, folders and file URLs', () => {
    const dir = tempDir();
    const file = join(dir, 'b.yaml');
    writeFileSync(file, podYaml('b'));
    writeFileSync(
      join(dir, 'a.json'),
      JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec: { containers: [{ name: 'c', image: 'x' }] } }),
    );
    writeFileSync(join(dir, 'notes.txt'), 'not a manifest');
    const names = (m: object | string | URL) => readManifests(m, at).map((p) => p.name);
    expect(names(podYaml('t'))).toEqual(['t']);
    expect(names({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'o' }, spec: { containers: [{ name: 'c', image: 'x' }] } })).toEqual([
      'o',
    ]);
    expect(names(file)).toEqual(['b']);
    expect(names(pathToFileURL(file))).toEqual(['b']);
    expect(names(dir)).toEqual(['a', 'b']);
  });
  it('may hold several documents, with comments and separators about', () => {
    const text = `# two pods\n---\n${podYaml('one')}---\n# nothing\n---\n${podYaml('two', ', namespace: shop')}`;
    const read = readManifests(text, at);
    expect(read.map((p) => [p.namespace, p.name, p.file, p.pod.metadata.name])).toEqual([
      ['default', 'one', '/m/default_one.yaml', 'one-n1'],
      ['shop', 'two', '/m/shop_two.yaml', 'two-n1'],
    ]);
  });
  it('are refused with what is wrong, where, and on which line of the whole file', () => {
    const dir = tempDir();
    const file = join(dir, 'pods.yaml');
    writeFileSync(file, `${podYaml('good')}---\n${podYaml('bad')}  restartPolicy: Sometimes\n`);
    expect(() => readManifests(file, at)).toThrow(/pods\.yaml, document 2: spec\.restartPolicy: /);
    writeFileSync(file, `${podYaml('good')}---\nkind: [Pod\n`);
    expect(() => readManifests(file, at)).toThrow(/pods\.yaml, document 2: line (8|9), column/);
    expect(() => readManifests('kind: Deployment\napiVersion: apps/v1\n', at)).toThrow('apps/v1, kind Deployment: not supported here');
    expect(() => readManifests('nowhere.yaml', at)).toThrow(/"nowhere\.yaml" cannot be read: ENOENT/);
    mkdirSync(join(dir, 'empty'));
    expect(() => readManifests(join(dir, 'empty'), at)).toThrow('no .yaml, .yml or .json file in the folder');
    expect(() => readManifests('\n', at)).toThrow('the manifest: the document is empty');
  });
});

describe('options', () => {
  const entry = '/x/sandboxd.mjs';
  it('are refused by name', () => {
    expect(() => prepare({ runtime: 'docker' as 'hollow' }, entry)).toThrow(
      'runtime: "docker" is none of process, oci, hollow, containerd',
    );
    expect(() => prepare({ runtime: 'containerd' }, entry)).toThrow('endpoint: runtime containerd needs the socket');
    expect(() => prepare({ endpoint: '/run/x.sock' }, entry)).toThrow('endpoint: runtime process has none');
    expect(() => prepare({ runtime: 'containerd', endpoint: 'x.sock' }, entry)).toThrow('endpoint: "x.sock" is not the path of a socket');
    expect(() => prepare({ name: 'My Node' }, entry)).toThrow('name: "My Node" must be');
    expect(() => prepare({ rootDir: join(tmpdir(), 'x'.repeat(100)) }, entry)).toThrow(/rootDir: .* is too long/);
    const dir = tempDir();
    writeFileSync(join(dir, 'mine'), '');
    expect(() => prepare({ rootDir: dir }, entry)).toThrow(`rootDir: ${dir} is not empty`);
  });
  it('give a process of its own what is not the runner’s alone', () => {
    expect(cleanEnv({ PATH: '/bin', NODE_OPTIONS: '--inspect', NODE_TEST_CONTEXT: 'child', NOTIFY_SOCKET: '/s', GONE: undefined })).toEqual(
      { PATH: '/bin' },
    );
  });
});

describe('expectations', () => {
  it('name a pod, a condition and a time', () => {
    for (const [text, pod] of [
      ['phase=Running within 30s', ''],
      ['web phase=Running|Succeeded', 'web'],
      ['shop/web restarts>=2 within 500ms', 'shop/web'],
      ['ready-made ready', 'ready-made'],
      ['gone within 2m', ''],
      ['web log~listening on port \\d+ within 5s', 'web'],
      ['restarts=0 for 10s', ''],
      ['exit=3', ''],
      ['reason=CrashLoopBackOff', ''],
      ['unready', ''],
    ] as const) {
      expect([text, parseExpectation(text).pod]).toEqual([text, pod]);
    }
  });
  it('are refused with the reason', () => {
    for (const [text, why] of [
      ['web', 'must be [POD] CONDITION'],
      ['phase=Runing', '"Runing" is no phase; phases are Pending, Running'],
      ['ready within soon', '"soon" is no time'],
      ['restarts>=many', 'restarts>= needs a whole number'],
      ['exit=x', '"x" is no exit code'],
      ['gone for 3s', 'gone cannot be watched for a time; say within'],
      ['log~( within 1s', 'Invalid regular expression'],
    ] as const) {
      expect(() => parseExpectation(text), text).toThrow(why);
    }
    expect([parseTime('1.5s'), parseTime('2m'), parseTime('250ms'), parseTime('3'), parseTime('-1s')]).toEqual([
      1_500,
      120_000,
      250,
      undefined,
      undefined,
    ]);
  });
});

function status(state: ContainerStatus['state'], more: Partial<ContainerStatus> = {}): ContainerStatus {
  return { name: 'app', state, lastState: {}, ready: state.running !== undefined, restartCount: 0, image: 'x', imageID: '', ...more };
}
function view(phase: PodPhase, c: ContainerStatus, more: Partial<PodView> = {}): PodView {
  return {
    uid: 'u1',
    namespace: 'default',
    name: 'web-n1',
    source: 'file',
    phase,
    status: phase,
    ready: c.ready ? 1 : 0,
    containers: 1,
    restarts: c.restartCount,
    worker: 'syncing',
    workerState: '',
    reason: '',
    message: '',
    podIP: '',
    removed: false,
    rejected: false,
    ageMs: 0,
    pod: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web-n1', namespace: 'default', uid: 'u1' },
      spec: { containers: [{ name: 'app', image: 'x' }] },
      status: { phase, conditions: [{ type: 'Ready', status: c.ready ? 'True' : 'False' }], containerStatuses: [c] },
    },
    ...more,
  };
}
const ran = { running: { startedAt: '2026-01-01T00:00:00Z' } };
const failed = { terminated: { exitCode: 3, reason: 'Error' } };

describe('the history of a pod', () => {
  function take(looks: readonly [number, PodView | undefined][], events: Look['events'] = []) {
    const told: TimelineEntry[] = [];
    const history = new History({ nameOf: (n) => n.replace(/-n1$/, ''), onEntry: (e) => told.push(e) });
    for (const [atMs, p] of looks) history.take({ atMs, pods: p === undefined ? [] : [p], events });
    return { history, told: told.map((e) => `${e.atMs} ${e.pod} ${e.what}`) };
  }
  it('has times from its application, and the gap of each restart', () => {
    const { history, told } = take([
      [1_000, view('Pending', status({ waiting: { reason: 'ContainerCreating' } }))],
      [1_200, view('Running', status(ran, { containerID: 'x://a' }))],
      [2_200, view('Running', status(failed, { containerID: 'x://a' }))],
      [2_250, view('Running', status({ waiting: { reason: 'CrashLoopBackOff' } }, { containerID: 'x://a', lastState: failed }))],
      [12_200, view('Running', status(ran, { containerID: 'x://b', restartCount: 1, lastState: failed }))],
      [12_300, undefined],
    ]);
    expect(history.timings('u1', 900)).toEqual({
      appliedAtMs: 900,
      scheduledMs: 100,
      startedMs: 300,
      readyMs: 300,
      restarts: [{ container: 'app', exitCode: 3, reason: 'Error', endedAtMs: 2_200, startedAtMs: 12_200, gapMs: 10_000 }],
    });
    expect(told).toEqual([
      '1000 web phase Pending',
      '1000 web app waiting ContainerCreating',
      '1200 web phase Running',
      '1200 web ready',
      '1200 web app running',
      '2200 web not ready',
      '2200 web app exited 3 (Error)',
      '2250 web app waiting CrashLoopBackOff',
      '12200 web ready',
      '12200 web app running',
      '12300 web gone',
    ]);
  });
  it('has a gap of 0 where end and start fell between two looks, and no restart where nothing started again', () => {
    const between = take([
      [1_000, view('Running', status(ran, { containerID: 'x://a' }))],
      [1_050, view('Running', status(ran, { containerID: 'x://b', restartCount: 1, lastState: failed }))],
    ]);
    expect(between.history.timings('u1', 0).restarts).toMatchObject([{ exitCode: 3, gapMs: 0 }]);
    const ended = take([
      [1_000, view('Running', status(ran, { containerID: 'x://a' }))],
      [1_050, view('Failed', status(failed, { containerID: 'x://a' }))],
    ]);
    expect(ended.history.timings('u1', 0).restarts).toEqual([]);
    expect(ended.history.timings('other', 0)).toEqual({ appliedAtMs: 0, scheduledMs: null, startedMs: null, readyMs: null, restarts: [] });
  });
  it('tells an event each time its count has changed', () => {
    const event = (count: number): Look['events'] => [{ atMs: 1, type: 'Warning', reason: 'BackOff', message: 'wait', count }];
    const told: string[] = [];
    const history = new History({ nameOf: (n) => n, onEntry: (e) => told.push(e.what) });
    for (const count of [1, 1, 2, 1]) history.take({ atMs: 1, pods: [], events: event(count) });
    expect(told).toEqual(['Warning BackOff: wait', 'Warning BackOff: wait', 'Warning BackOff: wait']);
  });
  it('is told in one line', () => {
    expect(podText(undefined)).toBe('the node knows no such pod');
    expect(
      podText(view('Running', status({ waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s' } }, { restartCount: 1 }))),
    ).toBe('Running, 0 of 1 ready, 1 restart, app: waiting CrashLoopBackOff: back-off 10s');
  });
});

describe('removal', () => {
  it('knows its own pods by the name of the node behind theirs', () => {
    const labels = (name: string) => ({ 'io.kubernetes.pod.name': name });
    expect([isOwn(labels('web-test-1'), 'test-1'), isOwn(labels('web-other'), 'test-1'), isOwn({}, 'test-1')]).toEqual([
      true,
      false,
      false,
    ]);
  });
  it('unmounts what is below its folder, deepest first, and nothing beside it', () => {
    const line = (path: string) => `36 35 98:0 / ${path} rw,noatime - tmpfs tmpfs rw`;
    const info = ['/', '/t/a', '/t/a/b', '/t/ab', '/t/a/b/c\\040d', '/proc'].map(line).join('\n');
    expect(mountsBelow('/t/a', info)).toEqual(['/t/a/b/c d', '/t/a/b']);
  });
});

it('says which Node it needs', () => {
  expect(() => checkNode('20.20.2')).toThrow('actorlet/harness needs Node 22.19 or newer; this is 20.20.2');
  expect(() => checkNode('22.18.0')).toThrow('22.19');
  for (const version of ['22.19.0', '24.0.1', '25.1.0-nightly']) expect(() => checkNode(version)).not.toThrow();
});

it('refuses an option that there is not', () => {
  expect(() => prepare({ rootdir: '/x' } as object, 'sandbox')).toThrow('rootdir: is no option of a test node (did you mean rootDir?)');
});
