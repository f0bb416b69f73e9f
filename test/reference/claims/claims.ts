/**
 * Runs the reference kubelet and then actorlet with the same claims, pods and driver, and prints what they do or tell differently.
 * About three minutes, as root, after `npm run e2e:setup`, with containerd 2 and the programs of a release of 1.36 or later:
 *   KUBEBUILDER_ASSETS=PROGRAMS scripts/node test/reference/claims/claims.ts [--record]
 * `--record` writes what CI compares with (claims.test.ts).
 */
import { writeFileSync } from 'node:fs';
import { startCluster } from '../../cluster/cluster.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { createReferenceKubelet, REFERENCE_LOGS, whyNoReferenceKubelet } from '../../e2e/lab/cluster/referenceKubelet.ts';
import { differences } from '../differences.ts';
import { begin, callsOf, checkpointNow, end, look, StoryDriver } from './observeClaims.ts';
import { CLAIMS_RECORDING, named, type ToldClaims } from './told.ts';

async function told(by: 'reference' | 'actorlet'): Promise<ToldClaims> {
  const c = await startCluster({ start: false, config: { podLogsDir: REFERENCE_LOGS.podLogs } });
  const reference = await createReferenceKubelet(c);
  const driver = new StoryDriver(c);
  const over = async (): Promise<void> => {
    driver.driver?.stop();
    await reference.end('SIGKILL');
    await c.stop();
    await reference.dispose();
  };
  // A run that is cut short leaves nothing behind.
  const cut = (): void => void over().finally(() => process.exit(130));
  process.once('SIGINT', cut);
  try {
    await (by === 'reference' ? reference : c.daemon).start();
    await c.daemon.wait('the account', () => c.plane.hasAccount(), { timeoutMs: 60_000, everyMs: 100 });
    await c.daemon.wait('the node is Ready', async () => / Ready /.test(await c.kubectl('get', 'node', NODE_NAME)), {
      ...{ timeoutMs: 60_000, everyMs: 100 },
    });
    await begin(c, driver);
    const { told: seen, known } = await look(c, driver);
    await end(c);
    return { ...seen, calls: callsOf(driver, known), checkpoint: { ...seen.checkpoint, gone: named(known)(checkpointNow(c)) } };
  } finally {
    process.off('SIGINT', cut);
    await over();
  }
}

const whyNot = whyNoReferenceKubelet();
if (whyNot !== undefined) throw new Error(whyNot);
const reference = await told('reference');
if (process.argv.includes('--record')) writeFileSync(CLAIMS_RECORDING, `${JSON.stringify(reference, null, 2)}\n`);
const found = differences('', reference, await told('actorlet'));
for (const [where, theirs, ours] of found) console.log(`${where}\n  reference: ${theirs}\n  actorlet:  ${ours}`);
console.log(`${found.length} differences`);
