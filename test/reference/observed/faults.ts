/**
 * The same lab with one fault after the other, of the kubelet, the runtime and the observer. Prints what the observer said of each.
 *   ... scripts/node test/reference/observed/faults.ts
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { lifeOf } from '../../cluster/cluster.ts';
import { Observer } from '../../e2e/lab/observer.ts';
import { until } from '../../e2e/lab/ports.ts';
import { steady } from '../../e2e/manifests.ts';
import { ledgerLines, NODE_CONFIG, type ObservedLab, withObservedLab } from './lab.ts';

const FROZEN_MS = 30_000;
const SOON = { timeoutMs: 60_000, everyMs: 500 };
/** Of a log line, what a person reads. */
const words = (text: string): string[] => text.split('\n').filter((line) => /kubelet|disagree|cannot see|begins anew|observe/.test(line));

async function fault(what: string, { observer }: ObservedLab, act: () => Promise<void>): Promise<void> {
  const from = observer.log().length;
  console.log(`\n=== ${what}`);
  try {
    await act();
  } catch (error) {
    console.log(`failed: ${String(error).slice(0, 2_000)}`);
  }
  for (const line of words(observer.log().slice(from))) console.log(`log: ${line.slice(0, 300)}`);
  const { disagreements } = await until('the observer answers', () => observer.ledger().catch(() => undefined), SOON);
  for (const d of disagreements.filter((one) => one.known === null))
    console.log(
      `disagreement: ${d.sort} ${d.kind} ${d.pod}: not ${d.expected}; ${d.came} (${d.settledMs === null ? 'stands' : 'settled'})`,
    );
}

await withObservedLab({}, async (lab) => {
  const { cluster, reference, observer, address } = lab;
  await cluster.create('calm', { containers: [steady()] });
  await cluster.ready('calm');
  const life = async (): Promise<string> => {
    const pod = await cluster.pod('calm');
    return pod === null ? 'none' : JSON.stringify(lifeOf(pod));
  };
  const before = await life();
  const startArgs = () => [`--kubelet-pid=${reference.pid}`];

  await fault('two observers on one node', lab, async () => {
    const second = new Observer(cluster.daemon.dir, { name: 'second' });
    await second.start(startArgs());
    try {
      const why = await until('it knows the pod', () => second.ctl('why', 'calm').catch(() => undefined), SOON);
      console.log(`the second: ${why.split('\n').slice(0, 5).join(' | ')}`);
    } finally {
      await second.end();
    }
    const same = new Observer(cluster.daemon.dir);
    await same.start(startArgs()).then(
      () => console.log('a second with the same folder has started'),
      (error: unknown) => console.log(`the same folder: ${String(error).slice(0, 600)}`),
    );
  });
  await fault('the observer is killed with SIGKILL, and starts again', lab, async () => {
    await observer.end('SIGKILL');
    await sleep(2_000);
    console.log(`the pod has the same life: ${(await life()) === before}`);
    await observer.start(startArgs());
    console.log((await observer.ctl('why', 'calm')).split('\n').slice(0, 5).join(' | '));
  });
  await fault('the kubelet is frozen', lab, async () => {
    process.kill(reference.pid ?? 0, 'SIGSTOP');
    await sleep(FROZEN_MS);
    console.log(await observer.ctl('why', 'node').catch(String));
    process.kill(reference.pid ?? 0, 'SIGCONT');
    await sleep(5_000);
  });
  await fault('the runtime starts again', lab, async () => {
    await cluster.lab.kill();
    await sleep(3_000);
    await cluster.lab.start();
    await cluster.ready('calm');
  });
  await fault('the kubelet is killed, and starts as before', lab, async () => {
    await reference.end('SIGKILL');
    await sleep(10_000);
    await reference.start({ nodeIp: address.ip, config: NODE_CONFIG });
    await sleep(5_000);
  });
  await fault('the kubelet starts with another configuration', lab, async () => {
    await reference.end('SIGTERM');
    await reference.start({ nodeIp: address.ip, config: { maxPods: 31 } });
    await until('the observer begins anew', async () => observer.log().includes('begins anew'), SOON);
    await sleep(5_000);
  });
  await fault('rights are missing', lab, async () => {
    const poor = new Observer(cluster.daemon.dir, { name: 'poor' });
    const kubeconfig = cluster.plane.kubeconfig('poor', { name: 'poor', groups: [] });
    await cluster.kubectl('create', 'clusterrole', 'poor', '--verb=get,list,watch', '--resource=pods,nodes');
    await cluster.kubectl('create', 'clusterrolebinding', 'poor', '--clusterrole=poor', '--user=poor');
    await poor.start([...startArgs(), `--kubeconfig=${kubeconfig}`]);
    await sleep(15_000);
    for (const line of poor.log().split('\n')) if (line.includes('cannot')) console.log(`log: ${line.slice(0, 300)}`);
    console.log(`it shows the pod: ${(await poor.ctl('pods')).includes('calm')}`);
    await poor.end();
  });
  console.log(`\nthe pod has the same life: ${(await life()) === before}`);
  for (const line of ledgerLines(await observer.ledger())) console.log(line);
});
