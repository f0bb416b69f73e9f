/**
 * Twenty planted faults beside the reference kubelet: ten bugs of one line in the observer's own tree, and ten misbehaviours of the
 * other side. Each is named as a disagreement, of the right pod and the right act, within 30 s.
 */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Disagreement } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { scratch } from '../../../packages/sim/test/mutants/scratch.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { startApiProxy } from '../../e2e/lab/cluster/apiProxy.ts';
import { createReferenceKubelet, REFERENCE_LOGS, whyNoReferenceKubelet } from '../../e2e/lab/cluster/referenceKubelet.ts';
import { Observer } from '../../e2e/lab/observer.ts';
import { until } from '../../e2e/lab/ports.ts';
import { manifest } from '../../e2e/manifests.ts';
import { startDriver, type TestDriver } from '../../volumes/csiDriver.ts';
import { LONG, startCluster } from '../cluster.ts';
import { BUGS, PODS, STATIC } from './planted/bugs.ts';
import { type Lab, LIES } from './planted/lies.ts';

const whyNot = whyNoReferenceKubelet();
if (whyNot !== undefined) console.warn(`not run: ${whyNot}`);

const NAMED_WITHIN_MS = 30_000;
const FOUND_EVERY_MS = 250;
/** `PLANTED=frozen` runs those whose name has it. */
const CHOSEN = process.env.PLANTED ?? '';
const chosen = <T extends { id: string }>(all: readonly T[]): T[] => all.filter(({ id }) => id.includes(CHOSEN));
const CSI = 'lies.example.com';

let lab: Lab;
let driver: TestDriver | undefined;
const observers: Observer[] = [];
const named: string[] = [];
const missed: string[] = [];

const wordsOf = ({ sort, kind, pod, expected, came }: Disagreement): string => `${sort} ${kind} ${pod} ${expected} ${came}`;
async function wordsIn(observer: Observer, known: ReadonlySet<number> = new Set()): Promise<string[]> {
  const { disagreements } = await observer.ledger();
  return disagreements.filter((d) => d.known === null && !known.has(d.id)).map(wordsOf);
}

async function judged(id: string, observer: Observer, { pattern, known }: { pattern: RegExp; known?: ReadonlySet<number> }): Promise<void> {
  const began = Date.now();
  let words: string[] = [];
  const found = async () => {
    words = await wordsIn(observer, known);
    return words.find((text) => pattern.test(text));
  };
  const name = await until(id, found, { timeoutMs: NAMED_WITHIN_MS, everyMs: FOUND_EVERY_MS }).catch(() => undefined);
  const seconds = ((Date.now() - began) / 1_000).toFixed(1);
  if (name === undefined) missed.push(id);
  else named.push(id);
  const { expected } = await observer.ledger();
  const waits = expected.map((act) => `waits for ${act.kind} ${act.pod} ${act.what}, ${Math.round((Date.now() - act.sinceMs) / 1_000)} s`);
  console.log(
    name === undefined ? `missed ${id}: ${[...words, ...waits].join('\n  ')}` : `named after ${seconds} s ${id}: ${name.slice(0, 200)}`,
  );
}

beforeAll(async () => {
  if (whyNot !== undefined) return;
  const cluster = await startCluster({ start: false, config: { podLogsDir: REFERENCE_LOGS.podLogs } });
  const proxy = await startApiProxy(cluster.plane, NODE_NAME);
  const kubelet = await createReferenceKubelet({
    ...{ plane: cluster.plane, daemon: cluster.daemon, port: cluster.port },
    kubeconfig: proxy.kubeconfig,
  });
  lab = { cluster, proxy, kubelet };
  for (const [name, spec] of Object.entries(STATIC)) cluster.daemon.put(`${name}.json`, manifest(name, spec.containers));
  await kubelet.start();
  await cluster.daemon.wait('the account', () => cluster.plane.hasAccount(), LONG);
  await cluster.daemon.wait('the node is Ready', async () => / Ready /.test(await cluster.kubectl('get', 'node', NODE_NAME)), LONG);
  await cluster.post('configmaps', { metadata: { name: 'settings' }, data: { value: 'one' } });
  const rules = { attachRequired: false, volumeLifecycleModes: ['Ephemeral'] };
  await cluster.apply({ apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: { name: CSI }, spec: rules });
  // It says that it publishes, and does nothing.
  driver = await startDriver({ name: CSI, socket: join(cluster.daemon.rootDir, 'plugins_registry', `${CSI}-reg.sock`) });
}, 300_000);
afterAll(async () => {
  if (whyNot !== undefined) return;
  for (const observer of observers) await observer.end('SIGKILL');
  await driver?.stop();
  await lab.kubelet.end('SIGKILL');
  await lab.cluster.stop();
  await lab.proxy.stop();
  await lab.kubelet.dispose();
}, 120_000);

