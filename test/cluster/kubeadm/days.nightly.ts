/** Days of docs/cluster/kubeadm.md, block by block, on nodes in namespaces of this machine (`node.ts`). Programs come from $KUBEBUILDER_ASSETS. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildDaemon } from '../../e2e/daemon.ts';
import { program } from '../../e2e/lab/cluster/controlPlane.ts';
import { buildImages, PAUSE_IMAGE } from '../../e2e/lab/images.ts';
import { until } from '../../e2e/lab/ports.ts';
import { scriptOf, whyNot } from '../../e2e/vm/kubeadm/document.ts';
import { archiveOf } from '../../e2e/vm/kubeadm/images.ts';
import { webDeployment } from '../../e2e/vm/kubeadm/web.ts';
import { KubeadmNode, Network } from './node.ts';

const TEST_MS = 900_000;
const PODS = 8;
const SETTLED_MS = 20_000;
const WAIT_MS = 300_000;
if (whyNot !== undefined) console.warn(`kubeadm is not tried: ${whyNot}`);

interface Seen {
  metadata: { name: string; namespace: string; uid: string };
  spec: { nodeName?: string };
  status: {
    conditions?: { type: string; status: string; lastTransitionTime: string }[];
    containerStatuses?: { restartCount: number; containerID: string }[];
  };
}
interface NodeSeen {
  metadata: { name: string };
  status: { nodeInfo: { kubeletVersion: string }; conditions: { type: string; status: string }[] };
}

let network: Network;
let first: KubeadmNode;
let worker: KubeadmNode | undefined;
let of: { images: readonly Buffer[]; pauseImage: string; kubeadmsPause: string };
const block = (title: string, index = 0): Promise<string> => first.run(scriptOf(title, index));
const get = async <T>(what: string): Promise<T[]> => (JSON.parse(await first.run(`kubectl get ${what} -o json`)) as { items: T[] }).items;
const isReady = ({ status }: Seen | NodeSeen): boolean =>
  status.conditions?.some((c: { type: string; status: string }) => c.type === 'Ready' && c.status === 'True') === true;
const wait = (what: string, holds: () => Promise<boolean>): Promise<unknown> => until(what, holds, { timeoutMs: WAIT_MS, everyMs: 1_000 });
const podsReady = (of: string, count: number): Promise<unknown> =>
  wait(`${count} pods (${of}) to be Ready`, async () => {
    const seen = await get<Seen>(`pods ${of}`);
    return seen.length === count && seen.every(isReady);
  });
/** etcd, API server, controller manager, scheduler, two of CoreDNS, and a kube-proxy on each node. */
const systemReady = (nodes = 1): Promise<unknown> => podsReady('-n kube-system', 6 + nodes);
const nodeIs = (name: string, agent: 'actorlet' | 'kubelet'): Promise<unknown> =>
  wait(`${agent} to report`, async () =>
    (await get<NodeSeen>('nodes')).some(
      (n) => n.metadata.name === name && isReady(n) && n.status.nodeInfo.kubeletVersion.includes('+actorlet') === (agent === 'actorlet'),
    ),
  );
const STATIC = /^(?:etcd|kube-(?:apiserver|controller-manager|scheduler))-/;
/** What a restart or a flip of Ready would change. Each agent makes the mirror of a static pod anew: its Ready is as old as that. */
const lives = async (o: { statics?: boolean; since?: boolean } = {}): Promise<string[]> =>
  (await get<Seen>('pods -A'))
    .filter(({ metadata }) => o.statics !== false || !STATIC.test(metadata.name))
    .map(({ metadata, status }) => {
      const ready = status.conditions?.find((c) => c.type === 'Ready');
      const since = STATIC.test(metadata.name) || o.since === false ? '' : ready?.lastTransitionTime;
      const containers = status.containerStatuses?.map((c) => `${c.containerID} ${c.restartCount}`).join();
      return `${metadata.namespace}/${metadata.name} ${ready?.status} since ${since} ${containers}`;
    })
    .sort();

