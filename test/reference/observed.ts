/**
 * Runs the reference kubelet on a lab, with pods of every fate, and an observer beside it. Prints what was judged, and where the two
 * disagree. About two minutes, as root, after `npm run e2e:setup`, with the programs of a release in one folder. A mount namespace keeps
 * the folders that the reference does not let be chosen:
 *   KUBEBUILDER_ASSETS=PROGRAMS unshare -m sh -c 'for d in /var/lib/kubelet /var/log/pods /var/log/containers; do
 *     mkdir -p $d; mount -t tmpfs tmpfs $d; done; scripts/node test/reference/observed.ts [FOLDER]'
 * With FOLDER, the logs of both and the whole ledger are kept there.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAudit } from '../../bench/lib/audit.ts';
import { LONG, startCluster } from '../cluster/cluster.ts';
import { NODE_NAME } from '../e2e/daemon.ts';
import { createReferenceKubelet, REFERENCE_LOGS, whyNoReferenceKubelet } from '../e2e/lab/cluster/referenceKubelet.ts';
import { Observer } from '../e2e/lab/observer.ts';
import { manifest } from '../e2e/manifests.ts';
import { PODS } from './pods.ts';
import { STATIC } from './shapes.ts';

/** Some pods have failed four times by then. */
const LIVES_MS = Number(process.env.LIVES_MS ?? 75_000);
const DIES_MS = 45_000;

const [, , folder, ...chosen] = process.argv;
const whyNot = whyNoReferenceKubelet();
if (whyNot !== undefined) throw new Error(whyNot);
const audit = createAudit(NODE_NAME);
const cluster = await startCluster({
  start: false,
  config: { podLogsDir: REFERENCE_LOGS.podLogs },
  plane: { flags: { 'kube-apiserver': audit.flags } },
});
const reference = await createReferenceKubelet(cluster);
const observer = new Observer(cluster.daemon.dir);
try {
  for (const [name, spec] of Object.entries(chosen.length === 0 ? STATIC : {}))
    cluster.daemon.put(`${name}.json`, manifest(name, spec.containers, { spec }));
  await reference.start();
  await observer.start([`--kubelet-pid=${reference.pid}`]);
  await cluster.daemon.wait('the account', () => cluster.plane.hasAccount(), LONG);
  await cluster.daemon.wait('the node is Ready', async () => / Ready /.test(await cluster.kubectl('get', 'node', NODE_NAME)), LONG);
  await cluster.post('configmaps', { metadata: { name: 'settings' }, data: { value: 'one' } });
  for (const [name, spec] of Object.entries(PODS)) {
    if (chosen.length === 0 || chosen.includes(name))
      await cluster.create(name, spec).catch((error: unknown) => console.error(String(error)));
  }
  await sleep(LIVES_MS);
  console.log((await cluster.kubectl('get', 'pods')).trim());
  for (const name of chosen) console.log(await observer.ctl('why', name).catch(String));
  await cluster.kubectl('delete', 'pod', '--wait=false', '--all');
  await sleep(DIES_MS);
  const ledger = await observer.ledger();
  for (const c of ledger.counts) console.log(`${c.kind}: ${c.agreed} agreed, ${c.known} known differences, ${c.disagreed} disagreed`);
  for (const d of ledger.disagreements.filter(({ known }) => known === null)) {
    const settled = d.settledMs === null ? 'stands' : `settled after ${Math.round((d.settledMs - d.sinceMs) / 1_000)} s`;
    console.log(
      `${d.sort} ${d.kind} ${d.pod}: not ${d.expected}${d.came === '' ? '' : `; instead ${d.came}`} (${settled}) [${d.known ?? d.rule}]`,
    );
  }
  if (folder !== undefined) {
    writeFileSync(join(folder, 'ledger.json'), JSON.stringify(ledger, null, 1));
    writeFileSync(join(folder, 'observe.log'), observer.log());
    writeFileSync(join(folder, 'reference.log'), reference.log());
  }
} catch (error) {
  console.log(observer.log().slice(-6_000));
  throw error;
} finally {
  console.log(`the observer ended with ${await observer.end()}`);
  await reference.end('SIGKILL');
  await cluster.stop();
  await reference.dispose();
  audit.remove();
}
