/**
 * A node of the reference kubelet with thirty static pods, written as badly as people write them: after the change to this node agent
 * each of them runs on, in the same container. So does a pod whose manifest nobody can read any more, until it is mended or removed.
 */
import { describe, expect, it } from 'vitest';
import { NODE_NAME } from '../../e2e/daemon.ts';
import type { ReferenceKubelet } from '../../e2e/lab/cluster/referenceKubelet.ts';
import { manifest, steady } from '../../e2e/manifests.ts';
import { containers } from '../../e2e/runtime.ts';
import { BAD_MANIFESTS } from '../badManifests.ts';
import { type Cluster, LONG } from '../cluster.ts';
import { besideReference } from '../hooks.ts';

let cluster: Cluster;
let reference: ReferenceKubelet;

const whyNot = besideReference((made) => ({ cluster, reference } = made));

const NAMES = [...BAD_MANIFESTS.keys(), 'broken', 'refused'];
/** Of each pod the one container, running. */
async function running(names: readonly string[]): Promise<Record<string, string>> {
  const all = await containers(cluster.lab);
  return Object.fromEntries(
    names.map((name) => [
      name,
      all
        .filter((c) => c.pod === name)
        .map((c) => `${c.id} ${c.running ? 'runs' : 'ended'}`)
        .join(', '),
    ]),
  );
}
const allRun = (of: Record<string, string>): boolean => Object.values(of).every((c) => c.endsWith(' runs'));

describe.skipIf(whyNot !== undefined)('static pods that are badly written', () => {
  let before: Record<string, string>;

  it('run under the reference', async () => {
    expect(BAD_MANIFESTS.size).toBe(30);
    for (const [name, { text }] of BAD_MANIFESTS) cluster.daemon.put(`${name}.yaml`, text);
    cluster.daemon.put('broken.yaml', manifest('broken', [steady()]));
    cluster.daemon.put('refused.yaml', manifest('refused', [steady()]));
    await reference.start();
    await cluster.daemon
      .wait('all run', async () => allRun(await running(NAMES)), { ...LONG, timeoutMs: 150_000, everyMs: 500 })
      .catch(async (error: unknown) => {
        const missing = Object.entries(await running(NAMES)).filter(([, c]) => !c.endsWith(' runs'));
        throw new Error(`${String(error)}\n${missing.map(([n, c]) => `${n} ${BAD_MANIFESTS.get(n)?.what ?? ''}: ${c}`).join('\n')}`);
      });
    before = await running(NAMES);
  }, 240_000);

  it('run on after the change: no container is started anew', async () => {
    await reference.end('SIGKILL');
    cluster.daemon.put('broken.yaml', 'apiVersion: v1\nkind: [Pod\n');
    cluster.daemon.put('refused.yaml', { ...manifest('refused', [steady()]), spec: { containers: [] } });
    await cluster.daemon.start();
    await cluster.daemon.wait('all are known', async () => (await cluster.daemon.pods()).length >= BAD_MANIFESTS.size, LONG);
    // Two sweeps of what nobody wants.
    const since = Date.now();
    await cluster.daemon.wait('two sweeps', () => Date.now() - since > 6_000, LONG);
    expect(await running(NAMES)).toEqual(before);
    const pods = await cluster.daemon.pods();
    const admitted = pods.filter((p) => BAD_MANIFESTS.has(p.metadata.name.replace(`-${NODE_NAME}`, '')) && p.status.phase === 'Running');
    expect(admitted).toHaveLength(BAD_MANIFESTS.size);
  });

  it('are explained: what was read leniently, and what runs on as it is', async () => {
    const why = await cluster.daemon.whyText('bad-2');
    expect(why).toMatch(/another document begins here/);
    expect(await cluster.daemon.whyText('broken.yaml')).toMatch(/broken-\S+.* runs on as it is: correct the manifest, or remove it/);
    const events = await cluster.daemon.events();
    expect(events.map((e) => e.reason)).toContain('ManifestWarning');
  });

  it('a mended manifest takes its pod over; a removed one stops it', async () => {
    cluster.daemon.put('broken.yaml', manifest('broken', [steady()]));
    await cluster.daemon.podWhere('broken', 'is taken over', (p) => p.status.phase === 'Running');
    expect(await running(['broken'])).toEqual({ broken: before.broken });
    cluster.daemon.remove('refused.yaml');
    cluster.daemon.remove('bad-0.yaml');
    await cluster.daemon.wait(
      'they stop',
      async () => Object.values(await running(['refused', 'bad-0'])).every((c) => !c.endsWith(' runs')),
      LONG,
    );
  });
});
