/**
 * Runs the reference kubelet on a lab, with pods of every fate, and an observer beside it. Prints what was judged, and where the two
 * disagree. About two minutes, as root, after `npm run e2e:setup`, with the programs of a release in one folder. A mount namespace keeps
 * the folders that the reference does not let be chosen:
 *   KUBEBUILDER_ASSETS=PROGRAMS unshare -m sh -c 'for d in /var/lib/kubelet /var/log/pods /var/log/containers; do
 *     mkdir -p $d; mount -t tmpfs tmpfs $d; done; scripts/node test/reference/observed/fates.ts [FOLDER]'
 * With FOLDER, the logs of both and the whole ledger are kept there.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { manifest } from '../../e2e/manifests.ts';
import { PODS } from '../pods.ts';
import { STATIC } from '../shapes.ts';
import { keepIn, ledgerLines, withObservedLab } from './lab.ts';

/** Some pods have failed four times by then. */
const LIVES_MS = Number(process.env.LIVES_MS ?? 75_000);
const DIES_MS = 45_000;

const [, , folder, ...chosen] = process.argv;
const statics = Object.entries(chosen.length === 0 ? STATIC : {}).map(([name, spec]) => [name, manifest(name, spec.containers, { spec })]);
await withObservedLab(Object.fromEntries(statics), async (lab) => {
  const { cluster, observer } = lab;
  for (const [name, spec] of Object.entries(PODS)) {
    if (chosen.length === 0 || chosen.includes(name))
      await cluster.create(name, spec).catch((error: unknown) => console.error(String(error)));
  }
  await sleep(LIVES_MS);
  console.log((await cluster.kubectl('get', 'pods')).trim());
  for (const name of chosen) {
    console.log(`--- ${name}: actorctl why\n${await observer.ctl('why', name).catch(String)}`);
    console.log(`--- ${name}: kubectl describe\n${await cluster.kubectl('describe', 'pod', name)}`);
  }
  await cluster.kubectl('delete', 'pod', '--wait=false', '--all');
  await sleep(DIES_MS);
  const ledger = await observer.ledger();
  for (const line of ledgerLines(ledger)) console.log(line);
  if (folder !== undefined) keepIn(folder, lab, ledger);
});
