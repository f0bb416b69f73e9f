/** Days of docs/cluster/kubeadm.md, block by block, on nodes in namespaces of this machine (`node.ts`). Programs come from $KUBEBUILDER_ASSETS. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildDaemon } from '../../e2e/daemon.ts';
import { scriptOf, whyNot } from '../../e2e/vm/kubeadm/document.ts';
import { webDeployment } from '../../e2e/vm/kubeadm/web.ts';
import {
  clusterFile,
  containersOf,
  holds,
  images,
  isStatic,
  kubeadmVersion,
  orLog,
  type PodSeen,
  resolvesNames,
  Seen,
  TEST_MS,
  untimed,
  wait,
} from './cluster.ts';
import { KubeadmNode, Network } from './node.ts';
import { CONTAINERS, KEPT, SHAPES_NEED, STATIC_SHAPES, WORKLOADS } from './workloads.ts';

const PODS = 8;
const SETTLED_MS = 20_000;
if (whyNot !== undefined) console.warn(`kubeadm is not tried: ${whyNot}`);

let network: Network;
let first: KubeadmNode;
let worker: KubeadmNode | undefined;
let seen: Seen;
let of: ReturnType<typeof images>;
const block = (title: string, index = 0): Promise<string> => first.run(scriptOf(title, index));
/** etcd, API server, controller manager, scheduler, three static pods of others, two of CoreDNS, and a kube-proxy on each node. */
const systemReady = (nodes = 1): Promise<unknown> => seen.podsReady('-n kube-system', 6 + Object.keys(STATIC_SHAPES).length + nodes);
/** Of pods that no change of the control plane may touch. */
const lives = () => seen.lives((pod) => !isStatic(pod));
const WEB = webDeployment({ replicas: PODS, image: 'actorlet.test/busybox:1', probe: { periodSeconds: 2, timeoutSeconds: 20 } });
const LIST = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: WORKLOADS });
/** What a Service answers, asked on the node and in a pod, where its name resolves. Empty: nothing. */
const askService = async (): Promise<string[]> => {
  const ip = await first.run("kubectl get service web -o jsonpath='{.spec.clusterIP}'");
  const byName = resolvesNames ? `nslookup web.default.svc.cluster.local | grep -qw ${ip} && ` : '';
  const inPod = `${byName}printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 5 ${ip} 80 | tail -n 1`;
  const asks = [`curl -sf --max-time 5 http://${ip}/`, `kubectl exec agent-on-the-net -- sh -c "${inPod}"`];
  return Promise.all(asks.map((ask) => first.run(ask).catch(() => '')));
};

