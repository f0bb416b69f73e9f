/**
 * Days of docs/cluster/kubeadm.md that take three control planes, on nodes in namespaces of this machine (`node.ts`). With programs of the
 * release before in the folder KUBEBUILDER_ASSETS_BEFORE, the cluster is made of those, with its kubelet, and actorlet comes with the upgrade.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildDaemon } from '../../e2e/daemon.ts';
import { scriptOf, whyNot } from '../../e2e/vm/kubeadm/document.ts';
import { webDeployment } from '../../e2e/vm/kubeadm/web.ts';
import { clusterFile, images, isStatic, kubeadmVersion, orLog, Seen, TEST_MS, untimed, wait } from './cluster.ts';
import { DROP_IN, KubeadmNode, Network } from './node.ts';

if (whyNot !== undefined) console.warn(`kubeadm is not tried: ${whyNot}`);

const PODS = 4;
const NODES = ['cp1', 'cp2', 'cp3'] as const;
const WEB = webDeployment({ replicas: PODS, image: 'actorlet.test/busybox:1', probe: { periodSeconds: 5, timeoutSeconds: 30 } });
const assets = process.env.KUBEBUILDER_ASSETS_BEFORE;
/** kubeadm takes clusters of its own version, and of the one before. */
const before = (version: string) =>
  assets === undefined ? version.replace(/^v1\.(\d+)\..*$/, (_, minor: string) => `v1.${Number(minor) - 1}.0`) : kubeadmVersion(assets);
const agent = assets === undefined ? 'actorlet' : 'kubelet';
const BACK = 'Back to the kubelet, and to actorlet again';
const ETCD = '/etc/kubernetes/pki/etcd';
const etcd = (call: string, body = '{}') =>
  `curl -sf --cacert ${ETCD}/ca.crt --cert ${ETCD}/server.crt --key ${ETCD}/server.key https://127.0.0.1:2379/v3/${call} -d '${body}'`;

let network: Network;
const nodes: KubeadmNode[] = [];
let seen: Seen;
let of: ReturnType<typeof images>;
let version = '';
const first = (): KubeadmNode => at(0);
function at(index: number): KubeadmNode {
  const node = nodes[index];
  if (node === undefined) throw new Error(`there is no node ${index}`);
  return node;
}
const make = async (index: number): Promise<KubeadmNode> => {
  const node = await KubeadmNode.make({ name: NODES[index] ?? '', number: index + 1, network, assets, ...of });
  nodes.push(node);
  if (agent === 'kubelet') await node.run(`rm ${DROP_IN}`);
  return node;
};
/** Four static pods and a kube-proxy on each, and two of CoreDNS. */
const systemReady = (count: number) => seen.podsReady('-n kube-system', 5 * count + 2);
/** Which node has etcd's leader, and who is asked. */
async function leader(asked: KubeadmNode): Promise<{ index: number; members: string[] }> {
  const { members } = JSON.parse(await asked.run(etcd('cluster/member/list'))) as { members: { ID: string; name: string }[] };
  const { leader: id } = JSON.parse(await asked.run(etcd('maintenance/status'))) as { leader: string };
  return { index: NODES.findIndex((name) => members.find((m) => m.ID === id)?.name === name), members: members.map((m) => m.ID) };
}
/** Pods of nobody's control plane: nothing of that may touch them. */
const others = () => seen.lives((pod) => !isStatic(pod));

