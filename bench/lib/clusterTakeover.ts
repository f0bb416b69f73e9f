/** A node with running pods goes over to the reference kubelet and comes back: what that costs the pods. */
import type { ReferenceKubelet } from '../../test/e2e/lab/referenceKubelet.ts';
import type { PodHistory } from './cluster.ts';
import { LONG_MS, type Member } from './member.ts';
import { say, sleep } from './report.ts';

/** Half of them with a readiness probe. */
const PODS = 50;
/** Longer than a probe's period, a lease's, and the reference's own first minute of syncs. */
const WATCHED_MS = 70_000;

/** The reference kubelet is ended at the end, and the daemon runs. */
export async function takenOver(m: Member, reference: ReferenceKubelet): Promise<object> {
  const { daemon, view } = m;
  await reference.end('SIGTERM');
  if (!daemon.alive()) await daemon.start();
  const plain = await m.create('plain', PODS / 2);
  const probed = await m.create('watched', PODS / 2, { probed: true });
  await view.ready([...plain, ...probed], LONG_MS);
  await sleep(10_000);
  const ids = new Set((await m.containers()).map((c) => c.id));
  const flipsOf = (pods: readonly PodHistory[]): number => pods.reduce((sum, p) => sum + p.flips, 0);
  const over = async (to: string, change: () => Promise<void>): Promise<object> => {
    say(`takeover: to ${to}`);
    const before = [flipsOf(plain), flipsOf(probed)] as const;
    await change();
    await sleep(WATCHED_MS);
    const newContainers = (await m.containers()).filter((c) => !ids.has(c.id)).length;
    return { newContainers, flips: flipsOf(plain) - before[0], flipsOfProbed: flipsOf(probed) - before[1] };
  };
  const toReference = await over('the reference kubelet', async () => {
    await daemon.end('SIGTERM');
    await reference.start();
  });
  const back = await over('this daemon', async () => {
    await reference.end('SIGTERM');
    await daemon.start();
  });
  await m.remove([...plain, ...probed]);
  await view.gone([...plain, ...probed], LONG_MS);
  return { pods: PODS, probed: PODS / 2, toReference, back };
}
