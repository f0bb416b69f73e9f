/**
 * From the start of a new process after `kill -9` to the renewal of the node's lease, with what stands in between: the first
 * connection, the handshake, each request. The daemon is real, on the hollow runtime; the API server is the simulation's, over
 * TLS on loopback, in this process. Needs openssl. Options: --rounds=10 --out=FILE
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDaemon } from '../test/e2e/daemon.ts';
import { startKubeServer, writeKubeconfig } from '../test/e2e/lab/flood/kubeServer.ts';
import { Authority } from '../test/e2e/lab/pki.ts';
import { numberOption, report, say, sleep, summary, until } from './lib/report.ts';

const rounds = numberOption('rounds', 10);
/** Node's compile cache is on the disk by then. */
const SETTLES_MS = 8_000;
const WITHIN_MS = 30_000;
const RENEWAL = 'PUT /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/';

const pki = mkdtempSync(join(tmpdir(), 'actorlet-restart-'));
const ca = new Authority(pki, 'ca');
/** What the API server heard of the present process, in ms since its start, first of each kind. */
let heard = new Map<string, number>();
let startedAt = performance.now();
const kube = await startKubeServer(ca.issue('api', { name: 'api', hosts: ['127.0.0.1'] }), {
  heard: (what) => {
    if (!heard.has(what)) heard.set(what, performance.now() - startedAt);
  },
});
const kubeconfig = writeKubeconfig(pki, kube.server, ca.certFile);
const daemon = await createDaemon({ endpoint: 'embedded://hollow' }, {}, [`--kubeconfig=${kubeconfig}`, '--node-ip=127.0.0.1']);
const renewed = () => [...heard].find(([what]) => what.startsWith(RENEWAL))?.[1];
const start = async (): Promise<number> => {
  heard = new Map();
  startedAt = performance.now();
  await daemon.start({ ready: false });
  return until('the lease to be renewed', async () => renewed(), { timeoutMs: WITHIN_MS, everyMs: 2 });
};
try {
  await daemon.start();
  const steps = new Map<string, number[]>();
  const samples: number[] = [];
  await sleep(SETTLES_MS);
  for (let round = 0; round < rounds; round++) {
    await daemon.end('SIGKILL');
    const ms = await start();
    samples.push(Math.round(ms));
    for (const [what, at] of heard) if (at <= ms) steps.set(what, [...(steps.get(what) ?? []), at]);
    say(`restart: lease renewed after ${Math.round(ms)} ms`);
    await daemon.healthy();
    await sleep(2_000);
  }
  const medians = Object.fromEntries([...steps].map(([what, at]) => [what, summary(at).p50]).sort((a, b) => Number(a[1]) - Number(b[1])));
  await report('restart', { rounds, startToLeaseRenewedMs: { ...summary(samples), samples }, medianMsOfSteps: medians });
} finally {
  await daemon.dispose();
  await kube.close();
  rmSync(pki, { recursive: true, force: true });
}