/** An observer that goes around the proxy: what the kubelet is kept from seeing, it sees. */
async function startObserver(name: string, program?: readonly string[]): Promise<Observer> {
  const { cluster, kubelet } = lab;
  const observer = new Observer(cluster.daemon.dir, { name, ...(program === undefined ? {} : { program }) });
  observers.push(observer);
  const kubeconfig = join(cluster.daemon.dir, 'observer.kubeconfig');
  copyFileSync(cluster.plane.nodeKubeconfig(NODE_NAME), kubeconfig);
  await observer.start([`--kubelet-pid=${kubelet.pid}`, `--kubeconfig=${kubeconfig}`]);
  return observer;
}

describe.skipIf(whyNot !== undefined)('planted faults', () => {
  it('in the observer are named, each by what the kubelet does instead', async () => {
    const { cluster } = lab;
    for (const [name, spec] of Object.entries(PODS)) await cluster.create(name, spec);
    await cluster.ready('plain');
    await cluster.podWhere('crash', 'fell', (p) => (p.status.containerStatuses?.[0]?.restartCount ?? 0) >= 1);
    await cluster.podWhere('greedy', 'had too much', (p) => p.status.containerStatuses?.[0]?.state.terminated !== undefined);
    await cluster.podWhere('half', 'waits', (p) => p.status.containerStatuses?.some((c) => c.state.running !== undefined) === true);
    using copy = scratch();
    const control = await startObserver('control');
    for (const bug of chosen(BUGS)) {
      expect(copy.fits(bug), bug.id).toBe('');
      await copy.planted(bug, async () => {
        const observer = await startObserver(`bug-${BUGS.indexOf(bug)}`, copy.program);
        await judged(bug.id, observer, { pattern: bug.named });
        await observer.end();
      });
    }
    // Without a bug nothing is at odds.
    expect(await wordsIn(control)).toEqual([]);
    await control.end();
    await cluster.kubectl('delete', 'pod', '--wait=false', '--all');
    expect(missed).toEqual([]);
  }, 900_000);

  it('of the kubelet are named', async () => {
    const observer = await startObserver('lies');
    for (const lie of chosen(LIES)) {
      await lie.prepare?.(lab);
      const known = new Set((await observer.ledger()).disagreements.map((d) => d.id));
      await lie.begin(lab);
      await judged(lie.id, observer, { pattern: lie.named, known });
      await lie.end(lab);
      await lab.kubelet.healthy();
      await settled(observer);
    }
    await observer.end();
    console.log(`${named.length} of ${named.length + missed.length} planted faults were named within ${NAMED_WITHIN_MS / 1_000} s`);
    expect(missed).toEqual([]);
  }, 1_200_000);
});

/** Nothing of the last one stands, and the node takes pods. */
async function settled(observer: Observer): Promise<void> {
  const { cluster } = lab;
  await cluster.daemon.wait('the node is Ready', async () => / Ready /.test(await cluster.kubectl('get', 'node', NODE_NAME)), LONG);
  const stands = async () => (await observer.ledger()).disagreements.filter((d) => d.known === null && d.settledMs === null);
  await until('nothing stands', async () => (await stands()).length === 0, { timeoutMs: 20_000, everyMs: 500 }).catch(async () => {
    console.log(`still: ${(await stands()).map(wordsOf).join('\n  ')}`);
  });
}
