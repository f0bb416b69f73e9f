/** packaging/fleet on a real API server: its manifests, the rights of its service account, and two shards of which one is killed. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, minorVersion, startControlPlane } from '../../e2e/lab/cluster/controlPlane.ts';
import { until } from '../../e2e/lab/ports.ts';
import { endFleetProcesses, lines, startFleetProcess } from './command.ts';

const LONG = { timeoutMs: 120_000, everyMs: 250 };
const NAMESPACE = 'actorlet-fleet';
const NODES = 8;
const PORT = 21_100;
const MANIFESTS = ['packaging/fleet/rbac.yaml', 'packaging/fleet/fleet.yaml'];

let plane: ControlPlane;
let kubeconfig = '';

const kubectl = (...args: string[]): Promise<string> => plane.kubectl(...args);
const shard = (index: number, ...more: string[]) =>
  startFleetProcess(
    ...[`--nodes=${NODES}`, `--shard=${index}/2`, `--kubeconfig=${kubeconfig}`, '--socket=', `--port=${PORT + index}`],
    ...more,
  );

/** What the API server refused for want of rights, so far. */
async function refusals(): Promise<string[]> {
  const text = await kubectl('get', '--raw', '/metrics');
  return lines(text).filter((line) => line.startsWith('apiserver_request_total{') && line.includes('code="403"'));
}

interface Seen {
  metadata: { name: string; uid: string };
  spec: { nodeName: string };
  status: {
    podIP: string;
    conditions: { type: string; status: string; lastTransitionTime: string }[];
    containerStatuses: { containerID: string; restartCount: number; state: { running?: { startedAt: string } } }[];
  };
}
/** All that a person would notice of a pod that was restarted. */
async function pods(): Promise<object[]> {
  const { items } = JSON.parse(await kubectl('get', 'pods', '-o', 'json')) as { items: Seen[] };
  return items
    .map(({ metadata, spec, status }) => ({
      ...{ name: metadata.name, uid: metadata.uid, node: spec.nodeName, ip: status.podIP },
      ready: status.conditions.find((c) => c.type === 'Ready'),
      containers: status.containerStatuses.map((c) => [c.containerID, c.restartCount, c.state.running?.startedAt]),
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}
const readyNodes = async (): Promise<number> =>
  lines(await kubectl('get', 'nodes', '--no-headers')).filter((line) => / Ready /.test(line)).length;

/** With a configuration, a secret and a token; one fails now and then, one has an init container. */
const WORKLOAD = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web' },
  spec: {
    replicas: 12,
    selector: { matchLabels: { app: 'web' } },
    template: {
      metadata: { labels: { app: 'web' }, annotations: { 'actorlet.dev/exec': JSON.stringify({ hostname: 'hollow\n' }) } },
      spec: {
        initContainers: [{ name: 'first', image: 'web:1', resources: { requests: { cpu: '10m' } } }],
        containers: [
          {
            ...{ name: 'main', image: 'web:1', envFrom: [{ configMapRef: { name: 'web' } }], readinessProbe: { httpGet: { port: 80 } } },
            volumeMounts: [{ name: 'secret', mountPath: '/secret' }],
          },
        ],
        volumes: [{ name: 'secret', secret: { secretName: 'web' } }],
      },
    },
  },
};

beforeAll(async () => {
  plane = await startControlPlane({
    controllerManager: true,
    scheduler: true,
    flags: { 'kube-controller-manager': ['--node-monitor-grace-period=20s', '--node-monitor-period=2s'] },
  });
  await until('the default account', () => plane.hasAccount(), LONG);
  await kubectl('apply', '-f', 'packaging/fleet/rbac.yaml');
  const token = (await kubectl('create', 'token', NAMESPACE, '-n', NAMESPACE, '--duration=1h')).trim();
  const config = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'x', contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }] },
    clusters: [{ name: 'c', cluster: { server: plane.url, 'certificate-authority': plane.ca.certFile } }],
    users: [{ name: 'u', user: { token } }],
  };
  kubeconfig = join(plane.dir, 'fleet.kubeconfig');
  writeFileSync(kubeconfig, JSON.stringify(config), { mode: 0o600 });
}, 120_000);
afterAll(async () => {
  endFleetProcesses();
  await plane?.stop();
});

