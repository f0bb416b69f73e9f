/** actorctl against a real admin socket: what it prints, and the exit codes it ends with. */

import { appendFileSync, chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { adminClient } from '@actorlet/admin/src/client.ts';
import { socketPathFrom } from '@actorlet/admin/src/socketPath.ts';
import { adminServerSpec } from '@actorlet/kubelet/actors/edge/admin.ts';
import type { InspectionPage } from '@actorlet/kubelet/actors/edge/server.ts';
import type { ActorState } from '@actorlet/kubelet/actors/supervision/types.ts';
import { createNet } from '@actorlet/kubelet/boot/dependencies/net/net.ts';
import { apiView } from '@actorlet/kubelet/machines/api/messages.ts';
import { eventsView } from '@actorlet/kubelet/machines/foundation/messages.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import { entryLine, type RecorderEntry } from '@actorlet/kubelet/machines/recorder/recorderEntry.ts';
import { criView } from '@actorlet/kubelet/machines/runtime/cri/messages.ts';
import { shownPages } from '@actorlet/shown/src/extension.ts';
import { afterEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { run, sampleTree, stateAt, until, views } from '../../../test/edge/harness.ts';
import {
  crashEvents,
  crashing,
  crashRecord,
  criReady,
  NOW,
  pod,
  record,
  running,
  statusView,
  viewOfPods,
} from '../../../test/edge/metrics/samples.ts';
import { fakePorts } from '../../../test/supervision/fakePorts.ts';
import { runCtl } from '../src/cli.ts';

const entry = (what: string): RecorderEntry => ({ n: 0, atMs: NOW, kind: 'note', path: 'node', what, detail: '', from: '', causes: [] });

const enders: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of enders.splice(0).reverse()) await end();
});
function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-ctl-'));
  enders.push(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
async function daemon() {
  const root = tempDir();
  const socketPath = join(root, 'actorlet.sock');
  const ports = fakePorts({ net: createNet() });
  ports.jumpWall(NOW - ports.clock.wallMs());
  const registry = views();
  registry.set(podsView, viewOfPods([crashRecord, record(pod('calm', { containers: ['a', 'b'] }))]));
  registry.set(statusesView, statusView({ 'uid-web-node1': crashing, 'uid-calm': running }));
  registry.set(eventsView, crashEvents);
  registry.set(criView, criReady);
  const at: { tree: ActorState; lines: RecorderEntry[]; page?: InspectionPage | undefined } = {
    tree: sampleTree(),
    lines: [entry('one'), entry('two')],
  };
  const asked: unknown[] = [];
  const inspect = {
    state: () => at.tree,
    stateAt: (path: string) => stateAt(at.tree, path),
    recorder: (filter: unknown) => {
      asked.push(filter);
      return { entries: at.lines, overwritten: 0 };
    },
    configz: () => ({ kind: 'KubeletConfiguration' }),
    page: (): InspectionPage => at.page ?? { state: 'off' },
    started: { wallMs: NOW - 300_000, monoMs: 0 },
  };
  const actor = run(
    adminServerSpec({
      socketPath,
      inspect,
      podLogsDir: join(root, 'pods'),
      routes: [shownPages({ inspect, config: { config: { podLogsDir: join(root, 'pods') } } }).routes],
    }),
    ports,
    registry,
  );
  enders.push(() => actor.stop());
  await until(() => actor.value() === 'listening');
  return { root, socketPath, registry, at, asked };
}
const it = test.extend('d', () => daemon());
async function ctl(
  argv: string[],
  more: { stdin?: string; env?: Record<string, string>; columns?: number; signal?: AbortSignal; onOut?: (all: string) => void } = {},
) {
  let out = '';
  let err = '';
  const code = await runCtl({
    argv,
    env: more.env ?? {},
    out: (t) => {
      out += t;
      more.onOut?.(out);
    },
    err: (t) => {
      err += t;
    },
    stdin: Readable.from(more.stdin === undefined ? [] : [Buffer.from(more.stdin)]),
    outBytes: (b) => {
      out += Buffer.from(b).toString();
      more.onOut?.(out);
    },
    errBytes: (b) => {
      err += Buffer.from(b).toString();
    },
    exists: () => false,
    columns: more.columns ?? 0,
    nowMs: () => NOW,
    signal: more.signal ?? new AbortController().signal,
  });
  return { code, out, err };
}

describe('actorctl', () => {
  it('draws the tree', async ({ d }) => {
    const { code, out } = await ctl(['tree', '--socket', d.socketPath]);
    expect(code).toBe(0);
    await expect(out).toMatchFileSnapshot('golden/ctl/tree.txt');
  });
  it('calls the actors of pods by the names of the pods, and cuts long states on a narrow terminal', async ({ d }) => {
    const worker = { ...d.at.tree, path: 'node/uid-calm', state: 'syncing.'.padEnd(60, 'x'), lifecycle: 'running', children: [] };
    d.at.tree = { ...d.at.tree, children: [...d.at.tree.children, worker] };
    const { out } = await ctl(['tree', '--socket', d.socketPath], { columns: 80, env: { NO_COLOR: '1' } });
    const line = out.split('\n').find((l) => l.includes('calm'));
    expect(line).toMatch(/─ calm +syncing\.xxxxxxxxxxxxx… /);
    expect(out).not.toContain('uid-calm');
    for (const l of out.split('\n')) expect(l.length).toBeLessThanOrEqual(80);
  });
  it('draws the tree again until it is interrupted', async ({ d }) => {
    const stop = new AbortController();
    const { code, out } = await ctl(['tree', '--watch', '--socket', d.socketPath], {
      signal: stop.signal,
      onOut: (all) => {
        if (all.split('ACTOR').length === 3) stop.abort();
      },
    });
    expect(code).toBe(0);
    expect(out.split('ACTOR')).toHaveLength(3);
  });
  it('suggests the command that was meant', async () => {
    const { code, err } = await ctl(['tre']);
    expect(code).toBe(2);
    expect(err).toContain('(did you mean tree?)');
  });
  it('suggests the option that was meant', async () => {
    expect((await ctl(['tree', '--wach'])).err).toContain('Unknown argument: wach (did you mean --watch?)');
    expect((await ctl(['recorder', '--sinse', '5s'])).err).toContain('(did you mean --since?)');
  });
  it('lists pods with restarts and the reason that matters', async ({ d }) => {
    const { out } = await ctl(['pods', '--socket', d.socketPath]);
    await expect(out).toMatchFileSnapshot('golden/ctl/pods.txt');
  });
  it('takes and gives names as kubectl does', async ({ d }) => {
    const at = (...argv: string[]) => ctl([...argv, '--socket', d.socketPath]);
    expect((await at('pods', '-o', 'name')).out).toBe('pod/calm\npod/web-node1\n');
    expect((await at('why', 'pod/calm')).out).toContain('Pod default/calm');
    expect((await at('-n', 'default', 'why', 'pod/web')).out).toContain('Pod default/web-node1');
    expect((await at('pods', '--no-headers')).out).toMatch(/^default +calm /);
    expect((await at('events', '--no-headers')).out).not.toContain('LAST SEEN');
    expect((await at('version')).out).toMatch(/^actorctl v.*\nactorlet .*\n$/);
  });
  it('gives a pod as the Pod, with its live status, and several as a List', async ({ d }) => {
    const pod = parse((await ctl(['get', 'pod', 'calm', '-o', 'yaml', '--socket', d.socketPath])).out) as Record<string, unknown>;
    expect(pod).toMatchObject({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'calm' }, status: { phase: 'Running' } });
    const list = JSON.parse((await ctl(['get', 'pods', '-o', 'json', '--socket', d.socketPath])).out) as { kind: string; items: object[] };
    expect(list.kind).toBe('List');
    expect(list.items.map((item) => (item as { kind: string }).kind)).toEqual(['Pod', 'Pod']);
  });
  it('gives programs the whole pods with their live status', async ({ d }) => {
    const { pods } = (await adminClient(d.socketPath, new AbortController().signal).json('/pods', { full: '' })) as {
      pods: { name: string; pod: { spec: unknown; status: unknown } }[];
    };
    expect(pods.map((p) => [p.name, p.pod.status])).toEqual([
      ['calm', running],
      ['web-node1', crashing],
    ]);
    expect(pods[1]?.pod.spec).toEqual(crashRecord.pod.spec);
  });
  it('lists events, of all or of one pod', async ({ d }) => {
    await expect((await ctl(['events', '--socket', d.socketPath])).out).toMatchFileSnapshot('golden/ctl/events.txt');
    expect((await ctl(['events', 'calm', '--socket', d.socketPath])).out).toBe('No events.\n');
    expect(await ctl(['events', 'nosuch', '--socket', d.socketPath])).toMatchObject({
      code: 1,
      err: 'actorctl: no pod and no event of a pod called nosuch\n',
    });
  });
  it('explains a pod, and ends with 1 for one that it does not know', async ({ d }) => {
    const known = await ctl(['why', 'default/web-node1', '--socket', d.socketPath]);
    expect([known.code, known.out.split('\n')[0]]).toEqual([0, 'Pod default/web-node1  uid uid-web-node1']);
    expect(await ctl(['why', 'nosuch', '--socket', d.socketPath])).toMatchObject({ code: 1 });
  });
  it('names each actor’s health, and ends with 1 only when a part that must be there is down', async ({ d }) => {
    d.at.tree = sampleTree({ 'node/pods/workers/uid-web': { lifecycle: 'quarantined', lastError: 'boom' } });
    const sick = await ctl(['healthz', '--socket', d.socketPath]);
    expect([sick.code, sick.out]).toEqual([0, expect.stringContaining('[-]node/pods/workers/uid-web failed: quarantined: boom\n')]);
    expect(sick.out).toContain('[+]node/runtime/cri ok\n');
    d.at.tree = sampleTree({ 'node/runtime': { lifecycle: 'parked', lastError: 'gave up' } });
    const down = await ctl(['healthz', '--socket', d.socketPath]);
    expect([down.code, down.out]).toEqual([1, expect.stringContaining('[-]node/runtime failed: parked: gave up\n')]);
    d.at.tree = sampleTree({
      'node/pods/podManager': { mailbox: { depth: 9, depthMax: 9, oldestAgeMs: 31_000, coalesced: 0, dropped: 0, suspended: true } },
    });
    const slow = await ctl(['healthz', '--socket', d.socketPath]);
    expect([slow.code, slow.out]).toEqual([
      0,
      expect.stringContaining('[-]node/pods/podManager failed: 9 messages wait, the oldest for 31 s\n'),
    ]);
  });
  it('names the runtime and the API server as lost, and ends with 1, while every actor runs', async ({ d }) => {
    const server = 'https://api:6443';
    d.at.tree = sampleTree({ 'node/edge/admin': { path: 'node/api/link' } });
    d.registry.set(criView, { ...criReady, state: 'lost', reason: 'connect ENOENT /run/x.sock' });
    d.registry.set(apiView.link, { state: 'lost', server, reason: 'ECONNREFUSED', sinceMs: NOW });
    const { code, out } = await ctl(['healthz', '--socket', d.socketPath]);
    expect([code, out]).toEqual([1, expect.stringContaining('[-]node/runtime/cri failed: containerd does not answer: connect ENOENT')]);
    expect(out).toContain('[-]node/api/link failed: the API server https://api:6443 does not answer: ECONNREFUSED\n');
    d.registry.set(criView, { ...criReady, networkReady: false, networkReason: 'no CNI' });
    d.registry.set(apiView.link, { state: 'reachable', server, reason: '', sinceMs: NOW });
    const network = await ctl(['healthz', '--socket', d.socketPath]);
    expect([network.code, network.out]).toEqual([1, expect.stringContaining('failed: the network of containerd is not ready: no CNI\n')]);
    d.registry.set(criView, criReady);
    expect((await ctl(['healthz', '--socket', d.socketPath])).code).toBe(0);
  });
  it('refuses the record of an actor that there is not, with the one that was probably meant', async ({ d }) => {
    d.at.lines = [];
    expect(await ctl(['recorder', 'node/pod', '--socket', d.socketPath])).toEqual({
      ...{ code: 1, out: '' },
      err: 'actorctl: no actor node/pod on this node (did you mean node/pods?).\n',
    });
    expect((await ctl(['recorder', 'podManager', '--socket', d.socketPath])).err).toContain('did you mean node/pods/podManager?');
    expect((await ctl(['recorder', 'x'.repeat(5_000), '--socket', d.socketPath])).err).toContain('actorctl tree lists them');
    expect(await ctl(['recorder', 'node/pods', '--socket', d.socketPath])).toEqual({
      ...{ code: 0, out: '' },
      err: 'Nothing was recorded of node/pods yet.\n',
    });
  });
  it('says since when there are events', async ({ d }) => {
    expect((await ctl(['events', '--socket', d.socketPath])).err).toBe('Kept since this daemon started, 5m ago at 11:55:00.000Z.\n');
  });
  it('asks the flight recorder for one actor and so many entries', async ({ d }) => {
    expect(await ctl(['recorder', 'node/pods', '--limit', '7', '--socket', d.socketPath])).toMatchObject({
      code: 0,
      out: ['one', 'two'].map((what) => `${entryLine(entry(what))}\n`).join(''),
    });
    expect(d.asked).toEqual([{ path: 'node/pods', limit: 7 }]);
  });
  it('prints JSON on demand', async ({ d }) => {
    for (const command of [['tree'], ['pods'], ['why', 'web'], ['events'], ['healthz'], ['recorder']]) {
      const { out } = await ctl([...command, '--json', '--socket', d.socketPath]);
      expect(() => JSON.parse(out)).not.toThrow();
    }
  });
  it('says that a list is old or incomplete, beside the list', async ({ d }) => {
    d.at.tree = sampleTree({ 'node/pods/podManager': { lifecycle: 'restarting', lastError: 'boom' } });
    d.registry.set(podsView, viewOfPods([crashRecord], false));
    const { code, err } = await ctl(['pods', '--socket', d.socketPath]);
    expect([code, err]).toEqual([
      0,
      'This list may be old: node/pods/podManager is restarting (boom).\nNot every configured source has reported yet; more pods may come.\n',
    ]);
  });
  it('colours and cuts lines only for a terminal', async ({ d }) => {
    d.at.tree = sampleTree({ 'node/runtime/cri': { lifecycle: 'restarting', lastError: 'x'.repeat(300) } });
    const plain = await ctl(['tree', '--socket', d.socketPath]);
    expect(plain.out).not.toContain('\u001b');
    expect(plain.out).toContain('x'.repeat(300));
    const tty = await ctl(['tree', '--socket', d.socketPath], { columns: 80 });
    expect(tty.out).toContain('\u001b[31m');
    expect((await ctl(['tree', '--socket', d.socketPath], { columns: 80, env: { NO_COLOR: '1' } })).out).not.toContain('\u001b');
  });
});

