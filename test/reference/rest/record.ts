/**
 * Counts what a node at rest asks of its API server, by the audit log of a real one. About 20 minutes, or as long as asked, as
 * root, after `npm run e2e:setup`, with the programs of a release in one folder:
 *   KUBEBUILDER_ASSETS=PROGRAMS scripts/node test/reference/rest/record.ts reference|actorlet FILE [SECONDS]
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LONG, STAY, startCluster } from '../../cluster/cluster.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { createReferenceKubelet, REFERENCE_LOGS, whyNoReferenceKubelet } from '../../e2e/lab/cluster/referenceKubelet.ts';
import { sh } from '../../e2e/manifests.ts';
import { startDriver } from '../../volumes/csiDriver.ts';
import { CLAIMS, COUNTED_MS, clusterObjects, counted, DRIVERS, ENV, SETTLE_MS, VOLUMES } from './objects.ts';

const [, , by = '', file = '', seconds] = process.argv;
const countedMs = seconds === undefined ? COUNTED_MS : Number(seconds) * 1_000;
const settleMs = Math.min(SETTLE_MS, countedMs);
if (by !== 'reference' && by !== 'actorlet') throw new Error('reference or actorlet?');
const whyNot = by === 'reference' ? whyNoReferenceKubelet() : undefined;
if (whyNot !== undefined) throw new Error(whyNot);

const dir = mkdtempSync(join(tmpdir(), 'actorlet-audit-'));
const log = join(dir, 'audit.log');
const policy = join(dir, 'policy.json');
writeFileSync(
  policy,
  JSON.stringify({
    ...{ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages: ['ResponseStarted', 'ResponseComplete', 'Panic'] },
    rules: [{ level: 'Metadata', users: [`system:node:${NODE_NAME}`] }, { level: 'None' }],
  }),
);
interface Audited {
  verb: string;
  requestReceivedTimestamp: string;
  objectRef?: { resource?: string; subresource?: string; name?: string };
}
function audited(fromMs: number, toMs: number): Audited[] {
  const all = readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Audited);
  return all.filter(({ requestReceivedTimestamp: at }) => Date.parse(at) >= fromMs && Date.parse(at) < toMs);
}

const config = { syncFrequency: '1m', fileCheckFrequency: '20s' };
const flags = { 'kube-apiserver': [`--audit-policy-file=${policy}`, `--audit-log-path=${log}`, '--audit-log-mode=blocking'] };
const cluster = await startCluster({
  ...{ start: false, plane: { flags } },
  config: by === 'reference' ? { podLogsDir: REFERENCE_LOGS.podLogs, ...config } : config,
});
const reference = by === 'reference' ? await createReferenceKubelet(cluster) : undefined;
const drivers: { stop(): Promise<void> }[] = [];
try {
  await (reference === undefined ? cluster.daemon.start() : reference.start({ config }));
  await cluster.daemon.wait('the account', () => cluster.plane.hasAccount(), LONG);
  await cluster.daemon.wait('the node is Ready', async () => / Ready /.test(await cluster.kubectl('get', 'node', NODE_NAME)), LONG);
  for (const name of Object.keys(DRIVERS)) {
    const socket = join(cluster.daemon.rootDir, 'plugins_registry', `${name}-reg.sock`);
    drivers.push(await startDriver({ name, socket, capabilities: ['STAGE_UNSTAGE_VOLUME', 'EXPAND_VOLUME'] }));
  }
  await cluster.apply(...clusterObjects());
  await cluster.daemon.wait(
    'the claims are bound',
    async () => (await cluster.kubectl('get', 'pvc')).match(/ Bound /g)?.length === Object.keys(CLAIMS).length,
    LONG,
  );
  for (const [name, volumes] of Object.entries(VOLUMES)) {
    const volumeMounts = volumes.map((v) => ({ name: v.name, mountPath: `/${v.name}` }));
    const container = { ...sh('main', STAY), volumeMounts, ...(name === 'files' ? { env: ENV } : {}) };
    await cluster.create(name, { automountServiceAccountToken: false, volumes: [...volumes], containers: [container] });
  }
  for (const name of Object.keys(VOLUMES)) await cluster.kubectl('wait', '--for=condition=Ready', `pod/${name}`, '--timeout=110s');
  const fromMs = Date.now() + settleMs;
  const toMs = fromMs + countedMs;
  await new Promise((resolve) => setTimeout(resolve, toMs - Date.now() + 1_000));
  // Without a cluster DNS the kubelet tells of that at each sync of each pod: those events are no part of a node at rest.
  const counts = audited(fromMs, toMs).filter(({ objectRef }) => objectRef?.resource !== 'events');
  const asked = counts.map(({ verb, objectRef: { resource = '', subresource, name = '' } = {} }) => ({
    ...{ verb, resource: subresource === undefined ? resource : `${resource}/${subresource}` },
    name: name.replaceAll(NODE_NAME, 'NODE'),
  }));
  writeFileSync(file, `${JSON.stringify({ countedMs, counts: counted(asked) }, null, 2)}\n`);
} catch (error) {
  if (reference !== undefined) writeFileSync(`${file}.log`, reference.log());
  throw error;
} finally {
  for (const driver of drivers) await driver.stop();
  await reference?.end('SIGKILL');
  await cluster.stop();
  await reference?.dispose();
  rmSync(dir, { recursive: true, force: true });
}
