/** Experiments with a recording: what becomes of its pods with other settings, with faults, or without something. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { runWhatIf, type WhatIfOptions } from '@actorlet/ctl/src/commands/replay/whatIf/whatIf.ts';
import { recordSeed } from '@actorlet/ctl/src/commands/sim/record.ts';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { pod, type VirtualNode } from '../../../../test/integration/virtualNode.ts';
import { inTurn } from '../../../../test/rotation.ts';
import type { Header } from '../../src/entries.ts';
import { Edit } from '../../src/lenient/edit.ts';
import { LenientTime } from '../../src/lenient/time.ts';
import { quickStart } from '../less/quickStart.ts';
import { toldTo } from '../toldTo.ts';

/** Six runs of a node each, on a machine that is busy with other tests. */
vi.setConfig({ testTimeout: 180_000 });
const plays = inTurn('what-ifs', 6);

let dir: string;
let path: string;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-what-if-'));
  await recordSeed(toldTo(), { seed: 8, minutes: 0.2, pods: 3 }, dir);
  path = join(dir, 'seed-8-n1-1.inputs.zst');
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

interface Shown {
  difference: { path: string } | null;
  pods: { pod: string; verdict: string; recorded: string; unchanged: string; changed: string }[];
  broken: object[];
  failure: string | null;
}

async function whatIf(o: Partial<WhatIfOptions>): Promise<Shown> {
  const io = toldTo();
  await runWhatIf(io, { path, json: true, set: [], drop: [], fault: undefined, ...o });
  return JSON.parse(io.told()) as Shown;
}

