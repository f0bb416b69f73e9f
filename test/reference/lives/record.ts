/** Writes what the reference kubelet tells of the pod of `restart.ts`; run as `compare.ts` is. */
import { writeFileSync } from 'node:fs';
import { LONG, startCluster } from '../../cluster/cluster.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { createReferenceKubelet, REFERENCE_LOGS, whyNoReferenceKubelet } from '../../e2e/lab/cluster/referenceKubelet.ts';
import { RECORDED_RESTART, toldOfRestart } from './restart.ts';

const whyNot = whyNoReferenceKubelet();
if (whyNot !== undefined) throw new Error(whyNot);
const cluster = await startCluster({ start: false, config: { podLogsDir: REFERENCE_LOGS.podLogs } });
const reference = await createReferenceKubelet(cluster);
try {
  await reference.start();
  await cluster.daemon.wait('the account', () => cluster.plane.hasAccount(), LONG);
  const isReady = async () => / Ready /.test(await cluster.plane.kubectl('get', 'node', NODE_NAME));
  await cluster.daemon.wait('the node is Ready', isReady, LONG);
  writeFileSync(RECORDED_RESTART, `${JSON.stringify(await toldOfRestart(cluster), null, 2)}\n`);
} finally {
  await reference.end('SIGKILL');
  await cluster.stop();
  await reference.dispose();
}