describe('actorctl without a daemon', () => {
  it('says so and ends with 3', async () => {
    const path = join(tempDir(), 'none.sock');
    expect(await ctl(['tree', '--socket', path])).toMatchObject({
      code: 3,
      out: '',
      err: expect.stringContaining(`no daemon: ${path} does not exist`),
    });
  });
  it('says that the pods run on when the daemon died, and ends with 3', async ({ d }) => {
    await enders.pop()?.();
    // What a crash leaves behind: the socket file without a listener.
    const { createServer } = await import('node:net');
    const { renameSync } = await import('node:fs');
    const dead = createServer();
    await new Promise<void>((resolve) => dead.listen(d.socketPath, resolve));
    renameSync(d.socketPath, `${d.socketPath}.x`);
    await new Promise<void>((resolve) => dead.close(() => resolve()));
    renameSync(`${d.socketPath}.x`, d.socketPath);
    expect(await ctl(['pods', '--socket', d.socketPath])).toMatchObject({ code: 3, err: expect.stringContaining('nobody answers') });
  });
  it('passes on why the daemon cannot answer now, and ends with 5', async ({ d }) => {
    const bare = views();
    const ports = fakePorts({ net: createNet() });
    const socketPath = join(d.root, 'bare.sock');
    const inspect = {
      state: () => sampleTree(),
      stateAt: (path: string) => stateAt(sampleTree(), path),
      recorder: () => ({ entries: [], overwritten: 0 }),
      configz: () => ({}),
    };
    const actor = run(
      adminServerSpec({
        socketPath,
        inspect,
        podLogsDir: '/x',
        routes: [shownPages({ inspect, config: { config: { podLogsDir: '/x' } } }).routes],
      }),
      ports,
      bare,
    );
    enders.push(() => actor.stop());
    await until(() => actor.value() === 'listening');
    expect(await ctl(['pods', '--socket', socketPath])).toMatchObject({
      code: 5,
      err: expect.stringMatching(/podManager runs but has not published/),
    });
    expect((await ctl(['why', 'web', '--socket', socketPath])).out).toMatch(/^No pod list yet/);
  });
  it('says where the inspection page is: off, not yet there, not served, or its address', async ({ d }) => {
    const answers: [InspectionPage | undefined, { code: number; out?: string; err?: unknown }][] = [
      [undefined, { code: 1, err: expect.stringContaining('the inspection page is off') }],
      [{ state: 'starting' }, { code: 5, err: expect.stringContaining('is not there yet; ask again') }],
      [
        { state: 'failed', why: 'port 1 is taken' },
        { code: 5, err: expect.stringContaining('is not served: port 1 is taken') },
      ],
      [
        { state: 'served', url: 'http://127.0.0.1:1/', token: 't' },
        { code: 0, out: 'http://127.0.0.1:1/#token=t\n' },
      ],
    ];
    for (const [page, answer] of answers) {
      d.at.page = page;
      expect(await ctl(['ui', '--socket', d.socketPath])).toMatchObject(answer);
    }
  });
  it('ends with 2 for what it does not understand', async () => {
    for (const argv of [['dance'], ['why'], ['tree', '--frob'], ['logs', 'x', '--tail', '-1']]) {
      expect([argv, (await ctl(argv)).code]).toEqual([argv, 2]);
    }
  });
  it('looks for the socket in the flag, the environment, this directory, then the host', () => {
    const io = (env: Record<string, string>, here: boolean) => ({ env, exists: () => here });
    expect(socketPathFrom('/f', io({ ACTORLET_SOCKET: '/e' }, true))).toBe('/f');
    expect(socketPathFrom(undefined, io({ ACTORLET_SOCKET: '/e' }, true))).toBe('/e');
    expect(socketPathFrom(undefined, io({}, true))).toBe('.actorlet/actorlet.sock');
    expect(socketPathFrom(undefined, io({}, false))).toBe('/var/lib/kubelet/actorlet.sock');
    const only = (...there: string[]) => ({ env: {}, exists: (path: string) => there.includes(path) });
    expect(socketPathFrom(undefined, only('.actorlet', '.actorlet/fleet.sock'))).toBe('.actorlet/fleet.sock');
    expect(socketPathFrom(undefined, only('.actorlet/fleet.sock', '/var/lib/kubelet/actorlet.sock'))).toBe(
      '/var/lib/kubelet/actorlet.sock',
    );
  });
  it('keeps the socket to its owner', async ({ d }) => {
    expect(statSync(d.socketPath).mode & 0o777).toBe(0o600);
  });
});

