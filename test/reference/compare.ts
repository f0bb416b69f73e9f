/**
 * Runs the reference kubelet and then actorlet on one lab, with the same pods of every fate, and prints where they tell it
 * differently: statuses, events, the node object, pages, and values of metrics. About four minutes, as root, after
 * `npm run e2e:setup`, with the programs of a release (its published binaries) in one folder:
 *   KUBEBUILDER_ASSETS=PROGRAMS scripts/node test/reference/compare.ts [FOLDER [--record]]
 * What each told is kept in FOLDER, and one that is kept there is not asked again. `--record` writes what CI compares with.
 * The two do not start at the same moment of a back-off, so a container may wait in one and have just ended in the other.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Cluster, LONG, startCluster } from '../cluster/cluster.ts';
import { NODE_NAME } from '../e2e/daemon.ts';
import { createReferenceKubelet, REFERENCE_LOGS, whyNoReferenceKubelet } from '../e2e/lab/cluster/referenceKubelet.ts';
import { manifest } from '../e2e/manifests.ts';
import { rowDifferences } from './classes.ts';
import { isKnown } from './known.ts';
import { type Observed, observe } from './observe.ts';
import { RECORDING, recordingOf } from './recording.ts';
import { rowsOf } from './rows.ts';
import { STATIC } from './shapes.ts';

type Agent = 'reference' | 'actorlet';

async function told(by: Agent): Promise<Observed> {
  const cluster = await startCluster({ start: false, config: { podLogsDir: REFERENCE_LOGS.podLogs } });
  const reference = await createReferenceKubelet(cluster);
  try {
    for (const [name, spec] of Object.entries(STATIC)) cluster.daemon.put(`${name}.json`, manifest(name, spec.containers, { spec }));
    await (by === 'reference' ? reference : cluster.daemon).start();
    await ready(cluster);
    const observed = await observe(cluster);
    if (by === 'reference' && !reference.alive()) throw new Error(`the reference ended:\n${reference.log().slice(-8_000)}`);
    return observed;
  } finally {
    await reference.end('SIGKILL');
    await cluster.stop();
    await reference.dispose();
  }
}
async function ready({ daemon, plane }: Cluster): Promise<void> {
  await daemon.wait('the account', () => plane.hasAccount(), LONG);
  await daemon.wait('the node is Ready', async () => / Ready /.test(await plane.kubectl('get', 'node', NODE_NAME)), LONG);
}

async function kept(by: Agent, folder: string | undefined): Promise<Observed> {
  const file = folder === undefined ? undefined : join(folder, `${by}.json`);
  if (file !== undefined && existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as Observed;
  const whyNot = by === 'reference' ? whyNoReferenceKubelet() : undefined;
  if (whyNot !== undefined) throw new Error(whyNot);
  const observed = await told(by);
  if (file !== undefined) writeFileSync(file, JSON.stringify(observed));
  return observed;
}

const [, , folder, option] = process.argv;
const [reference, actorlet] = [rowsOf(await kept('reference', folder)), rowsOf(await kept('actorlet', folder))];
if (option === '--record') writeFileSync(RECORDING, `${JSON.stringify(recordingOf(reference), null, 2)}\n`);
const found = rowDifferences(reference, actorlet, isKnown);
for (const [where, theirs, ours] of found) console.log(`${where}\n  reference: ${theirs}\n  actorlet:  ${ours}`);
console.log(`${found.length} differences`);
