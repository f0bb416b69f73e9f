/** A fleet against a real API server, with its scheduler and controllers: as a person starts it, from the command line. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from '../../e2e/lab/cluster/controlPlane.ts';
import { until } from '../../e2e/lab/ports.ts';
import { endFleetProcesses, lines, startFleetProcess } from './command.ts';

const NODES = 20;
const PODS = 60;
const LONG_MS = 90_000;
const PORT = 21_000;
const dir = mkdtempSync(join(tmpdir(), 'actorlet-fleet-'));
const SLOW = `apiVersion: actorlet.dev/v1alpha1
kind: FaultScenario
metadata: { name: deaf }
spec:
  faults:
    - { name: no-leases, at: 0s, for: 5m, kind: api.call, select: { resources: [leases, nodes/status] }, action: error, status: 503 }
`;

let plane: ControlPlane;
interface Summary {
  node: { nodeName: string; cpu: { usageCoreNanoSeconds: number } };
  pods: { podRef: { name: string }; containers: { cpu: object; memory: object }[] }[];
}
const fleet = (...args: string[]) => startFleetProcess(...args, `--kubeconfig=${plane.adminKubeconfig}`);
const file = (name: string, text: string): string => {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
};
const kubectl = (...args: string[]): Promise<string> => plane.kubectl(...args);

/** A pod whose annotations say what commands answer and what it uses. */
async function scripted(): Promise<void> {
  const annotations = {
    'actorlet.dev/exec': JSON.stringify({ 'cat /etc/motd': 'hello\n', '*': { stderr: 'no\n', exit: 3 } }),
    'actorlet.dev/usage': 'cpu=250m, memory=64Mi',
  };
  const spec = { containers: [{ name: 'main', image: 'fleet/web:1' }], terminationGracePeriodSeconds: 1 };
  file('scripted.json', JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'scripted', annotations }, spec }));
  await kubectl('create', '-f', join(dir, 'scripted.json'));
  await kubectl('wait', '--for=condition=Ready', 'pod/scripted', '--timeout=60s');
  expect(await kubectl('exec', 'scripted', '--', 'cat', '/etc/motd')).toBe('hello\n');
  await expect(kubectl('exec', 'scripted', '--', 'false')).rejects.toMatchObject({ code: 3, stderr: expect.stringContaining('no\n') });
  const node = await kubectl('get', 'pod', 'scripted', '-o', 'jsonpath={.spec.nodeName}');
  const { pods } = JSON.parse(await kubectl('get', '--raw', `/api/v1/nodes/${node}/proxy/stats/summary`)) as Summary;
  const used = pods.find((p) => p.podRef.name === 'scripted')?.containers[0];
  expect(used).toMatchObject({ cpu: { usageNanoCores: 250_000_000 }, memory: { workingSetBytes: 64 * 2 ** 20 } });
  await kubectl('delete', 'pod', 'scripted');
}

beforeAll(async () => {
  plane = await startControlPlane({
    controllerManager: true,
    scheduler: true,
    flags: { 'kube-controller-manager': ['--node-monitor-grace-period=20s', '--node-monitor-period=2s'] },
  });
}, 120_000);
afterAll(async () => {
  endFleetProcesses();
  await plane?.stop();
  rmSync(dir, { recursive: true, force: true });
});

describe('a fleet that runs until it is interrupted', () => {
  it('has nodes that the scheduler binds pods to, which come up, are read and go', { timeout: 4 * LONG_MS }, async () => {
    const mine = fleet(`--nodes=${NODES}`, '--prefix=plain', '--as-nodes', `--port=${PORT}`, '--cleanup');
    await until('all nodes are Ready', async () => mine.text().includes(`nodes ${NODES}/${NODES} Ready`), { timeoutMs: LONG_MS });
    expect(lines(await kubectl('get', 'nodes', '--no-headers', '-l', 'actorlet.dev/fleet=fleet'))).toHaveLength(NODES);
    await kubectl('create', 'deployment', 'web', '--image=fleet/web:1', `--replicas=${PODS}`);
    await kubectl('rollout', 'status', 'deployment/web', '--timeout=90s');
    const pods = lines(await kubectl('get', 'pods', '-o', 'jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName}{"\\n"}{end}'));
    expect(new Set(pods.map((line) => line.split(' ')[1])).size).toBeGreaterThan(NODES / 2);
    const [pod = ''] = pods[0]?.split(' ') ?? [];
    expect(pod).toMatch(/^web-/);
    expect(await kubectl('get', '--raw', `/api/v1/nodes/plain-7/proxy/pods`)).toContain('"kind":"PodList"');
    const summary = JSON.parse(await kubectl('get', '--raw', '/api/v1/nodes/plain-7/proxy/stats/summary')) as Summary;
    expect(summary.node.nodeName).toBe('plain-7');
    expect(summary.node.cpu.usageCoreNanoSeconds).toBeGreaterThan(0);
    expect(summary.pods.length).toBeGreaterThan(0);
    expect(await kubectl('get', '--raw', '/api/v1/nodes/plain-7/proxy/metrics/resource')).toContain('node_cpu_usage_seconds_total');
    expect(await kubectl('logs', pod)).toContain('started (attempt 0)');
    await scripted();
    await kubectl('delete', 'deployment', 'web');
    await until('all pods are gone', async () => (await kubectl('get', 'pods', '--no-headers')) === '', { timeoutMs: LONG_MS });
    mine.child.kill('SIGINT');
    expect(await mine.ended).toBe(0);
    expect(mine.text()).toContain(`removed ${NODES} nodes from the API`);
    expect(await kubectl('get', 'nodes', '--no-headers')).toBe('');
  });
});

