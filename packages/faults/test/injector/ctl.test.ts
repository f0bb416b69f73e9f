/**
 * `actorctl inject` against a stand-in for the admin socket: what it sends for which flags, and what it refuses
 * before anybody is asked.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { runCtl } from '@actorlet/ctl/src/cli.ts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { actor } from '../../../../test/edge/harness.ts';
import type { FaultView } from '../../src/live.ts';
import { decodeScenario } from '../../src/read/decode.ts';

interface Asked {
  method: string;
  url: string;
  type: string | undefined;
  body: string;
}
let dir: string;
let server: Server;
let asked: Asked[];
/** Answer per `METHOD /path`; POST /inject echoes the scenario by default. */
let answers: Record<string, { status: number; body: string }>;

const FAULT: FaultView = {
  name: 'fault-1',
  what: 'cri error',
  when: 'at 0s',
  phase: 'active',
  windows: 1,
  hits: 0,
  missed: '',
  changesInMs: 30_000,
};
const ok = (value: unknown) => ({ status: 200, body: JSON.stringify(value) });
const injection = (fault: Partial<FaultView> = {}) => ({
  id: 'x-1',
  scenario: 'x',
  description: '',
  sinceMs: 0,
  endsInMs: 30_000,
  faults: [{ ...FAULT, ...fault }],
});

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-inject-'));
  asked = [];
  answers = { 'POST /inject': ok({ injection: injection(), warnings: [] }) };
  server = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const { method = '', url = '' } = req;
    asked.push({ method, url, type: req.headers['content-type'], body: Buffer.concat(chunks).toString('utf8') });
    const answer = answers[`${method} ${url}`] ?? { status: 404, body: '404: Page Not Found' };
    res.writeHead(answer.status).end(answer.body);
  });
  await new Promise<void>((resolve) => server.listen(join(dir, 's.sock'), resolve));
});
afterEach(async () => {
  await new Promise<void>((resolve) => server.close(() => resolve()));
  rmSync(dir, { recursive: true, force: true });
});

async function ctl(args: readonly string[], stdin = ''): Promise<{ code: number; out: string; err: string }> {
  let out = '';
  let err = '';
  const code = await runCtl({
    argv: [...args, '--socket', join(dir, 's.sock')],
    env: {},
    out: (t) => {
      out += t;
    },
    err: (t) => {
      err += t;
    },
    exists: () => false,
    columns: 0,
    nowMs: () => 0,
    stdin: Readable.from([Buffer.from(stdin)]),
    outBytes: () => undefined,
    errBytes: () => undefined,
    signal: new AbortController().signal,
  });
  return { code, out, err };
}
/** The one fault of the scenario that was sent. */
function sent(): object {
  const decoded = decodeScenario(asked.at(-1)?.body ?? '', 'live');
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
  return { name: decoded.scenario.name, ...decoded.scenario.faults[0] };
}

const SCENARIO =
  'apiVersion: actorlet.dev/v1alpha1\nkind: FaultScenario\nmetadata: {name: mine}\nspec:\n  faults:\n  - kind: disk.full\n    for: 5s\n';