plays('without a pod: that one is gone, and the others end as they did', async () => {
  const { pods: before } = await whatIf({ set: ['podPidsLimit=-1'] });
  expect(before.length).toBeGreaterThan(2);
  expect(before.filter((pod) => pod.verdict === 'change')).toEqual([]);
  const name = before.find((pod) => pod.unchanged.includes('Running'))?.pod ?? '';
  const { difference, pods, broken, failure } = await whatIf({ drop: [`pod=${name}`] });
  expect(difference?.path).toMatch(/^node\/pods\/workers\//);
  expect(pods.filter((pod) => pod.verdict === 'change')).toEqual([expect.objectContaining({ pod: name, changed: 'gone' })]);
  expect({ broken, failure }).toEqual({ broken: [], failure: null });
});

plays(
  'with the runtime away for two seconds, a quiet node ends as it was recorded, and with a lower limit of pods it does not',
  async () => {
    const quiet = join(dir, 'quiet.inputs.zst');
    writeFileSync(quiet, zstdCompressSync(`${(await quickStart(2)).join('\n')}\n`));
    const fault = join(import.meta.dirname, '../../../../examples/test-your-pods/faults/runtime-away.yaml');
    const away = await whatIf({ path: quiet, fault });
    expect(away.pods.map(({ verdict }) => verdict)).toEqual(['same', 'same', 'same', 'same', 'same']);
    for (const { recorded, unchanged, changed } of away.pods) expect([unchanged, changed]).toEqual([recorded, recorded]);
    expect(away.difference?.path).toBe('node/runtime/cri');
    const io = toldTo();
    await runWhatIf(io, { path: quiet, json: false, set: ['maxPods=4'], drop: [], fault: undefined });
    expect(io.told().match(/ {4}recorded: /g)).toHaveLength(5);
    expect(io.told().match(/DIFFERS with the changes/g)).toHaveLength(1);
  },
);

plays('a pod is probed where it is in the run, and what runs there answers', async () => {
  const probed = join(dir, 'probed.inputs.zst');
  const livenessProbe = { httpGet: { port: 80 }, periodSeconds: 1, failureThreshold: 2 };
  const manifest = (name: string) => pod(name, { container: { livenessProbe, ports: [{ containerPort: 80 }] } });
  const lines = await quickStart(0.5, {
    manifests: { 'a.yaml': manifest('a-fails'), 'b.yaml': manifest('b-lives') },
    before(h) {
      const nameAt = (ip: string) => h.runtime.dump().sandboxes.find((one) => one.ip === ip)?.name;
      h.probes.answer = (url) => (nameAt(new URL(url).hostname) === 'a-fails-n1' ? 500 : 200);
    },
  });
  writeFileSync(probed, zstdCompressSync(`${lines.join('\n')}\n`));
  // Without it, the other one has its address.
  const { pods } = await whatIf({ path: probed, drop: ['pod=default/a-fails-n1'] });
  const of = (name: string) => pods.find((one) => one.pod === `default/${name}`);
  expect(of('a-fails-n1')).toMatchObject({ verdict: 'change', recorded: expect.stringMatching(/[1-9] restarts/), changed: 'gone' });
  expect(of('a-fails-n1')?.unchanged).toBe(of('a-fails-n1')?.recorded);
  expect(of('b-lives-n1')).toMatchObject({ verdict: 'same', changed: expect.stringContaining('running after 0 restarts') });
});

plays('a command ends as in the same attempt at this age, and logs are counted that were there', async () => {
  const commands = join(dir, 'commands.inputs.zst');
  const exec = (word: string) => ({ exec: { command: [word] }, periodSeconds: 1 });
  const probes = { livenessProbe: { ...exec('alive'), failureThreshold: 2 }, readinessProbe: exec('slow') };
  const logs = '/var/log/actorlet/pods/default_logs-n1_pinned/main';
  let node: VirtualNode | undefined;
  const lines = await quickStart(0.7, {
    manifests: { 'a.yaml': pod('sick', { container: probes }), 'b.yaml': pod('logs', { uid: 'pinned' }) },
    before(h) {
      node = h;
      // Of an earlier node, whose runtime is gone.
      h.fs.makeDir(logs);
      h.fs.put(`${logs}/3.log`, 'old');
    },
    hollow: {
      exec(_, [word]) {
        const atMs = node?.time.clock.monoMs() ?? 0;
        return word === 'slow' ? { exitCode: 0, delayMs: 900 } : { exitCode: atMs > 12_000 && atMs < 17_000 ? 1 : 0 };
      },
      log: (file) => node?.fs.put(file, 'said'),
    },
  });
  writeFileSync(commands, zstdCompressSync(`${lines.join('\n')}\n`));
  const { pods, broken } = await whatIf({ path: commands, set: ['podPidsLimit=-1'] });
  const of = (name: string) => pods.find((one) => one.pod === `default/${name}-n1`);
  expect(of('sick')).toMatchObject({ verdict: 'same', recorded: expect.stringMatching(/[1-9] restarts/) });
  expect(of('logs')).toMatchObject({ verdict: 'same', recorded: expect.stringContaining('after 4 restarts') });
  expect(broken).toEqual([]);
});

plays('with another configuration: the first step that differs is named', async () => {
  const { difference, broken } = await whatIf({ set: ['featureGates.KubeletCrashLoopBackOffMax=true', 'syncFrequency=1s'] });
  expect(difference).not.toBeNull();
  expect(broken).toEqual([]);
});

plays('with a fault: the runtime is away at the start', async () => {
  const { difference, failure } = await whatIf({
    fault: join(import.meta.dirname, '../../../../examples/test-your-pods/faults/runtime-away.yaml'),
  });
  expect(difference?.path).toMatch(/^node\/(?:runtime|foundation)\//);
  expect(failure).toBeNull();
});

it.each([
  [{ set: ['syncFrequencyy=1s'] }, 'did you mean syncFrequency?'],
  [{ set: ['featureGates.Swap=true'] }, 'no feature gate Swap'],
  [{ set: ['what'] }, 'say it like syncFrequency=10s'],
  [{ set: ['syncFrequency=abc'] }, '--set syncFrequency=abc: syncFrequency must be a duration'],
  [{ set: ['syncFrequency=10'] }, '--set syncFrequency=10: syncFrequency must be a duration'],
  [{ set: ['syncFrequency=-1s'] }, '--set syncFrequency=-1s: syncFrequency (--sync-frequency): '],
  [{ set: ['fileCheckFrequency=-1s'] }, 'a negative period is taken for the default'],
  [{ set: ['maxPods=abc'] }, 'maxPods must be a whole number, not "abc"'],
  [{ set: ['maxPods=-3'] }, '--set maxPods=-3: maxPods (--max-pods): '],
  [{ set: ['evictionHard=3'] }, 'evictionHard must be an object, not "3"'],
  [{ set: ['featureGates.ContextualLogging=maybe'] }, 'say true or false'],
  [{ drop: ['pod=default/none'] }, 'the recording has nothing of it. It has the pods default/'],
  [{ drop: ['all'] }, 'say pod=NAMESPACE/NAME'],
  [{ fault: '/none.yaml' }, 'the scenario /none.yaml cannot be read'],
])('%o is refused in words', async (o, why) => {
  await expect(whatIf(o)).rejects.toThrow(why);
});

it('a timer fires no sooner than in Node: one that is short by a part of a millisecond does not spin', () => {
  const none = { asked: [], done: [], timers: [], turns: [], draws: [], causes: [], wall: [] };
  const script = { ...none, settled: new Map(), called: new Map(), aborted: new Map(), looks: new Map(), endMs: 1_000 };
  const time = new LenientTime(script, { monoMs: 99.5, wallMs: 0 } as Header, { edit: new Edit({}), inOrder: false });
  let fired = 0;
  const set = (): unknown => time.clock.setTimeout(() => (time.nowMs < 100 ? set() : ++fired), 100 - time.nowMs);
  set();
  for (let i = 0; i < 10 && time.step(500); i++);
  expect(fired).toBe(1);
});
