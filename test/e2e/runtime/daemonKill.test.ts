/** kill -9 of the daemon, in the middle of a burst of new pods and when all is quiet: nothing restarted, nothing twice. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { RUNS_ALL, rotating } from '../../rotation.ts';
import { type Daemon, NODE_NAME, type PodView } from '../daemon.ts';
import type { Containerd } from '../lab/containerd.ts';
import { until } from '../lab/ports.ts';
import { manifest, steady } from '../manifests.ts';
import { onContainerd } from '../onContainerd.ts';
import { containers, running, sandboxes, statusOf } from '../runtime.ts';

let lab: Containerd;
let daemon: Daemon;
const PODS = RUNS_ALL ? 20 : 10;
/** The daemon is killed in the middle of something. */
const MOMENT = { everyMs: 10 };
const names = (burst: string) => Array.from({ length: PODS }, (_, i) => `${burst}-${String(i).padStart(2, '0')}`);

onContainerd((made) => ({ lab, daemon } = made));
beforeEach(async () => {
  if (!daemon.alive()) await daemon.start();
});

const of = (burst: string, all: Record<string, string>) =>
  Object.fromEntries(Object.entries(all).filter(([k]) => k.startsWith(`${burst}-`)));

async function readySandboxes(burst: string): Promise<Record<string, number>> {
  const count: Record<string, number> = {};
  for (const s of await sandboxes(lab)) {
    const name = s.metadata?.name ?? '';
    if (s.ready && name.startsWith(`${burst}-`)) count[name] = (count[name] ?? 0) + 1;
  }
  return count;
}

/** Waits until what was on its way has had its effect, and the runtime is left to itself. */
async function quiet(): Promise<void> {
  const look = async () =>
    JSON.stringify([(await containers(lab)).map((c) => [c.id, c.running]), (await sandboxes(lab)).map((s) => [s.id, s.ready]).sort()]);
  let last = '';
  const unchanged = async () => {
    const now = await look();
    const same = now === last;
    last = now;
    return same;
  };
  await until('the runtime to be quiet', unchanged, { timeoutMs: 30_000, everyMs: 500 });
}

/** What daemon and runtime say of every pod of the burst that does not come up. */
async function whyNot(burst: string, isReady: (p: PodView) => boolean): Promise<string> {
  const all = await daemon.pods();
  const held = await containers(lab);
  const lines: string[] = [];
  for (const name of names(burst)) {
    const pod = all.find((p) => p.metadata.name === `${name}-${NODE_NAME}`);
    if (pod !== undefined && isReady(pod)) continue;
    lines.push(`--- ${name}: ${JSON.stringify(pod?.status ?? 'not among the pods')}`, await daemon.whyText(`${name}-${NODE_NAME}`));
    for (const c of held.filter((h) => h.pod === name)) lines.push(JSON.stringify(await statusOf(lab, c.id)));
    lines.push(JSON.stringify(await sandboxes(lab, name)));
  }
  return lines.join('\n');
}

/** The daemon says that all are ready, and what it says is what the runtime holds. */
async function allReady(burst: string): Promise<Record<string, string>> {
  const isReady = (p: PodView) => p.metadata.name.startsWith(`${burst}-`) && p.status.containerStatuses?.[0]?.ready === true;
  try {
    await daemon.wait(`all of ${burst} ready`, async () => (await daemon.pods()).filter(isReady).length === PODS, {
      timeoutMs: 90_000,
      everyMs: 100,
    });
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${await whyNot(burst, isReady)}`);
  }
  const now = of(burst, await running(lab));
  expect(Object.keys(now).sort()).toEqual(names(burst).map((n) => `${n}/main`));
  const reported = (await daemon.pods()).filter((p) => p.metadata.name.startsWith(`${burst}-`));
  expect(
    Object.fromEntries(
      reported.map((p) => {
        const c = p.status.containerStatuses?.[0];
        return [`${p.metadata.name.replace(/-e2e$/, '')}/main`, `${c?.containerID?.replace('containerd://', '')}#${c?.restartCount}`];
      }),
    ),
  ).toEqual(now);
  return now;
}