describe('actorctl inject', () => {
  it('sends a file or stdin as it is', async () => {
    const file = join(dir, 'mine.yaml');
    writeFileSync(file, SCENARIO);
    const done = await ctl(['inject', '-f', file]);
    expect(done).toEqual({ code: 0, out: 'x-1: healed in 30s at the latest\n  fault-1: at 0s: cri error\n', err: '' });
    expect(asked).toEqual([{ method: 'POST', url: '/inject', type: 'application/yaml', body: SCENARIO }]);
    expect((await ctl(['inject', '-f', '-'], SCENARIO)).code).toBe(0);
    expect(asked[1]?.body).toBe(SCENARIO);
  });

  it('refuses a bad file with line and field, and asks nobody', async () => {
    const file = join(dir, 'bad.yaml');
    writeFileSync(file, SCENARIO.replace('for: 5s', 'for: 5'));
    const bad = await ctl(['inject', '-f', file]);
    expect(bad.code).toBe(2);
    expect(bad.err).toContain(`${file}:7: spec.faults[0].for: must be a duration`);
    expect((await ctl(['inject', '-f', join(dir, 'none.yaml')])).err).toContain('none.yaml cannot be read');
    expect((await ctl(['inject'])).code).toBe(2);
    expect(asked).toEqual([]);
  });

  it('makes faults of flags', async () => {
    const cri = ['--method', 'StartContainer', '--error', 'Unavailable', '--probability', '0.5', '--for', '30s', '--pod', 'web-*'];
    expect((await ctl(['inject', 'cri', ...cri])).code).toBe(0);
    const select = { methods: ['StartContainer'], pods: ['web-*'] };
    expect(sent()).toMatchObject({ kind: 'cri', action: 'error', code: 14, probability: 0.5, forMs: 30_000, select });
    await ctl(['inject', 'cri', '--lost', 'with-effect', '--times', '2']);
    expect(sent()).toMatchObject({ kind: 'cri', action: 'lost-with-effect', times: 2 });
    await ctl(['inject', 'cri', '--late', '40s']);
    expect(sent()).toMatchObject({ kind: 'cri', action: 'late-effect', delayMs: 40_000 });
    await ctl(['inject', 'cri', '--delay', '2s']);
    expect(sent()).toMatchObject({ kind: 'cri', action: 'delay', delayMs: 2_000 });
    await ctl(['inject', 'hints', '--drop', '--event', 'stopped']);
    expect(sent()).toMatchObject({ kind: 'hints', action: 'drop', select: { hints: ['stopped'] } });
    await ctl(['inject', 'hints', '--cut']);
    expect(sent()).toMatchObject({ kind: 'hints.cut' });
    await ctl(['inject', 'disk', '--full', '--path', '/var/**']);
    expect(sent()).toMatchObject({ kind: 'disk.full', select: { paths: ['/var/**'] } });
    await ctl(['inject', 'disk', '--error', 'EIO', '--op', 'rename', '--op', 'sync']);
    expect(sent()).toMatchObject({ kind: 'disk.error', code: 'EIO', select: { ops: ['rename', 'sync'] } });
    await ctl(['inject', 'disk', '--slow', '1s']);
    expect(sent()).toMatchObject({ kind: 'disk.slow', delayMs: 1_000 });
    await ctl(['inject', 'runtime-down', '--for', '3s']);
    expect(sent()).toMatchObject({ kind: 'runtime.down', forMs: 3_000 });
  });

  it('says what is wrong with flags in the words of flags', async () => {
    const wrong = async (...args: string[]) => {
      const { code, err } = await ctl(['inject', ...args]);
      return `${code} ${err.trim()}`;
    };
    expect(await wrong('cri', '--error', 'Unavailble')).toMatch(/^2 actorctl: --error: .*did you mean Unavailable/);
    expect(await wrong('cri', '--method', 'StartContaner', '--delay', '1s')).toMatch(
      /^2 actorctl: --method: .*did you mean StartContainer/,
    );
    expect(await wrong('cri', '--delay', '1s', '--for', '30')).toMatch(/^2 actorctl: --for: must be a duration/);
    expect(await wrong('cri')).toMatch(/^2 .*with one of --error, --delay, --lost, --late/);
    expect(await wrong('cri', '--delay', '1s', '--late', '1s')).toMatch(/^2 .*with one of/);
    expect(await wrong('disk', '--full', '--op', 'read')).toMatch(/^2 actorctl: --op: is nothing that disk.full selects by/);
    expect(asked).toEqual([]);
  });

  it('kills by path, by the start of a UID and by the name of a pod', async () => {
    const worker = (uid: string) => actor(`node/pods/workers/${uid}`);
    const workers = actor('node/pods/workers', { type: 'dynamic', children: [worker('aaaaaa-1'), worker('aaaaaa-2'), worker('bbbbbb-3')] });
    const tree = actor('node', {
      type: 'supervisor',
      children: [actor('node/pods', { type: 'supervisor', children: [actor('node/pods/podManager'), workers] })],
    });
    answers['GET /statez'] = ok(tree);
    const pod = { uid: 'bbbbbb-3', namespace: 'default', name: 'web-n1', source: 'file', reason: '', phase: 'Running' };
    answers['GET /pods'] = ok({ stale: '', sourcesReady: true, pods: [pod, { ...pod, uid: 'cc', name: 'idle-n1' }] });
    const kill = async (...args: string[]) => {
      const { code, out, err } = await ctl(['inject', 'kill', ...args]);
      return `${code} ${out}${err}`.trim();
    };
    expect(await kill('pods/podManager')).toBe('0 killed node/pods/podManager; its supervisor starts it again');
    expect(sent()).toMatchObject({ kind: 'actor.kill', select: { actors: ['node/pods/podManager'] } });
    expect(await kill('node/pods/workers/bbbbbb')).toContain('0 killed node/pods/workers/bbbbbb-3');
    expect(await kill('pod', 'web')).toContain('0 killed node/pods/workers/bbbbbb-3');
    expect(await kill('pod', 'default/web-n1')).toContain('0 killed');
    expect(await kill('pods/workers/aaaaaa')).toMatch(/^1 .*fits several actors/);
    expect(await kill('pods/podManger')).toMatch(/^1 .*did you mean node\/pods\/podManager/);
    expect(await kill('pod', 'nobody')).toBe('1 actorctl: no pod called nobody on this node.');
    expect(await kill('pod', 'idle')).toMatch(/^1 .*has no worker/);
    expect(await kill('node')).toMatch(/^1 .*is the root/);
    expect(await kill('pods/*')).toMatch(/^2 .*a pattern/);
    answers['POST /inject'] = ok({ injection: injection({ missed: 'it has no running incarnation just now' }), warnings: [] });
    expect(await kill('pods/podManager')).toBe('1 actorctl: node/pods/podManager was not killed: it has no running incarnation just now.');
  });

  it('lists and stops', async () => {
    answers['GET /inject'] = ok({ injections: [injection({ hits: 3 })] });
    const shown = await ctl(['inject', 'list']);
    expect(shown.out.split('\n').map((l) => l.split(/\s{2,}/))).toEqual([
      ['ID', 'FAULT', 'PHASE', 'HITS', 'NEXT', 'ENDS IN', 'WHAT'],
      ['x-1', 'fault-1', 'active', '3', 'ends in 30s', '30s', 'cri error'],
      [''],
    ]);
    answers['GET /inject'] = ok({ injections: [] });
    expect((await ctl(['inject', 'list'])).out).toBe('Nothing is injected.\n');
    answers['DELETE /inject/x-1'] = ok({ stopped: ['x-1'] });
    expect(await ctl(['inject', 'stop', 'x-1'])).toEqual({ code: 0, out: 'healed x-1\n', err: '' });
    answers['DELETE /inject'] = ok({ stopped: [] });
    expect((await ctl(['inject', 'stop', '--all'])).out).toBe('Nothing was injected.\n');
    for (const args of [[], ['x-1', '--all']]) expect((await ctl(['inject', 'stop', ...args])).code).toBe(2);
  });

  it('passes on the daemon’s refusal and its warnings', async () => {
    answers['GET /inject'] = { status: 403, body: '403: fault injection is off on this node.\n' };
    expect(await ctl(['inject', 'list'])).toEqual({ code: 4, out: '', err: 'actorctl: fault injection is off on this node.\n' });
    answers['POST /inject'] = ok({ injection: injection(), warnings: ['line 1: fault fault-1: is aimed at nothing yet'] });
    const warned = await ctl(['inject', 'disk', '--full']);
    expect([warned.code, warned.err]).toEqual([0, 'warning: line 1: fault fault-1: is aimed at nothing yet\n']);
    answers['POST /inject'] = ok({ injection: injection({ missed: 'nothing is there that hints.cut could hit' }), warnings: [] });
    expect((await ctl(['inject', 'hints', '--cut'])).code).toBe(1);
  });
});