describe.skipIf(whyNot !== undefined)('docs/cluster/kubeadm.md, with three control planes', () => {
  beforeAll(async () => {
    await buildDaemon();
    version = kubeadmVersion();
    of = images([{ version: before(version), assets }, { version }]);
    network = await Network.make();
    await make(0);
    seen = new Seen(first());
    writeFileSync(
      join(first().dir, 'cluster.yaml'),
      clusterFile({ version: before(version), address: '10.99.0.1', endpoint: '10.99.0.1:6443' }),
    );
    writeFileSync(join(first().dir, 'web.json'), JSON.stringify(WEB));
  }, TEST_MS);
  afterAll(async () => {
    for (const node of nodes) await node.dispose();
    network?.[Symbol.dispose]();
  }, TEST_MS);

  it(
    'has a cluster of the release before made, and a second and a third control plane join',
    async () => {
      await orLog(first(), first().run('kubeadm init --config cluster.yaml --node-name cp1 && cp /etc/kubernetes/admin.conf admin.conf'));
      await first().run(scriptOf('Make the cluster', 2));
      await seen.nodeIs('cp1', agent);
      const title = 'Join another control plane';
      const join_ = (await first().run(scriptOf(title))).split('\n').find((line) => line.startsWith('kubeadm join')) ?? '';
      expect(join_).toContain('--control-plane');
      for (const index of [1, 2]) {
        const node = await make(index);
        const address = `--apiserver-advertise-address 10.99.0.${index + 1}`;
        await orLog(node, node.run(`${join_} --ignore-preflight-errors=all --node-name ${node.name} ${address}`));
        await node.run('cp /etc/kubernetes/admin.conf admin.conf');
        await seen.nodeIs(node.name, agent);
        await first()
          .run(scriptOf('Make the cluster', 2))
          .catch(() => '');
      }
      expect(await first().run(scriptOf(title, 1))).toMatch(/cp1 .*\n.*cp2 .*\n.*cp3 /);
      await systemReady(3);
      expect((await leader(first())).members).toHaveLength(3);
      await first().run('kubectl apply -f web.json');
      await seen.podsReady('-l app=web', PODS);
    },
    3 * TEST_MS,
  );

  it(
    "goes on when etcd's leader is lost, with another leader, and takes it back",
    async () => {
      // The API server of a node asks its own etcd: the node that is asked here keeps it.
      const now = await leader(first());
      if (now.index === 0) await first().run(etcd('maintenance/transfer-leadership', JSON.stringify({ targetID: now.members[1] })));
      await wait('another leader than the first node', async () => (await leader(first())).index !== 0);
      const lost = await leader(first());
      const untouched = await others();
      const title = 'Lose the leader of etcd';
      await at(lost.index).run(scriptOf(title));
      await wait('a new leader', async () => ![-1, lost.index].includes((await leader(first())).index));
      await seen.up();
      // Its node asks its own API server, which has no etcd: what is scheduled to it waits.
      await first().run(
        `kubectl cordon ${NODES[lost.index]} && kubectl create configmap meanwhile && kubectl scale deployment web --replicas=${PODS + 1}`,
      );
      await seen.podsReady('-l app=web', PODS + 1);
      await at(lost.index).run(scriptOf(title, 1));
      await systemReady(3);
      const back = at(lost.index);
      await wait('the member to be of the cluster again', async () => (await leader(back)).members.length === 3);
      expect(await back.run('kubectl get configmap meanwhile -o name')).toBe('configmap/meanwhile');
      await first().run(`kubectl uncordon ${NODES[lost.index]}`);
      await new Seen(back).told(agent);
      expect(await others()).toEqual(expect.arrayContaining(untouched));
    },
    TEST_MS,
  );

  it(
    'is upgraded to the next release, node after node, then its agents, and no other pod changes',
    async () => {
      const untouched = (await others()).filter((line) => line.startsWith('default/'));
      for (const node of nodes) node.has();
      await orLog(first(), first().run(scriptOf('Upgrade', 0).replaceAll('VERSION', version)));
      for (const index of [1, 2]) await orLog(at(index), at(index).run(scriptOf('Upgrade', 1)));
      await systemReady(3);
      expect(
        await first().run("kubectl get pods -n kube-system -l component=kube-apiserver -o jsonpath='{.items[*].spec.containers[0].image}'"),
      ).toBe(NODES.map(() => `registry.k8s.io/kube-apiserver:${version}`).join(' '));
      expect(await others()).toEqual(expect.arrayContaining(untouched));
      if (agent === 'actorlet') return;
      const upgraded = await others();
      const restarts = async () => (await seen.lives(isStatic)).map(untimed);
      const statics = await restarts();
      for (const node of nodes) {
        await node.run(scriptOf(BACK, 1));
        await seen.nodeIs(node.name, 'actorlet');
        await new Seen(node).told();
      }
      expect(await others()).toEqual(upgraded);
      expect(await restarts()).toEqual(statics);
    },
    2 * TEST_MS,
  );
});