describe(`the daemon killed while it starts ${PODS} pods`, () => {
  // How far it had come: nothing sent yet or little; some running; most running; nearly all.
  const moments: [string, number, 'at once' | 'later'][] = [
    ['before the first runs', 0, 'later'],
    ['when the first run', 1, 'later'],
    ['half way', PODS / 2, 'at once'],
    ['near the end', PODS - 3, 'at once'],
  ];
  it.each(rotating('moments of a burst', moments, moments.length))(
    '%s (%i running) comes back %s to all running: none twice, and what ran was not touched',
    async (_, runningMin, when) => {
      const burst = `b${runningMin}`;
      // Never: the hardest, since a start that failed may not be tried again.
      for (const name of names(burst)) daemon.put(`${name}.yaml`, manifest(name, [steady()], { spec: { restartPolicy: 'Never' } }));
      if (runningMin === 0) {
        await until('the first sandbox', async () => (await sandboxes(lab)).some((s) => s.metadata?.name.startsWith(`${burst}-`)), MOMENT);
      } else {
        await until(`${runningMin} running`, async () => Object.keys(of(burst, await running(lab))).length >= runningMin, {
          timeoutMs: 60_000,
          ...MOMENT,
        });
      }
      await daemon.end('SIGKILL');
      if (when === 'later') await quiet();
      const before = await running(lab);
      const created = (await containers(lab)).filter((c) => c.pod.startsWith(`${burst}-`)).length;
      console.log(`${burst}: ${created} created, ${Object.keys(of(burst, before)).length} running at the kill`);
      const backAt = performance.now();
      await daemon.start();
      const after = await allReady(burst);
      console.log(`${burst}: daemon started -> all ready ${(performance.now() - backAt).toFixed(0)} ms`);
      expect({ ...after, ...of(burst, before) }).toEqual(after);
      // The runtime breaks off a start whose caller died: that was no run, so it counts for nothing and leaves nothing.
      expect(Object.entries(after).filter(([, v]) => !v.endsWith('#0'))).toEqual([]);
      expect((await containers(lab)).filter((c) => c.pod.startsWith(`${burst}-`)).length).toBe(PODS);
      expect(await readySandboxes(burst)).toEqual(Object.fromEntries(names(burst).map((n) => [`${n}-e2e`, 1])));

      for (const name of names(burst)) daemon.remove(`${name}.yaml`);
      await daemon.wait('all of them to go', async () => (await sandboxes(lab)).every((s) => !s.metadata?.name.startsWith(`${burst}-`)), {
        timeoutMs: 60_000,
        everyMs: 250,
      });
    },
    180_000,
  );
});

describe('the daemon killed when all is quiet', () => {
  it('finds every container again, stops none and starts none, three times', async () => {
    for (const name of names('steady')) daemon.put(`${name}.yaml`, manifest(name, [steady()]));
    const before = await allReady('steady');
    for (let round = 0; round < 3; round++) {
      await daemon.end('SIGKILL');
      expect(of('steady', await running(lab))).toEqual(before);
      await daemon.start();
      expect(await allReady('steady')).toEqual(before);
      expect(
        (await daemon.events()).filter(
          (e) => ['Killing', 'Created', 'Started', 'BackOff'].includes(e.reason) && e.pod?.name.startsWith('steady-'),
        ),
      ).toEqual([]);
    }
    expect((await containers(lab)).filter((c) => c.pod.startsWith('steady-')).length).toBe(PODS);
  });

  it('an orderly end leaves every container running too', async () => {
    const before = of('steady', await running(lab));
    expect(await daemon.end('SIGTERM')).toBe(0);
    expect(of('steady', await running(lab))).toEqual(before);
    await daemon.start();
    expect(await allReady('steady')).toEqual(before);
  });

  it('acts on what happened while it was away: an exit, a new manifest, a manifest that went', async () => {
    const before = await allReady('steady');
    const [dead = '', gone = ''] = names('steady');
    await daemon.end('SIGKILL');
    const id = before[`${dead}/main`]?.split('#')[0] ?? '';
    lab.ctr('tasks', 'kill', '-s', 'SIGKILL', id);
    daemon.remove(`${gone}.yaml`);
    daemon.put('late.yaml', manifest('late', [steady()]));
    await daemon.start();
    await daemon.phase('late', 'Running');
    await daemon.wait('the dead one to run again', async () => (await running(lab))[`${dead}/main`]?.endsWith('#1') === true);
    await daemon.wait('the removed one to be stopped', async () => (await containers(lab, gone)).length === 0);
    const { [`${dead}/main`]: _dead, [`${gone}/main`]: _gone, ...others } = before;
    expect(await running(lab)).toMatchObject(others);
  });

  it('in the middle of ending all pods comes back and ends them all', async () => {
    const ending = names('steady');
    const left = async () => (await containers(lab)).filter((c) => ending.includes(c.pod) && c.running).length;
    const before = await left();
    for (const file of readdirSync(daemon.manifests)) if (file.startsWith('steady-')) daemon.remove(file);
    await until('the first to end', async () => (await left()) < before, { timeoutMs: 30_000, ...MOMENT });
    await daemon.end('SIGKILL');
    console.log(`ending: ${await left()} of ${before} still running at the kill`);
    await daemon.start();
    await daemon.wait('all to be gone', async () => (await sandboxes(lab)).every((s) => !s.metadata?.name.startsWith('steady-')), {
      timeoutMs: 90_000,
      everyMs: 250,
    });
    expect(Object.keys(await running(lab))).toEqual(['late/main']);
    await daemon.wait('their folders to be removed', () => readdirSync(join(daemon.rootDir, 'pods')).length === 1, { timeoutMs: 90_000 });
  });
});
