/** containerd killed, or frozen, under a daemon with running pods: nobody's container is restarted, and life goes on after. */
import { beforeAll, expect, it } from 'vitest';
import type { Daemon } from '../daemon.ts';
import type { Containerd } from '../lab/containerd.ts';
import { manifest, sh, steady } from '../manifests.ts';
import { onContainerd } from '../onContainerd.ts';
import { hostPid, running } from '../runtime.ts';

let lab: Containerd;
let daemon: Daemon;
const AWAY_MS = 10_000;
/** How soon after the runtime's return a waiting pod must run. A listing that is due without its hints comes after a minute. */
const BACK_MS = 30_000;
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

onContainerd((made) => ({ lab, daemon } = made));
beforeAll(async () => {
  for (const name of ['a', 'b', 'c']) daemon.put(`${name}.yaml`, manifest(name, [steady('one'), steady('two')]));
  for (const name of ['a', 'b', 'c']) {
    await daemon.podWhere(name, `${name} ready`, (p) => p.status.containerStatuses?.every((c) => c.ready) === true);
  }
});

it('keeps every container over ten seconds without containerd, and then does what came up meanwhile', async () => {
  daemon.put('mortal.yaml', manifest('mortal', [sh('main', 'exec sleep 3600')]));
  await daemon.phase('mortal', 'Running');
  const before = await running(lab);
  const statuses = (await daemon.pods()).map((p) => [
    p.metadata.uid,
    p.status.phase,
    p.status.containerStatuses?.map((c) => c.containerID),
  ]);
  const { pid } = daemon;
  const victim = await hostPid(lab, before['mortal/main']?.split('#')[0] ?? '');

  await lab.kill();
  const awayAt = performance.now();
  process.kill(victim, 'SIGKILL');
  daemon.put('late.yaml', manifest('late', [steady()]));
  const why = await daemon.wait('why to name the runtime', async () => {
    const text = await daemon.whyText('a-e2e');
    return text.includes('the link is') && text;
  });
  expect(why).toMatch(/Runtime\n\s+the link is \w+: .*nothing can be started or stopped meanwhile/);
  while (performance.now() - awayAt < AWAY_MS) {
    expect(daemon.alive()).toBe(true);
    expect(await daemon.healthz()).toBe('ok');
    // What it says of the pods is what was last known.
    const now = (await daemon.pods()).filter((p) => p.metadata.name !== 'late-e2e');
    expect(now.map((p) => [p.metadata.uid, p.status.phase, p.status.containerStatuses?.map((c) => c.containerID)])).toEqual(statuses);
    await wait(500);
  }
  await lab.start();
  const backAt = performance.now();
  await daemon.phase('late', 'Running', BACK_MS);
  const lateMs = performance.now() - backAt;
  await daemon.wait('the dead container to run again', async () => (await running(lab))['mortal/main']?.endsWith('#1') === true, {
    timeoutMs: BACK_MS,
  });
  console.log(
    `runtime back -> new pod running ${lateMs.toFixed(0)} ms, -> dead container running ${(performance.now() - backAt).toFixed(0)} ms`,
  );
  const { 'mortal/main': _, ...others } = before;
  expect(await running(lab)).toMatchObject(others);
  expect(daemon.pid).toBe(pid);
  await daemon.wait('why to be content', async () => !(await daemon.whyText('a-e2e')).includes('the link is'));
  const notes = await daemon.events();
  expect(notes.filter((e) => e.reason === 'Killing')).toEqual([]);
});

it('keeps every container over a containerd that hangs, and goes on when it answers again', async () => {
  const before = await running(lab);
  const { pid } = daemon;
  await lab.freeze(true);
  try {
    daemon.put('thawed.yaml', manifest('thawed', [steady()]));
    const until = performance.now() + 6_000;
    while (performance.now() < until) {
      expect(await daemon.healthz()).toBe('ok');
      expect((await daemon.pods()).length).toBeGreaterThanOrEqual(Object.keys(before).length / 2);
      await wait(500);
    }
  } finally {
    await lab.freeze(false);
  }
  const backAt = performance.now();
  await daemon.phase('thawed', 'Running', BACK_MS);
  console.log(`runtime thawed -> pod running ${(performance.now() - backAt).toFixed(0)} ms`);
  expect(await running(lab)).toMatchObject(before);
  expect(daemon.pid).toBe(pid);
});

it('waits for a containerd that is not there at its start, and begins when it comes', async () => {
  const before = await running(lab);
  await daemon.end('SIGKILL');
  await lab.kill();
  await daemon.start({ ready: false });
  const why = await daemon.wait('why to name the runtime', async () => {
    const { lines } = await daemon.why('a-e2e');
    return lines.some((l) => /runtime|link/i.test(l)) && lines.join('\n');
  });
  expect(why).toMatch(/link is (?!ready)\w+|no contact with the runtime/);
  daemon.put('first.yaml', manifest('first', [steady()]));
  await wait(2_000);
  expect(daemon.alive()).toBe(true);
  await lab.start();
  await daemon.phase('first', 'Running', BACK_MS);
  await daemon.healthy();
  expect(await running(lab)).toMatchObject(before);
});