describe('a fleet file', () => {
  it('restarts and disturbs chosen nodes, judges what it expects, and leaves by code', { timeout: 4 * LONG_MS }, async () => {
    file('deaf.yaml', SLOW);
    const path = file(
      'fleet.yaml',
      `apiVersion: actorlet.dev/v1alpha1
kind: Fleet
metadata: { name: zones }
spec:
  seed: 7
  groups:
    - { name: a, count: 6, labels: { topology.kubernetes.io/zone: a }, runtime: { start: { from: 10ms, to: 200ms } } }
    - { name: b, count: 4, labels: { topology.kubernetes.io/zone: b }, taints: ['only=batch:NoSchedule'], capacity: { cpu: 2, memory: 4Gi, pods: 20 } }
  steps:
    - { at: 10s, do: restart, nodes: { groups: [a] } }
    - { at: 12s, do: inject, scenario: deaf.yaml, nodes: { groups: [b], share: 0.5 } }
  expect:
    - { nodesReady: 10, within: 60s }
    - { podsReady: 1, within: 5s }
`,
    );
    const mine = fleet(path, '--json', '--port=0', '--share-watches');
    expect(await mine.ended, mine.text()).toBe(1);
    const said = mine.text();
    expect(said).toMatch(/at least 10 nodes Ready within 60 s +10 +met after/);
    expect(said).toMatch(/at least 1 pod Ready within 5 s +0 +NOT MET/);
    expect(said).toContain('restart: 6 nodes');
    expect(said).toContain('inject deaf: 2 nodes');
    const capacity = await kubectl(
      'get',
      'node',
      'b-3',
      '-o',
      'jsonpath={.status.capacity.cpu} {.status.capacity.pods} {.spec.taints[0].key}',
    );
    expect(capacity).toBe('2 20 only');
    expect(lines(await kubectl('get', 'nodes', '--no-headers', '-l', 'topology.kubernetes.io/zone=a'))).toHaveLength(6);
  });

  it('adopts its own nodes, and refuses names that others have', { timeout: 2 * LONG_MS }, async () => {
    const refused = fleet('--nodes=3', '--prefix=a', '--name=other', '--port=0');
    expect(await refused.ended).toBe(64);
    expect(refused.text()).toContain('3 nodes are there that the fleet other did not make: a-0, a-1, a-2; choose other names');
    const adopted = fleet('--nodes=6', '--prefix=a', '--name=zones', '--port=0', '--cleanup');
    await until('they are Ready again', async () => adopted.text().includes('nodes 6/6 Ready'), { timeoutMs: LONG_MS });
    adopted.child.kill('SIGINT');
    expect(await adopted.ended).toBe(0);
    expect(lines(await kubectl('get', 'nodes', '--no-headers'))).toHaveLength(4);
    // The next fleet may have nodes of these names.
    await kubectl('delete', 'nodes', '-l', 'actorlet.dev/fleet=zones');
  });

  it('of the examples keeps nodes Ready through a herd of restarts', { timeout: 2 * LONG_MS }, async () => {
    const mine = fleet('run', 'examples/fleet/herd.yaml', '--port=0', '--cleanup');
    expect(await mine.ended, mine.text()).toBe(0);
    expect(mine.text()).toMatch(/Ready for the cluster through the herd within 60 s +30 +held until 60\.0 s/);
    expect(mine.text()).toContain('restart: 30 nodes');
    expect(mine.text()).toContain('restart: 3 nodes');
  });

  it('of the examples rolls a Deployment while a zone is away', { timeout: 2 * LONG_MS }, async () => {
    const mine = fleet('examples/fleet/zone-away.yaml', '--port=0', '--cleanup');
    expect(await mine.ended, mine.text()).toBe(0);
    expect(mine.text()).toContain('stop: 4 nodes');
    expect(mine.text()).toMatch(/available while the zone is away within 50 s +\d +held until/);
    await kubectl('delete', 'deployment', 'shop');
  });

  it('of the examples measures a burst of pods, here on 100 nodes in place of 1,000', { timeout: 5 * LONG_MS }, async () => {
    cpSync('examples/fleet/manifests', join(dir, 'manifests'), { recursive: true });
    const text = readFileSync('examples/fleet/scheduler.yaml', 'utf8');
    const smaller = text
      .replace('count: 900', 'count: 90')
      .replace('count: 100,', 'count: 10,')
      .replace('nodesReady: 1000', 'nodesReady: 100');
    const mine = fleet('run', file('scheduler.yaml', smaller), '--port=0', '--cleanup');
    expect(await mine.ended, mine.text()).toBe(0);
    const said = mine.text();
    expect(said).toMatch(/at least 100 nodes Ready within 90 s +100 +met after/);
    expect(said).toMatch(/status\.availableReplicas.* 500 +met after/);
    expect(said).toMatch(/PATCH pods\/status.* \d+ +met/);
    expect(said).toContain('removed 100 nodes from the API');
    await kubectl('delete', 'deployment', 'web');
  });

  it('says what is wrong with a file, by line and field', async () => {
    const path = file(
      'wrong.yaml',
      'apiVersion: actorlet.dev/v1alpha1\nkind: Fleet\nmetadata: { name: x }\nspec:\n  groups:\n    - { name: a, cuont: 3 }\n',
    );
    const wrong = fleet(path);
    expect(await wrong.ended).toBe(64);
    expect(wrong.text()).toContain('wrong.yaml:6: spec.groups[0].cuont: unknown field (did you mean count?)');
  });
});
