import { join } from 'node:path';
import { Readable } from 'node:stream';
import { runCtl } from '@actorlet/ctl/src/cli.ts';
import { renderTimeline } from '@actorlet/kubelet/machines/text/timeline.ts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createMachine } from 'xstate';
import { type HollowNode, hollowNode, manifest, until } from '../../../test/integration/hollowNode.ts';

let h: HollowNode;
beforeAll(async () => {
  h = await hollowNode();
});
afterAll(() => h[Symbol.asyncDispose]());

async function ctl(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  const [out, err]: [string[], string[]] = [[], []];
  const code = await runCtl({
    argv: ['--socket', join(h.dir, 'admin.sock'), ...argv],
    env: {},
    out: (text) => void out.push(text),
    err: (text) => void err.push(text),
    exists: () => false,
    columns: 0,
    nowMs: () => Date.now(),
    stdin: Readable.from([]),
    outBytes: () => undefined,
    errBytes: () => undefined,
    signal: new AbortController().signal,
  });
  return { code, out: out.join(''), err: err.join('') };
}

it('prints the chart of a running machine as Mermaid, and as a configuration that xstate takes', async () => {
  const mermaid = await ctl('chart', 'pods/podManager');
  expect(mermaid.code).toBe(0);
  expect(mermaid.out).toMatch(/^stateDiagram-v2\n/);
  expect(mermaid.out).toContain('state "ready" as ');
  const stately = await ctl('chart', 'node/pods/podManager', '--format', 'stately');
  const config = /createMachine\((\{[\s\S]*\})\);\n$/.exec(stately.out)?.[1] ?? '';
  expect(Object.keys(createMachine(JSON.parse(config) as never).states)).toContain('ready');
  const json = await ctl('chart', 'pods/podManager', '--format', 'json');
  expect((JSON.parse(json.out) as { active: string[] }).active.some((id) => id.endsWith('.ready'))).toBe(true);
});

it('suggests the actor that was meant', async () => {
  const wrong = await ctl('chart', 'pods/podManger');
  expect(wrong.code).toBe(1);
  expect(wrong.err).toContain('did you mean node/pods/podManager?');
  expect((await ctl('chart', 'pods/workers')).err).toContain('has no state machine just now');
});

it('tells what a pod went through, with each call of the runtime where those are kept', async () => {
  h.write('web.json', manifest('web'));
  await until('web runs', () => h.status('web')?.status.phase === 'Running');
  const bare = await ctl('timeline', 'web');
  expect(bare.code).toBe(0);
  expect(bare.out).toMatch(/ seen\n[\s\S]* syncing\.creatingSandbox +on \S+, CreatingSandbox\n/);
  expect(bare.out).toContain('only with --actorlet-inspect');
  expect((await ctl('timeline', 'nobody')).code).toBe(1);
  const spans = renderTimeline(
    {
      name: 'web',
      seenAtMs: 1_000,
      steps: [
        { atMs: 1_100, to: 'fencing', event: 'start', reason: 'Fencing' },
        { atMs: 1_200, to: 'finished', event: 'done:cleanup', reason: 'Finished' },
      ],
      calls: [
        { method: 'RunPodSandbox', about: '', startMs: 1_110, endMs: 1_150, error: '' },
        { method: 'StartContainer', about: 'c1', startMs: 1_160, endMs: null, error: '' },
      ],
      readyAtMs: 1_170,
      left: 0,
      kept: true,
    },
    { nowMs: 1_300 },
  );
  expect(spans).toEqual([
    'AT             AFTER  TOOK     WHAT              WHY',
    '00:00:01.000Z  0ms    100ms    seen',
    '00:00:01.100Z  100ms  100ms    fencing           on start, Fencing',
    '00:00:01.110Z  110ms  40ms       RunPodSandbox',
    '00:00:01.160Z  160ms  140ms …    StartContainer  c1',
    '00:00:01.170Z  170ms           Ready             for the first time',
    '00:00:01.200Z  200ms  0ms      finished          on done:cleanup, Finished',
  ]);
});

it.each([
  ['why', 'why: say which pod, for example: actorctl why web (actorctl why --help)'],
  ['timeline', 'timeline: say which pod, for example: actorctl timeline shop/web (actorctl timeline --help)'],
  ['logs', 'logs: say which pod, for example: actorctl logs web -f --tail 20 (actorctl logs --help)'],
  ['exec', 'exec: say which pod, for example: actorctl exec -it web -- sh (actorctl exec --help)'],
  ['chart', 'chart: say which actor, for example: actorctl chart pods/podManager (actorctl chart --help)'],
])('%s without a name says which name it lacks', async (command, said) => {
  expect(await ctl(command)).toEqual({ code: 2, out: '', err: `actorctl: ${said}\n` });
});

it('says how to switch the page on where it is off', async () => {
  const ui = await ctl('ui');
  expect(ui.code).toBe(1);
  expect(ui.err).toContain('--actorlet-inspect');
});

it('explains the node itself, and gives what it knows of it', async () => {
  const { code, out } = await ctl('why', 'node');
  expect(code).toBe(0);
  expect(out).toMatch(/^Node n1 /);
  expect(out).toContain('ready    yes');
  expect(out).toContain('API      none: a standalone node');
  expect((await ctl('why', 'n1')).out).toContain('pressure none');
  expect((await ctl('node')).err).toContain('n1 is a standalone node');
});

it('goes on printing what is recorded until it is interrupted', async () => {
  const out: string[] = [];
  const stop = new AbortController();
  const code = runCtl({
    argv: ['--socket', join(h.dir, 'admin.sock'), 'recorder', '-f', '--limit', '5'],
    env: {},
    out: (text) => void out.push(text),
    err: () => undefined,
    exists: () => false,
    columns: 0,
    nowMs: () => Date.now(),
    stdin: Readable.from([]),
    outBytes: () => undefined,
    errBytes: () => undefined,
    signal: stop.signal,
  });
  await until('the newest lines', () => out.join('').split('\n').length >= 5);
  h.write('late.json', manifest('late'));
  await until('a new line', () => out.join('').includes('creatingSandbox'));
  stop.abort();
  expect([0, 130]).toContain(await code);
  // Each line once: a worker begins to make its sandbox once.
  const begun = out
    .join('')
    .split('\n')
    .filter((l) => l.includes(`${h.record('late')?.pod.metadata.uid} `) && l.includes('-> syncing.creatingSandbox'));
  expect(begun).toHaveLength(1);
});

it('prints its version, completions and data as YAML', async () => {
  expect((await ctl('--version')).out).toMatch(/^v1\.\d+\.0\+actorlet/);
  for (const shell of ['bash', 'zsh', 'fish']) expect((await ctl('completion', shell)).out).toContain('--get-yargs-completions');
  expect((await ctl('completion', 'tcsh')).code).toBe(2);
  expect((await ctl('pods', '-o', 'yaml')).out).toMatch(/^stale: ""\nsourcesReady: true\nunusable: 0\nlost: \[\]\npods:\n/);
  expect((await ctl('pods', '-n', 'nowhere')).out).toContain('No pods');
  expect((await ctl('tree', '--pod', 'web')).out).toContain('web-n1');
  expect((await ctl('tree', '--pod', 'nobody')).code).toBe(1);
});
