/** The reference kubelet on a lab, and an observer beside it; and what the observer's ledger comes to, in lines. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ObserverLedger } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';
import { type Audit, createAudit } from '../../../bench/lib/audit.ts';
import { type Cluster, LONG, startCluster } from '../../cluster/cluster.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { type OwnAddress, ownAddress } from '../../e2e/lab/cluster/ownAddress.ts';
import {
  createReferenceKubelet,
  REFERENCE_LOGS,
  type ReferenceKubelet,
  whyNoReferenceKubelet,
} from '../../e2e/lab/cluster/referenceKubelet.ts';
import { Observer } from '../../e2e/lab/observer.ts';
import type { Manifest } from '../../e2e/manifests.ts';

/** Of the reference kubelet. A busy machine is slow to remove pods, and which of them fit is another question. */
export const NODE_CONFIG = { maxPods: 250 };

export interface ObservedLab {
  readonly cluster: Cluster;
  readonly reference: ReferenceKubelet;
  readonly observer: Observer;
  readonly address: OwnAddress;
}

interface LabOptions {
  audit?: Audit;
  /** What the observer is started with beside the kubelet's number, and behind which program. */
  prepare?(lab: Pick<ObservedLab, 'cluster' | 'observer'>): Promise<{ args: readonly string[]; before: readonly string[] }>;
}

/** Static pods are there before the kubelet; the node is Ready, and has the config map `settings`. */
export async function withObservedLab(
  statics: Readonly<Record<string, Manifest>>,
  run: (lab: ObservedLab) => Promise<void>,
  { audit = createAudit(NODE_NAME), prepare = async () => ({ args: [], before: [] }) }: LabOptions = {},
): Promise<void> {
  const whyNot = whyNoReferenceKubelet();
  if (whyNot !== undefined) throw new Error(whyNot);
  const cluster = await startCluster({
    start: false,
    config: { podLogsDir: REFERENCE_LOGS.podLogs },
    plane: { flags: { 'kube-apiserver': audit.flags } },
  });
  const reference = await createReferenceKubelet(cluster);
  using address = ownAddress();
  const observer = new Observer(cluster.daemon.dir);
  try {
    for (const [name, pod] of Object.entries(statics)) cluster.daemon.put(`${name}.json`, pod);
    await reference.start({ nodeIp: address.ip, config: NODE_CONFIG });
    const { args, before } = await prepare({ cluster, observer });
    await observer.start([`--kubelet-pid=${reference.pid}`, ...args], before);
    await cluster.daemon.wait('the account', () => cluster.plane.hasAccount(), LONG);
    await cluster.daemon.wait('the node is Ready', async () => / Ready /.test(await cluster.kubectl('get', 'node', NODE_NAME)), LONG);
    await cluster.post('configmaps', { metadata: { name: 'settings' }, data: { value: 'one' } });
    await run({ cluster, reference, observer, address });
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
}

export function judgedOf({ counts }: ObserverLedger): number {
  return counts.reduce((sum, { agreed, known, disagreed }) => sum + agreed + known + disagreed, 0);
}

export function ledgerLines(ledger: ObserverLedger): string[] {
  const counts = ledger.counts.map((c) => `${c.kind}: ${c.agreed} agreed, ${c.known} known differences, ${c.disagreed} disagreed`);
  return [...counts, `all: ${judgedOf(ledger)} judged`, ...differencesIn(ledger)];
}

/** Those that are on no list, from the one with this number on. */
export function differencesIn({ disagreements }: ObserverLedger, fromId = 0): string[] {
  return disagreements
    .filter(({ known, id }) => known === null && id >= fromId)
    .map((d) => {
      const settled = d.settledMs === null ? 'stands' : `settled after ${Math.round((d.settledMs - d.sinceMs) / 1_000)} s`;
      const since = new Date(d.sinceMs).toISOString().slice(11, 19);
      return `${since} ${d.sort} ${d.kind} ${d.pod}: not ${d.expected}${d.came === '' ? '' : `; instead ${d.came}`} (${settled}) [${d.rule}]`;
    });
}

/** The logs of both, and the whole ledger. */
export function keepIn(folder: string, { observer, reference }: ObservedLab, ledger: ObserverLedger): void {
  writeFileSync(join(folder, 'ledger.json'), JSON.stringify(ledger, null, 1));
  writeFileSync(join(folder, 'observe.log'), observer.log());
  writeFileSync(join(folder, 'reference.log'), reference.log());
}
