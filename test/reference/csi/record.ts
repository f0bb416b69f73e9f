/**
 * Asks the reference kubelet, or actorlet, for all cases, and prints where actorlet differs. Some minutes, as root, after `npm run e2e:setup`, with the
 * programs of a release in one folder:
 *   KUBEBUILDER_ASSETS=PROGRAMS scripts/node test/reference/csi/record.ts reference|actorlet FILE [CASE...]
 */
import { writeFileSync } from 'node:fs';
import { LONG, startCluster } from '../../cluster/cluster.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { createReferenceKubelet, REFERENCE_LOGS } from '../../e2e/lab/cluster/referenceKubelet.ts';
import { CsiLab } from './lab.ts';

const [, , by = '', file = '', ...names] = process.argv;
const config = { featureGates: { CSIVolumeHealth: true }, volumeStatsAggPeriod: '10s', syncFrequency: '10s' };
const cluster = await startCluster({ start: false, config: { podLogsDir: REFERENCE_LOGS.podLogs, ...config } });
const reference = await createReferenceKubelet(cluster);
try {
  await (by === 'reference' ? reference.start({ config }) : cluster.daemon.start());
  await cluster.daemon.wait('the account', () => cluster.plane.hasAccount(), LONG);
  await cluster.daemon.wait('the node is Ready', async () => / Ready /.test(await cluster.kubectl('get', 'node', NODE_NAME)), LONG);
  const told = await new CsiLab(cluster).run(names.length === 0 ? undefined : names);
  writeFileSync(file, `${JSON.stringify(told, null, 1)}\n`);
} catch (error) {
  if (by === 'reference') writeFileSync(`${file}.log`, reference.log());
  throw error;
} finally {
  await reference.end('SIGKILL');
  await cluster.stop();
  await reference.dispose();
}
