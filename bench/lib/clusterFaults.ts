/** Benchmarks of what a crash of the daemon, or of the runtime, costs pods of a real cluster. */
import { NODE_NAME } from '../../test/e2e/daemon.ts';
import { FEW, LONG_MS, type Member, since, withSamples } from './member.ts';
import { sleep } from './report.ts';

/** As the figures of the reference were taken (shared set-up). */
const KILL_AFTER_CREATING_MS = 700;
const KILL_AFTER_DELETING_MS = 300;
const RUNTIME_AWAY_MS = 10_000;
/** After a kill Ready is followed for this long: longer than a probe's period and a lease's. */
const FLIPS_WATCHED_MS = 20_000;

export async function killed(m: Member, rounds: number): Promise<object> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases`;
  let leaseAt = 0;
  let lastRenewal = '';
  void m.view.watch(`${path}?watch=true&timeoutSeconds=36000&fieldSelector=metadata.name%3D${NODE_NAME}`, (_type, object) => {
    const { renewTime } = (object as { spec: { renewTime: string } }).spec;
    if (renewTime !== lastRenewal) leaseAt = performance.now();
    lastRenewal = renewTime;
  });
  const probed = await m.create('probed', FEW, { probed: true });
  await m.view.ready(probed, LONG_MS);
  await sleep(5_000);
  const [lease, flips, restarts]: [number[], number[], number[]] = [[], [], []];
  const ids = new Set((await m.containers()).map((c) => c.id));
  for (let round = 0; round < rounds; round++) {
    const flipsBefore = probed.reduce((sum, p) => sum + p.flips, 0);
    const startedAt = await m.kill();
    await m.view.until('the lease to be renewed', LONG_MS, () => leaseAt > startedAt);
    lease.push(leaseAt - startedAt);
    await sleep(FLIPS_WATCHED_MS);
    flips.push(probed.reduce((sum, p) => sum + p.flips, 0) - flipsBefore);
    restarts.push((await m.containers()).filter((c) => !ids.has(c.id)).length);
  }
  await m.remove(probed);
  await m.view.gone(probed, LONG_MS);
  await m.rest();
  const [creating, deleting]: [object[], object[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    const from = performance.now();
    const making = m.create(`making${round}`, FEW);
    await sleep(KILL_AFTER_CREATING_MS);
    await m.kill();
    const made = await making;
    await m.view.ready(made, LONG_MS);
    const allReadyMs = Math.round(performance.now() - from);
    await sleep(5_000);
    const again = (await m.containers()).filter((c) => (c.metadata?.attempt ?? 0) > 0).length;
    creating.push({ allReadyMs, restartedContainers: Math.max(again, made.filter((p) => p.restarts > 0).length) });
    const deletedAt = performance.now();
    const removing = m.remove(made);
    await sleep(KILL_AFTER_DELETING_MS);
    const goneAtKill = made.filter((p) => p.goneMs !== undefined).length;
    await m.kill();
    await removing;
    await m.view.gone(made, LONG_MS);
    deleting.push({ allGoneMs: Math.round(performance.now() - deletedAt), goneAtKill });
    await m.healthy();
    await m.rest();
  }
  return {
    unit: 'ms',
    pods: FEW,
    ready: { flips, newContainers: restarts, startToLeaseRenewed: withSamples(lease) },
    creating,
    deleting,
  };
}

export async function runtimeLost(m: Member, rounds: number): Promise<object> {
  const probed = await m.create('kept', FEW, { probed: true });
  await m.view.ready(probed, LONG_MS);
  await sleep(5_000);
  const [flips, fromAnswer, fromStart]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < rounds; round++) {
    const before = probed.reduce((sum, p) => sum + p.flips, 0);
    await m.lab.kill();
    await sleep(RUNTIME_AWAY_MS / 2);
    const made = await m.create(`away${round}`, 1);
    await sleep(RUNTIME_AWAY_MS / 2);
    const startAt = performance.now();
    await m.lab.start();
    const answersAt = performance.now();
    await m.view.ready(made, LONG_MS);
    fromAnswer.push(Math.max(...made.map((p) => since(p.readyMs, answersAt))));
    fromStart.push(Math.max(...made.map((p) => since(p.readyMs, startAt))));
    await sleep(FLIPS_WATCHED_MS);
    flips.push(probed.reduce((sum, p) => sum + p.flips, 0) - before);
    await m.remove(made);
    await m.view.gone(made, LONG_MS);
  }
  await m.remove(probed);
  await m.view.gone(probed, LONG_MS);
  await m.rest();
  return {
    unit: 'ms',
    pods: FEW,
    flips,
    returnToNewPodReady: withSamples(fromAnswer),
    processStartToNewPodReady: withSamples(fromStart),
  };
}