describe.skipIf(whyNot !== undefined)('docs/cluster/kubeadm.md', { timeout: 3 * TEST_MS }, () => {
  beforeAll(async () => {
    await buildDaemon();
    const version = kubeadmVersion();
    of = images([{ version }]);
    network = await Network.make();
    first = await KubeadmNode.make({ name: 'cp', number: 1, network, ...of });
    seen = new Seen(first);
    writeFileSync(join(first.dir, 'cluster.yaml'), clusterFile({ version, address: '10.99.0.1' }));
    writeFileSync(join(first.dir, 'web.json'), JSON.stringify(WEB));
    writeFileSync(join(first.dir, 'workloads.json'), LIST);
    for (const [name, pod] of Object.entries(STATIC_SHAPES)) writeFileSync(join(first.dir, `${name}.json`), JSON.stringify(pod));
  }, TEST_MS);
  afterAll(async () => {
    await worker?.dispose();
    await first?.dispose();
    network?.[Symbol.dispose]();
  }, TEST_MS);

  it('has a cluster made, with addons, and pods of a Deployment Ready', async () => {
    await orLog(first, first.run('kubeadm init --config cluster.yaml --node-name cp && cp /etc/kubernetes/admin.conf admin.conf'));
    await block('Make the cluster', 2);
    await seen.nodeIs('cp', 'actorlet');
    const shapes = Object.keys(STATIC_SHAPES).map((name) => `cp ${name}.json /etc/kubernetes/manifests/${name}.yaml`);
    await first.run(`${SHAPES_NEED}${shapes.join('\n')}\nkubectl apply -f web.json`);
    await systemReady();
    await seen.podsReady('-l app=web', PODS);
  });

  it('has a worker join, which runs pods whose logs are had, and leave', async () => {
    const title = 'Join a worker';
    worker = await KubeadmNode.make({ name: 'w1', number: 2, network, ...of });
    const join = (await block(title)).split('\n').find((line) => line.startsWith('kubeadm join')) ?? '';
    await orLog(worker, worker.run(`${join} --ignore-preflight-errors=all --node-name w1`));
    await wait('w1 to be a node', async () => /^w1 /m.test(await block(title, 1)));
    await seen.nodeIs('w1', 'actorlet');
    await systemReady(2);
    const there = JSON.stringify({ spec: { nodeName: 'w1', terminationGracePeriodSeconds: 1 } });
    await first.run(
      `kubectl run there --image=actorlet.test/busybox:1 --overrides='${there}' -- sh -c 'echo from the worker; sleep 1000000'`,
    );
    await seen.podsReady('-l run=there', 1);
    expect(await first.run('kubectl logs there')).toBe('from the worker');
    expect(await first.run('kubectl get csr')).toMatch(/kube-apiserver-client-kubelet\s+system:bootstrap:.*Approved,Issued/);
    await block(title, 2);
    await worker.run('kubeadm reset --force');
    expect(await worker.run('ctr -n k8s.io containers ls -q')).toBe('');
    await worker.dispose();
    worker = undefined;
    await systemReady();
  });

  it('has the node join anew with a token, which the approver of requests signs', async () => {
    const before = await seen.lives();
    await block('Join the node anew');
    const files = ['/etc/kubernetes/kubelet.conf', '/var/lib/kubelet/pki/kubelet-client-current.pem'];
    await wait('a new certificate', () => holds(first, files.map((file) => `test -s ${file}`).join(' && ')));
    expect(await block('Join the node anew', 1)).toMatch(/kube-apiserver-client-kubelet\s+system:bootstrap:.*Approved,Issued/);
    await seen.told();
    expect(await seen.lives()).toEqual(before);
  });

  it('has its certificates renewed, and no other pod changed', async () => {
    const before = await lives();
    await block('Renew certificates');
    await systemReady();
    await seen.told();
    expect(await first.run('kubeadm certs check-expiration')).toContain('apiserver');
    expect(await lives()).toEqual(before);
  });

  it('has no container started anew and no flip while the API server is away for a minute', async () => {
    const before = await lives();
    await block('The API server is away');
    await seen.up();
    await systemReady();
    await seen.told();
    expect(await lives()).toEqual(before);
  });

  it('has etcd restored: pods of before run on, those that came later end', async () => {
    const title = 'Back up etcd, and restore it';
    const before = await lives();
    await block(title);
    await seen.up();
    await systemReady();
    await seen.told();
    expect(await lives()).toEqual(before);
    await first.run(`kubectl create configmap later && kubectl scale deployment web --replicas=${PODS + 2}`);
    await seen.podsReady('-l app=web', PODS + 2);
    await block(title, 1);
    await seen.up();
    await systemReady();
    await seen.podsReady('-l app=web', PODS);
    const running = async () =>
      (await first.run("ctr -n k8s.io containers ls | grep -c 'actorlet.test/busybox:1' || true")) ===
      String(PODS + Object.keys(STATIC_SHAPES).length);
    await wait('the later pods to be gone', running);
    await seen.told();
    expect(await first.run('kubectl get configmap -o name')).not.toContain('later');
    expect(await lives()).toEqual(before);
    await block(title, 2);
    await systemReady();
  });

  it('answers on Services, whose rules kube-proxy keeps in iptables and in nftables', async () => {
    await first.run('kubectl apply -f workloads.json && kubectl run agent-on-the-net --image=actorlet.test/busybox:1 -- sleep 1000000');
    await seen.podsReady('-l run=agent-on-the-net', 1);
    const answered = () => wait('answers of pods', async () => (await askService()).every((name) => /^web-/.test(name)));
    await answered();
    expect(await first.run('iptables-save -t nat | grep -c KUBE-SVC')).toMatch(/^[1-9]/);
    const proxy = '-n kube-system -l k8s-app=kube-proxy';
    const changed = 'kubectl -n kube-system get configmap kube-proxy -o yaml | sed "s/mode: iptables/mode: nftables/" | kubectl apply -f -';
    await first.run(`${changed} && kubectl delete pod ${proxy} && kubectl rollout status -n kube-system daemonset/kube-proxy`);
    await seen.podsReady(proxy, 1);
    await wait('rules in nftables', () => holds(first, 'nft list table ip kube-proxy | grep -q web'));
    await answered();
    expect(await first.run('iptables-save -t nat | grep -c KUBE-SVC || true')).toBe('0');
    await first.run('kubectl delete pod agent-on-the-net --now');
  });

  it('has its client certificate renewed by actorlet, with a request that the approver signs', async () => {
    await wait('a second certificate', () => holds(first, 'test $(ls /var/lib/kubelet/pki/kubelet-client-2* | wc -l) -gt 1'));
    expect(await first.run('kubectl get csr')).toMatch(/kube-apiserver-client-kubelet\s+system:node:cp .*Approved,Issued/);
  });

  it('has the node given back to the kubelet and taken over, three times, without a restart or a flip', async () => {
    const isRunning = (pod: PodSeen) => pod.status.phase === 'Running';
    const isDone = (pod: PodSeen) => pod.metadata.labels?.app === 'worked';
    const running = async () => (await seen.pods('-A')).filter((pod) => !isDone(pod));
    // The kubelet believes what the API says of Ready of containers that have run for ten seconds, and probes younger ones first.
    const isOld = ({ status }: PodSeen) =>
      status.conditions?.every((c) => Date.now() - Date.parse(c.lastTransitionTime) > SETTLED_MS) === true;
    const settled = () =>
      wait('its pods to have run for a while', async () => {
        const pods = await running();
        return (
          pods.every((pod) => isRunning(pod) && isOld(pod)) &&
          (await seen.pods('-l app=worked')).every((pod) => pod.status.phase === 'Succeeded')
        );
      });
    await seen.podsReady('-l app=db', KEPT.length);
    await settled();
    const containers = (await running()).flatMap(containersOf).length;
    expect(containers).toBeGreaterThanOrEqual(CONTAINERS);
    const before = await lives();
    const title = 'Back to the kubelet, and to actorlet again';
    for (let turn = 0; turn < 3; turn++) {
      const statics = await seen.lives(isStatic);
      await block(title);
      await seen.nodeIs('cp', 'kubelet');
      await systemReady();
      // The kubelet gives static pods that it never ran UIDs of its own, and runs them anew. It probes those that it ran before they are Ready.
      await seen.told('kubelet');
      await settled();
      expect(await lives(), `turn ${turn}, kubelet`).toEqual(before);
      const withKubelet = await seen.lives(isStatic);
      if (turn > 0) expect(withKubelet.map(untimed), `static pods, turn ${turn}, kubelet`).toEqual(statics.map(untimed));
      await block(title, 1);
      await seen.nodeIs('cp', 'actorlet');
      await seen.told();
      expect(await lives(), `turn ${turn}, actorlet`).toEqual(before);
      expect(await seen.lives(isStatic), `static pods, turn ${turn}, actorlet`).toEqual(withKubelet);
    }
    for (const name of KEPT) expect(await first.run(`kubectl exec ${name} -c main -- cat /data/starts`)).toBe(name);
  });

  it('has the node reset, with no container, mount or state of it left', async () => {
    await block('Take a node out');
    expect(await first.run('ctr -n k8s.io containers ls -q')).toBe('');
    expect(await first.run('grep -c " /var/lib/kubelet/" /proc/self/mountinfo || true')).toBe('0');
    expect(await first.run('ls /var/lib/kubelet /etc/kubernetes/manifests')).not.toMatch(/pods|yaml/);
  });
});