describe('actorctl logs', () => {
  const line = (n: number, stream = 'stdout', tag = 'F') => `2026-01-01T00:00:0${n % 10}.000000000Z ${stream} ${tag} line ${n}\n`;
  async function withLog(run: number, content: string) {
    const d = await daemon();
    const dir = join(d.root, 'pods/default_web-node1_uid-web-node1/web');
    mkdirSync(dir, { recursive: true });
    const path = join(dir, `${run}.log`);
    writeFileSync(path, content);
    return { ...d, dir, path };
  }
  it('prints what the container wrote, both streams in order, partial lines joined', async () => {
    const d = await withLog(3, line(1) + line(2, 'stderr') + line(3, 'stdout', 'P') + line(4));
    expect(await ctl(['logs', 'web', '--socket', d.socketPath])).toEqual({ code: 0, out: 'line 1\nline 2\nline 3line 4\n', err: '' });
    expect((await ctl(['logs', 'web', '--timestamps', '--socket', d.socketPath])).out.split('\n')[0]).toBe(
      '2026-01-01T00:00:01.000000000Z line 1',
    );
  });
  it('prints the last lines of a file longer than one block', async () => {
    const d = await withLog(3, Array.from({ length: 9000 }, (_, i) => line(i)).join(''));
    expect((await ctl(['logs', 'web', '--tail', '2', '--socket', d.socketPath])).out).toBe('line 8998\nline 8999\n');
    expect((await ctl(['logs', 'web', '--tail', '0', '--socket', d.socketPath])).out).toBe('');
    expect((await ctl(['logs', 'web', '--tail', '99999', '--socket', d.socketPath])).out.split('\n')).toHaveLength(9001);
  });
  it('prints the run before with --previous: while the container waits for its next start, the one that ended', async () => {
    const d = await withLog(3, line(7));
    writeFileSync(join(d.dir, '2.log'), line(6));
    const previous = async () => (await ctl(['logs', 'web', '-p', '--socket', d.socketPath])).out;
    expect(await previous()).toBe('line 7\n');
    const running = structuredClone(crashing);
    const web = running.containerStatuses?.[0];
    if (web !== undefined) web.state = { running: { startedAt: '2026-01-01T00:00:00Z' } };
    d.registry.set(statusesView, statusView({ 'uid-web-node1': running }));
    expect(await previous()).toBe('line 6\n');
  });
  it('follows a log across a restart of the container and ends with the pod', async () => {
    const d = await withLog(3, line(1));
    let step = 0;
    const onOut = (all: string) => {
      if (step === 0 && all.includes('line 1')) {
        step = 1;
        appendFileSync(d.path, line(2));
      } else if (step === 1 && all.includes('line 2')) {
        step = 2;
        writeFileSync(join(d.dir, '4.log'), line(3));
        const next = structuredClone(crashing);
        const web = next.containerStatuses?.[0];
        if (web !== undefined) web.restartCount = 4;
        d.registry.set(statusesView, statusView({ 'uid-web-node1': next }));
      } else if (step === 2 && all.includes('line 3')) {
        step = 3;
        const web = crashing.containerStatuses?.[0];
        d.registry.set(
          statusesView,
          statusView({ 'uid-web-node1': { phase: 'Failed', containerStatuses: web === undefined ? [] : [{ ...web, restartCount: 4 }] } }),
        );
      }
    };
    const { code, out } = await ctl(['logs', 'web', '-f', '--socket', d.socketPath], { onOut });
    expect([code, out]).toEqual([0, 'line 1\nline 2\nline 3\n']);
  });
  it('ends well when the pod goes while it is followed, also where a successor has its name', async () => {
    const d = await withLog(3, line(1));
    const successor = record(pod('web-node1', { uid: 'uid-2' }), {});
    const onOut = (all: string) => {
      if (all !== 'line 1\n') return;
      appendFileSync(d.path, line(2));
      d.registry.set(podsView, viewOfPods([successor]));
      d.registry.set(statusesView, statusView({ 'uid-2': crashing }));
    };
    expect(await ctl(['logs', 'web', '-f', '--socket', d.socketPath], { onOut })).toEqual({ code: 0, out: 'line 1\nline 2\n', err: '' });
  });
  it('stops following at Ctrl-C', async () => {
    const d = await withLog(3, line(1));
    const c = new AbortController();
    expect(await ctl(['logs', 'web', '-f', '--socket', d.socketPath], { signal: c.signal, onOut: () => c.abort() })).toMatchObject({
      code: 0,
      out: 'line 1\n',
    });
  });
  it('says which containers there are, which pod is unknown, and which log is missing', async () => {
    const d = await withLog(3, line(1));
    expect(await ctl(['logs', 'calm', '--socket', d.socketPath])).toMatchObject({
      code: 1,
      err: 'actorctl: pod default/calm has several containers, say which: a, b\n',
    });
    expect(await ctl(['logs', 'web', '-c', 'x', '--socket', d.socketPath])).toMatchObject({
      code: 1,
      err: expect.stringContaining('it has: setup, web'),
    });
    expect(await ctl(['logs', 'nosuch', '--socket', d.socketPath])).toMatchObject({
      code: 1,
      err: expect.stringContaining('no pod called "nosuch"'),
    });
    rmSync(d.path);
    expect(await ctl(['logs', 'web', '--socket', d.socketPath])).toMatchObject({
      code: 1,
      err: expect.stringContaining('there is no log at'),
    });
  });
  it('ends with 4 when the log may not be read', async () => {
    const d = await withLog(3, line(1));
    chmodSync(d.path, 0);
    const { code } = await ctl(['logs', 'web', '--socket', d.socketPath]);
    // Root reads everything.
    expect(code).toBe(process.getuid?.() === 0 ? 0 : 4);
  });
});
