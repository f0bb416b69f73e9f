/** How nodes of a fleet show who they are: certificates from bootstrap tokens, or impersonation. Each node is held to its own objects. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { removeNodes } from '@actorlet/fleet/src/boot/adopt.ts';
import { quietLog, realWorld } from '@actorlet/fleet/src/boot/world.ts';
import { plainFleet } from '@actorlet/fleet/src/file.ts';
import { Fleet } from '@actorlet/fleet/src/fleet.ts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KubeRequest } from '../../../src/machines/kube/request.ts';
import type { KubeApi } from '../../../src/ports/kube.ts';
import type { HostFs } from '../../../src/ports/ports.ts';
import { type ControlPlane, startControlPlane } from '../../e2e/lab/cluster/controlPlane.ts';
import { until } from '../../e2e/lab/ports.ts';
import { endFleetProcesses, startFleetProcess } from './command.ts';

const NODES = 20;
const TOKEN = { id: 'abcdef', secret: '0123456789abcdef' };
const LONG = { timeoutMs: 120_000, everyMs: 250 };
let plane: ControlPlane;
let bootstrapKubeconfig = '';
const kubectl = (...args: string[]): Promise<string> => plane.kubectl(...args);

interface Csr {
  spec: { username: string };
  status: { certificate?: string; conditions?: { reason: string }[] };
}
const csrs = async (): Promise<Csr[]> => (JSON.parse(await kubectl('get', 'csr', '-o', 'json')) as { items: Csr[] }).items;

/** A fleet in this process, and the way of each of its nodes to the API server. */
async function fleetWith(o: { prefix: string; asNodes: boolean; bootstrapKubeconfig: string }) {
  const given = { port: 0, socket: '', address: '', shareWatches: false, log: quietLog };
  const world = await realWorld({ ...given, ...o, kubeconfig: plane.adminKubeconfig });
  const ways = new Map<string, KubeApi>();
  const connect = (node: string, disk: HostFs): KubeApi => {
    const way = world.connect(node, disk);
    ways.set(node, way);
    return way;
  };
  const fleet = new Fleet(plainFleet({ name: 'fleet', nodes: NODES, prefix: o.prefix, seed: 1 }), { ...world, connect });
  return { world, ways, fleet };
}

beforeAll(async () => {
  plane = await startControlPlane({ controllerManager: true, scheduler: true });
  await until('the default account', () => plane.hasAccount(), LONG);
  await kubectl(
    ...['create', 'secret', 'generic', `bootstrap-token-${TOKEN.id}`, '-n', 'kube-system', '--type=bootstrap.kubernetes.io/token'],
    ...[`--from-literal=token-id=${TOKEN.id}`, `--from-literal=token-secret=${TOKEN.secret}`],
    ...['--from-literal=usage-bootstrap-authentication=true', '--from-literal=auth-extra-groups=system:bootstrappers:fleet'],
  );
  const bind = (name: string, role: string, group: string) =>
    kubectl('create', 'clusterrolebinding', name, `--clusterrole=${role}`, `--group=${group}`);
  await bind('join', 'system:node-bootstrapper', 'system:bootstrappers:fleet');
  await bind('approve', 'system:certificates.k8s.io:certificatesigningrequests:nodeclient', 'system:bootstrappers:fleet');
  bootstrapKubeconfig = join(plane.dir, 'bootstrap.kubeconfig');
  const config = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'x', contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }] },
    clusters: [{ name: 'c', cluster: { server: plane.url, 'certificate-authority': plane.ca.certFile } }],
    users: [{ name: 'u', user: { token: `${TOKEN.id}.${TOKEN.secret}` } }],
  };
  writeFileSync(bootstrapKubeconfig, JSON.stringify(config), { mode: 0o600 });
}, 120_000);
afterAll(async () => {
  endFleetProcesses();
  await plane?.stop();
});

describe('nodes of a fleet', () => {
  it.each([
    ['certificates of their own', 'boot', false],
    ['impersonation', 'named', true],
  ])('with %s run pods, and are held to their own objects', { timeout: 300_000 }, async (_, prefix, asNodes) => {
    const { fleet, ways, world } = await fleetWith({ prefix, asNodes, bootstrapKubeconfig: asNodes ? '' : bootstrapKubeconfig });
    expect(await fleet.start()).toEqual([]);
    await until('all nodes are Ready', async () => fleet.overview().nodes.ready === NODES, LONG);
    if (!asNodes) {
      const made = await csrs();
      expect(made).toHaveLength(NODES);
      expect(new Set(made.map((c) => c.spec.username))).toEqual(new Set([`system:bootstrap:${TOKEN.id}`]));
      expect(made.every((c) => c.status.certificate !== undefined && c.status.conditions?.[0]?.reason === 'AutoApproved')).toBe(true);
    }
    await kubectl('create', 'deployment', prefix, '--image=web', '--replicas=30');
    await kubectl('rollout', 'status', `deployment/${prefix}`, '--timeout=90s');
    await kubectl('create', 'secret', 'generic', `of-${prefix}`);
    const ask = (request: KubeRequest) =>
      ways.get(`${prefix}-3`)?.request(request, { timeoutMs: 10_000, signal: AbortSignal.timeout(10_000) });
    const label = (node: string): KubeRequest => ({
      ...{ verb: 'PATCH', path: `/api/v1/nodes/${node}`, patchType: 'merge' },
      body: { metadata: { labels: { 'example.com/seen': 'yes' } } },
    });
    expect(await ask(label(`${prefix}-3`))).toMatchObject({ ok: true });
    // NodeRestriction, and the Node authorizer: a secret that no pod of this node has.
    const words = `node "${prefix}-3" is not allowed to modify node "${prefix}-4"`;
    expect(await ask(label(`${prefix}-4`))).toMatchObject({ ok: false, failure: { code: 403, message: expect.stringContaining(words) } });
    expect(await ask({ verb: 'GET', path: `/api/v1/namespaces/default/secrets/of-${prefix}` })).toMatchObject({
      ok: false,
      failure: { code: 403, message: expect.stringContaining(`User "system:node:${prefix}-3" cannot get resource "secrets"`) },
    });
    await kubectl('delete', 'deployment', prefix);
    await until('all pods are gone', async () => (await kubectl('get', 'pods', '--no-headers')) === '', LONG);
    await fleet.stop();
    const names = fleet.members.map((m) => m.name);
    expect(await removeNodes(names, { kube: world.admin, signal: AbortSignal.timeout(60_000) })).toBe(NODES);
    world.admin.close();
    world.close();
  });

  it('say so where there are no bootstrap credentials', async () => {
    const mine = startFleetProcess(
      '--nodes=2',
      `--kubeconfig=${plane.adminKubeconfig}`,
      '--bootstrap-kubeconfig=/nowhere',
      '--socket=',
      '--port=0',
    );
    expect(await mine.ended).toBe(64);
    expect(mine.text()).toContain('--bootstrap-kubeconfig: kubeconfig /nowhere: cannot be read');
  });
});