describe('packaging/fleet', () => {
  it('is taken by the API server, each shard with the index of its pod', async () => {
    const told = await kubectl('apply', '--dry-run=server', '--validate=strict', ...MANIFESTS.flatMap((file) => ['-f', file]));
    expect(told).toContain('statefulset.apps/actorlet-fleet created (server dry run)');
    await kubectl('apply', '-f', 'packaging/fleet/fleet.yaml');
    const labelled = async () => {
      const columns = "{range .items[*]}{.metadata.name} {.metadata.labels.apps\\.kubernetes\\.io/pod-index}{'\\n'}{end}";
      return lines(await kubectl('get', 'pods', '-n', NAMESPACE, '-o', `jsonpath=${columns.replaceAll("'", '"')}`));
    };
    await until('its pods', async () => (await labelled()).length === 2, LONG);
    const index = minorVersion('kube-apiserver') < 28 ? '' : '1';
    expect(await labelled()).toContain(`actorlet-fleet-1 ${index}`.trimEnd());
    await kubectl('delete', '-f', 'packaging/fleet/fleet.yaml', '--wait=false');
    expect(readFileSync('packaging/fleet/fleet.yaml', 'utf8')).toContain('--shard=$(SHARD)/$(SHARDS)');
  }, 180_000);

  it('runs two shards with the rights of its account alone; one is killed, and its nodes and pods go on', {
    timeout: 400_000,
  }, async () => {
    const before = await refusals();
    await kubectl('create', 'configmap', 'web', '--from-literal=KEY=value');
    await kubectl('create', 'secret', 'generic', 'web', '--from-literal=key=value');
    const [first, second] = [shard(0), shard(1, '--share-watches')];
    await until('all nodes', async () => (await readyNodes()) === NODES, LONG);
    writeFileSync(join(plane.dir, 'web.json'), JSON.stringify(WORKLOAD));
    await kubectl('apply', '-f', join(plane.dir, 'web.json'));
    await kubectl('rollout', 'status', 'deployment/web', '--timeout=120s');
    const was = await pods();
    expect(new Set(was.map((p) => (p as { node: string }).node)).size).toBeGreaterThan(NODES / 2);
    const [{ name } = { name: '' }] = was as { name: string }[];
    expect(await kubectl('logs', name)).toContain('main started (attempt 0)');
    expect(await kubectl('exec', name, '--', 'hostname')).toBe('hollow\n');

    first.child.kill('SIGKILL');
    await first.ended;
    // Long enough that a kubelet without memory of its pods would start them anew, short enough that nodes stay Ready.
    const again = shard(0);
    await until('they are Ready again', async () => again.text().includes(`nodes ${NODES / 2}/${NODES / 2} Ready`), LONG);
    await until('all pods are known', async () => /pods [1-9]\d*\/(\d+) Ready/.test(again.text()), LONG);
    // Two periods of its status reports, in which a flip would be written.
    await until('its leases are renewed', async () => (await leases()) < 15, LONG);
    expect(await pods()).toEqual(was);
    expect(await readyNodes()).toBe(NODES);
    const events = await kubectl('get', 'events', '-A', '-o', 'jsonpath={range .items[*]}{.reason} {end}');
    expect(events).not.toContain('NodeNotReady');
    expect(await kubectl('exec', name, '--', 'hostname')).toBe('hollow\n');

    await kubectl('scale', 'deployment/web', '--replicas=20');
    await kubectl('rollout', 'status', 'deployment/web', '--timeout=120s');
    await kubectl('delete', 'deployment', 'web');
    await until('all pods are gone', async () => (await kubectl('get', 'pods', '--no-headers')) === '', LONG);
    expect(await refusals()).toEqual(before);
    for (const one of [again, second]) one.child.kill('SIGINT');
    expect([await again.ended, await second.ended]).toEqual([0, 0]);
    expect(again.text()).not.toContain('begin anew');
    expect(lines(await kubectl('get', 'nodes', '--no-headers'))).toHaveLength(NODES);
    const last = startFleetProcess(`--nodes=${NODES}`, `--kubeconfig=${kubeconfig}`, '--socket=', '--port=0', '--cleanup');
    await until('they are taken over', async () => last.text().includes(`nodes ${NODES}/${NODES} Ready`), LONG);
    last.child.kill('SIGINT');
    expect(await last.ended).toBe(0);
    expect(await kubectl('get', 'nodes', '--no-headers')).toBe('');
    expect(await refusals()).toEqual(before);
  });
});

/** Seconds since the oldest lease was renewed. */
async function leases(): Promise<number> {
  const columns = 'jsonpath={range .items[*]}{.spec.renewTime}{"\\n"}{end}';
  const times = lines(await kubectl('get', 'leases', '-n', 'kube-node-lease', '-o', columns));
  return (Date.now() - Math.min(...times.map((time) => Date.parse(time)))) / 1000;
}
