/**
 * Runs the reference kubelet and then actorlet on one lab, with the same pods of every fate, and prints where they tell it
 * differently: statuses, events, the node object, pages and families of metrics. About three minutes, as root, after
 * `npm run e2e:setup` and scripts/reference-setup.sh:
 *   KUBEBUILDER_ASSETS=$(sh scripts/reference-setup.sh kubernetes v1.36.2) scripts/node test/reference/compare.ts
 * The two do not start at the same moment of a back-off, so a container may wait in one and have just ended in the other.
 */
import { type Cluster, LONG, startCluster } from '../cluster/cluster.ts';
import { NODE_NAME } from '../e2e/daemon.ts';
import { createReferenceKubelet, REFERENCE_LOGS, whyNoReferenceKubelet } from '../e2e/lab/referenceKubelet.ts';
import { manifest, steady } from '../e2e/manifests.ts';
import { type Difference, differences, families, onlyInOne } from './differences.ts';
import { type Observed, observe } from './observe.ts';

/** What the lab chooses for each of them. The reference takes no address of loopback, so it has none for pods to name either. */
const OF_THE_LAB =
  /^pod \S+ \.hostIP|^node\.(?:images|conditions|addresses|daemonEndpoints|nodeInfo)|^configz.*(?:Port|port|File|Path|Dir|Endpoint|evictionHard|Frequency|verbosity)/;

async function told(by: 'reference' | 'actorlet'): Promise<Observed> {
  const cluster = await startCluster({ start: false, config: { podLogsDir: REFERENCE_LOGS.podLogs } });
  const reference = await createReferenceKubelet(cluster);
  try {
    cluster.daemon.put('static.json', manifest('static', [steady()]));
    await (by === 'reference' ? reference : cluster.daemon).start();
    await ready(cluster);
    return await observe(cluster);
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

function compare(reference: Observed, actorlet: Observed): Difference[] {
  const pods = [...new Set([...Object.keys(reference.pods), ...Object.keys(actorlet.pods)])].sort();
  return [
    ...differences('node', reference.node, actorlet.node),
    ...differences('configz', reference.configz, actorlet.configz),
    ...pods.flatMap((name) => differences(`pod ${name} `, reference.pods[name], actorlet.pods[name])),
    ...onlyInOne('event', reference.events, actorlet.events),
    ...differences('page ', reference.pages, actorlet.pages),
    ...Object.keys(reference.metrics).flatMap((path) =>
      onlyInOne(`family of ${path}`, families(reference.metrics[path] ?? ''), families(actorlet.metrics[path] ?? '')),
    ),
  ].filter(([where]) => !OF_THE_LAB.test(where));
}

const whyNot = whyNoReferenceKubelet();
if (whyNot !== undefined) {
  console.error(`compare: ${whyNot}`);
  process.exit(2);
}
const found = compare(await told('reference'), await told('actorlet'));
for (const [where, reference, actorlet] of found) console.log(`${where}\n  reference: ${reference}\n  actorlet:  ${actorlet}`);
console.log(`${found.length} differences`);