const CLUSTER = (version: string) => `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 10.99.0.1}
nodeRegistration: {ignorePreflightErrors: [all], kubeletExtraArgs: [{name: node-ip, value: 10.99.0.1}]}
timeouts: {controlPlaneComponentHealthCheck: 6m, kubernetesAPICall: 6m, kubeletHealthCheck: 6m, etcdAPICall: 6m, tlsBootstrap: 6m}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: ${version}
networking: {podSubnet: 10.99.0.0/16}
etcd: {local: {extraArgs: [{name: unsafe-no-fsync, value: "true"}]}}
controllerManager: {extraArgs: [{name: leader-elect, value: "false"}, {name: node-monitor-grace-period, value: 10m}]}
scheduler: {extraArgs: [{name: leader-elect, value: "false"}]}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: [none]
failCgroupV1: false
failSwapOn: false
evictionHard: {memory.available: "0%"}
imageGCHighThresholdPercent: 100
`;
const WEB = webDeployment({ replicas: PODS, image: 'actorlet.test/busybox:1', probe: { periodSeconds: 2, timeoutSeconds: 20 } });

describe.skipIf(whyNot !== undefined)('docs/cluster/kubeadm.md', () => {
  beforeAll(async () => {
    await buildDaemon();
    const version = execFileSync(program('kubeadm'), ['version', '-o', 'short'], { encoding: 'utf8' }).trim();
    const listed = execFileSync(program('kubeadm'), ['config', 'images', 'list', '--kubernetes-version', version], { encoding: 'utf8' });
    const names = listed.trim().split('\n');
    const built = buildImages();
    const images = [...names.flatMap((name) => archiveOf(name) ?? []), built.busybox, built.pause];
    network = await Network.make();
    of = { images, pauseImage: PAUSE_IMAGE, kubeadmsPause: names.find((name) => name.includes('/pause:')) ?? '' };
    first = await KubeadmNode.make({ name: 'cp', number: 1, network, ...of });
    writeFileSync(join(first.dir, 'cluster.yaml'), CLUSTER(version));
    writeFileSync(join(first.dir, 'web.json'), JSON.stringify(WEB));
  }, TEST_MS);
  afterAll(async () => {
    await worker?.dispose();
    await first?.dispose();
    network?.[Symbol.dispose]();
  }, TEST_MS);

  it(
    'has a cluster made, with addons, and pods of a Deployment Ready',
    async () => {
      await first
        .run('kubeadm init --config cluster.yaml --node-name cp && cp /etc/kubernetes/admin.conf admin.conf')
        .catch((error: unknown) => {
          throw new Error(`${String(error)}\n${first.log().split('\n').slice(-30).join('\n')}`);
        });
      await block('Make the cluster', 2);
      await nodeIs('cp', 'actorlet');
      await first.run('kubectl apply -f web.json');
      await systemReady();
      await podsReady('-l app=web', PODS);
    },
    TEST_MS,
  );

  it(
    'has a worker join, which runs pods whose logs are had, and leave',
    async () => {
      const title = 'Join a worker';
      worker = await KubeadmNode.make({ name: 'w1', number: 2, network, ...of });
      const join = (await block(title)).split('\n').find((line) => line.startsWith('kubeadm join')) ?? '';
      await worker.run(`${join} --ignore-preflight-errors=all --node-name w1`).catch((error: unknown) => {
        throw new Error(`${String(error)}\n${worker?.log().split('\n').slice(-30).join('\n')}`);
      });
      await wait('w1 to be a node', async () => /^w1 /m.test(await block(title, 1)));
      await nodeIs('w1', 'actorlet');
      await systemReady(2);
      const there = JSON.stringify({ spec: { nodeName: 'w1', terminationGracePeriodSeconds: 1 } });
      await first.run(
        `kubectl run there --image=actorlet.test/busybox:1 --overrides='${there}' -- sh -c 'echo from the worker; sleep 1000000'`,
      );
      await podsReady('-l run=there', 1);
      expect(await first.run('kubectl logs there')).toBe('from the worker');
      expect(await first.run('kubectl get csr')).toMatch(/kube-apiserver-client-kubelet\s+system:bootstrap:.*Approved,Issued/);
      await block(title, 2);
      await worker.run('kubeadm reset --force');
      expect(await worker.run('ctr -n k8s.io containers ls -q')).toBe('');
      await worker.dispose();
      worker = undefined;
      await systemReady();
    },
    TEST_MS,
  );

  it(
    'has the node join anew with a token, which the approver of requests signs',
    async () => {
      const before = await lives();
      await block('Join the node anew');
      const files = ['/etc/kubernetes/kubelet.conf', '/var/lib/kubelet/pki/kubelet-client-current.pem'];
      await wait('a new certificate', () =>
        first.run(files.map((file) => `test -s ${file}`).join(' && ')).then(
          () => true,
          () => false,
        ),
      );
      expect(await block('Join the node anew', 1)).toMatch(/kube-apiserver-client-kubelet\s+system:bootstrap:.*Approved,Issued/);
      await nodeIs('cp', 'actorlet');
      expect(await lives()).toEqual(before);
    },
    TEST_MS,
  );

  it(
    'has its certificates renewed, and no other pod changed',
    async () => {
      const before = await lives({ statics: false });
      await block('Renew certificates');
      await systemReady();
      expect(await first.run('kubeadm certs check-expiration')).toContain('apiserver');
      expect(await lives({ statics: false })).toEqual(before);
    },
    TEST_MS,
  );

  it(
    'has no container started anew and no flip while the API server is away for a minute',
    async () => {
      const before = await lives({ statics: false });
      await block('The API server is away');
      await wait('the API server', () =>
        first.run('kubectl get --raw /readyz').then(
          () => true,
          () => false,
        ),
      );
      await systemReady();
      await nodeIs('cp', 'actorlet');
      expect(await lives({ statics: false })).toEqual(before);
    },
    TEST_MS,
  );

  it(
    'has etcd restored: pods of before run on, those that came later end',
    async () => {
      const title = 'Back up etcd, and restore it';
      const before = await lives({ statics: false });
      const isUp = () =>
        wait('the API server', () =>
          first.run('kubectl get --raw /readyz').then(
            () => true,
            () => false,
          ),
        );
      await block(title);
      await isUp();
      await systemReady();
      expect(await lives({ statics: false })).toEqual(before);
      await first.run(`kubectl create configmap later && kubectl scale deployment web --replicas=${PODS + 2}`);
      await podsReady('-l app=web', PODS + 2);
      await block(title, 1);
      await isUp();
      await systemReady();
      await podsReady('-l app=web', PODS);
      const running = async () =>
        (await first.run("ctr -n k8s.io containers ls | grep -c 'actorlet.test/busybox:1' || true")) === String(PODS);
      await wait('the later pods to be gone', running);
      expect(await first.run('kubectl get configmap -o name')).not.toContain('later');
      expect(await lives({ statics: false })).toEqual(before);
    },
    TEST_MS,
  );

  it(
    'has the node given back to the kubelet and taken over, three times, without a restart or a flip',
    async () => {
      let before = await lives();
      const title = 'Back to the kubelet, and to actorlet again';
      // The kubelet believes what the API says of Ready of containers that have run for ten seconds, and probes younger ones first.
      const isOld = ({ status }: Seen) =>
        status.conditions?.every((c) => Date.now() - Date.parse(c.lastTransitionTime) > SETTLED_MS) === true;
      await wait('its pods to have run for a while', async () => (await get<Seen>('pods -A')).every(isOld));
      before = await lives();
      const isOther = (line: string) => !STATIC.test(line.split('/')[1] ?? '');
      for (let turn = 0; turn < 3; turn++) {
        for (const [index, agent] of (['kubelet', 'actorlet'] as const).entries()) {
          await block(title, index);
          await nodeIs('cp', agent);
          await systemReady();
          // The kubelet gives static pods that it never ran UIDs of its own, and so runs them anew.
          if (turn === 0 && agent === 'kubelet') {
            await wait('the static pods to be Ready for a while', async () => (await get<Seen>('pods -A')).every(isOld));
            before = [...before.filter(isOther), ...(await lives()).filter((line) => !isOther(line))].sort();
          }
          // The mirrors of static pods are new, and Ready with their first probe. Of other pods the time of Ready tells of a flip.
          const isSame = async () => JSON.stringify(await lives()) === JSON.stringify(before);
          await until('pods as before', isSame, { timeoutMs: 60_000, everyMs: 1_000 }).catch(() => {});
          expect(await lives(), `turn ${turn}, ${agent}`).toEqual(before);
        }
      }
    },
    TEST_MS,
  );

  it(
    'has the node reset, with no container, mount or state of it left',
    async () => {
      await block('Take a node out');
      expect(await first.run('ctr -n k8s.io containers ls -q')).toBe('');
      expect(await first.run('grep -c " /var/lib/kubelet/" /proc/self/mountinfo || true')).toBe('0');
      expect(await first.run('ls /var/lib/kubelet /etc/kubernetes/manifests')).not.toMatch(/pods|yaml/);
    },
    TEST_MS,
  );
});
