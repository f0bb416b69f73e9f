/**
 * A node with running pods is taken over from the reference kubelet, and goes back: what that costs the pods. The reference makes
 * them: before 1.31 it knows its containers by a hash of their whole definition, and would start those of a newer kubelet anew.
 */
import type { ReferenceKubelet } from '../../test/e2e/lab/cluster/referenceKubelet.ts';
import type { PodHistory } from './cluster.ts';
import { LONG_MS, type Member } from './member.ts';
import { say, sleep } from './report.ts';

/** Half of them with a readiness probe. */
const PODS = 50;
/** Longer than a probe's period, a lease's, and the reference's own first minute of syncs. */
const WATCHED_MS = 70_000;

/** The reference kubelet runs, and does so at the end. */
export async function takenOver(m: Member, reference: ReferenceKubelet): Promise<object> {
  const { daemon, view } = m;
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
  const taken = await over('this daemon', async () => {
    await reference.end('SIGTERM');
    await daemon.start();
  });
  const back = await over('the reference kubelet', async () => {
    await daemon.end('SIGTERM');
    await reference.start();
  });
  await m.remove([...plain, ...probed]);
  await view.gone([...plain, ...probed], LONG_MS);
  return { pods: PODS, probed: PODS / 2, taken, back };
}
