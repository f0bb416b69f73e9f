/**
 * docs/cluster/kubeadm.md, block by block, on a machine with systemd: a cluster that kubeadm made with this agent as its kubelet, and its days.
 * Programs come from $KUBEBUILDER_ASSETS.
 */
import { execFile, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Seen, STATIC, untimed } from '../../../cluster/kubeadm/cluster.ts';
import { buildDaemon } from '../../daemon.ts';
import { program } from '../../lab/cluster/controlPlane.ts';
import { hasMachine, Machine } from '../machine.ts';
import { scriptOf, whyNot } from './document.ts';
import { archiveOf } from './images.ts';
import { webDeployment } from './web.ts';

const run = promisify(execFile);
const project = join(import.meta.dirname, '../../../..');
if (whyNot !== undefined) console.warn(`kubeadm is not tried: ${whyNot}`);

const id = randomBytes(4).toString('hex');
const folder = join(project, '.cache', `kubeadm-${id}`);
const vm = new Machine(`kubeadm-${id}`, { memory: '3G' });
const LONG_MS = 600_000;
const PODS = 12;

/** User-mode Linux has neither cpuset nor modules: kubeadm's checks of the kernel fail there. */
const SHELL = `set -e
export HOME=/root KUBECONFIG=/root/.kube/config
cd /root/debs
sudo() { "$@"; }
apt() { shift; dpkg -i --force-depends --force-confold "$@" 2>&1; }
kubeadm() {
  case $1 in
    init) command kubeadm "$@" --node-name "$(hostname)" ;;
    upgrade) command kubeadm "$@" --ignore-preflight-errors=all ;;
    *) command kubeadm "$@" ;;
  esac
}
`;
const shell = (script: string, o: { keep?: boolean; timeoutMs?: number } = {}): Promise<string> =>
  vm.run(`${SHELL}${script}`, { timeoutMs: LONG_MS, ...o });
const block = (title: string, index = 0): Promise<string> => shell(scriptOf(title, index));

const seen = new Seen({ run: shell });
/** etcd, API server, controller manager, scheduler, kube-proxy, two of CoreDNS. */
const systemReady = () => seen.podsReady('-n kube-system', 7);
const webReady = () => seen.podsReady('-l app=web', PODS);
const lives = () => seen.lives();
const withoutStatic = (all: readonly string[]) => all.filter((line) => !STATIC.test(line.split('/')[1] ?? ''));

/** A slow machine renews no lease in time: one of each is enough here, the node is not given up, and kubeadm waits longer. */
const CLUSTER = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration: {ignorePreflightErrors: [all]}
timeouts: {controlPlaneComponentHealthCheck: 9m, kubernetesAPICall: 9m, kubeletHealthCheck: 9m, etcdAPICall: 9m, tlsBootstrap: 9m}
---
${scriptOf('cluster.yaml')}kubernetesVersion: VERSION
etcd: {local: {extraArgs: [{name: unsafe-no-fsync, value: "true"}]}}
controllerManager: {extraArgs: [{name: leader-elect, value: "false"}, {name: node-monitor-grace-period, value: 10m}]}
scheduler: {extraArgs: [{name: leader-elect, value: "false"}]}
`;
const UNIT =
  '[Unit]\nDescription=kubelet: The Kubernetes Node Agent\n[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\nStartLimitInterval=0\nRestartSec=10\n[Install]\nWantedBy=multi-user.target\n';
/** As kubeadm's package has it. */
const DROP_IN = `[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`;
const WEB = webDeployment({ replicas: PODS, image: 'localhost/busybox:1', probe: { periodSeconds: 5, timeoutSeconds: 5 } });

describe.skipIf(whyNot !== undefined)('docs/cluster/kubeadm.md', () => {
  beforeAll(async () => {
    if (!hasMachine) throw new Error('the machine of these tests is not there: npm run e2e:setup');
    await buildDaemon();
    mkdirSync(folder, { recursive: true });
    await run('sh', [join(project, 'scripts/deb.sh'), join(folder, 'debs'), '--as-built'], { cwd: project, timeout: 240_000 });
    for (const name of ['kubeadm', 'kubelet', 'kubectl'] as const) copyFileSync(program(name), join(folder, name));
    const version = execFileSync(program('kubeadm'), ['version', '-o', 'short'], { encoding: 'utf8' }).trim();
    const listed = execFileSync(program('kubeadm'), ['config', 'images', 'list', '--kubernetes-version', version], { encoding: 'utf8' });
    const images = listed.trim().split('\n');
    for (const [index, image] of images.entries()) {
      const archive = archiveOf(image);
      if (archive !== undefined) writeFileSync(join(folder, `${index}.tar`), archive);
    }
    const share = `/share/${relative(project, folder)}`;
    const put = (path: string, input: string) => vm.run(`mkdir -p $(dirname ${path}) && cat >${path}`, { input });
    await vm.run(`cp ${share}/kubeadm ${share}/kubelet ${share}/kubectl /usr/bin/ && cp -r ${share}/debs /root/`, { timeoutMs: LONG_MS });
    await vm.run(`for tar in ${share}/*.tar; do ctr -n k8s.io images import $tar; done`, { timeoutMs: LONG_MS });
    const pause = images.find((image) => image.includes('/pause:'));
    await vm.run(
      `ctr -n k8s.io images tag localhost/pause:3 ${pause} && rm -rf /opt/cni && mkdir -p /opt/cni && ln -s /usr/lib/cni /opt/cni/bin`,
    );
    // Kubernetes' kubelet does not start without the speed of a processor, which user-mode Linux does not tell.
    await vm.run(
      "sed 's/^model name.*/&\\ncpu MHz\\t\\t: 2000.000/' /proc/cpuinfo >/root/cpuinfo && mount --bind /root/cpuinfo /proc/cpuinfo",
    );
    await put('/etc/systemd/system/kubelet.service', UNIT);
    await put('/etc/systemd/system/kubelet.service.d/10-kubeadm.conf', DROP_IN);
    await put('/root/debs/cluster.yaml', CLUSTER.replace('VERSION', version));
    await put('/root/debs/web.json', JSON.stringify(WEB));
  }, LONG_MS);
  afterAll(async () => {
    await vm.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  it('has a cluster made, with addons, and pods of a Deployment Ready', async () => {
    await block('Install');
    expect(await block('Make the cluster')).toContain('control-plane');
    expect(await block('Make the cluster', 1)).toContain('API');
    await block('Make the cluster', 2);
    await seen.nodeIs('node', 'actorlet');
    await shell('kubectl apply -f web.json');
    await systemReady();
    await webReady();
  }, 1_500_000);

  it('has certificates renewed, the node upgraded, and nothing else changed', async () => {
    const before = await lives();
    await block('Renew certificates');
    await systemReady();
    expect(await shell('kubeadm certs check-expiration')).toContain('apiserver');
    await block('Upgrade', 1);
    await block('Upgrade', 2);
    await seen.told();
    const others = (all: readonly string[]) => all.filter((line) => line.startsWith('default/'));
    expect(others(await lives())).toEqual(others(before));
  }, 1_500_000);

  it('has the node given back to the kubelet and taken over, three times, without a restart or a flip', async () => {
    let before = await lives();
    const title = 'Back to the kubelet, and to actorlet again';
    for (let turn = 0; turn < 3; turn++) {
      await block(title);
      await seen.nodeIs('node', 'kubelet');
      // The kubelet gives static pods that it never ran UIDs of its own, and runs them anew. It probes those that it ran before they are Ready.
      await systemReady();
      await seen.told('kubelet');
      const now = await lives();
      expect(withoutStatic(now), `turn ${turn}, the kubelet`).toEqual(withoutStatic(before));
      if (turn > 0) expect(now.map(untimed), `turn ${turn}, the kubelet`).toEqual(before.map(untimed));
      before = now;
      await block(title, 1);
      await seen.nodeIs('node', 'actorlet');
      await seen.told();
      expect(await lives(), `turn ${turn}, actorlet`).toEqual(before);
    }
  }, 1_500_000);

  it('has the node drained, rebooted, and its pods back', async () => {
    const title = 'Drain a node, and reboot it';
    const [drain, back] = [scriptOf(title), scriptOf(title, 1)];
    expect(drain).toContain('sudo systemctl reboot\n');
    await shell(drain.replace('sudo systemctl reboot\n', ''));
    // The machine ends at a reboot; started again it has its disk.
    await vm.powerOff();
    await vm.run('true', { keep: true, timeoutMs: LONG_MS });
    await seen.told();
    await shell(back);
    await systemReady();
    await webReady();
  }, 1_500_000);

  it('has the node reset, with no container, mount or state of it left', async () => {
    await block('Take a node out');
    expect(await vm.run('ctr -n k8s.io containers ls -q')).toBe('');
    expect(await vm.run('grep -c /var/lib/kubelet /proc/self/mountinfo || true')).toBe('0');
    expect(await vm.run('ls /var/lib/kubelet /etc/kubernetes/manifests')).not.toMatch(/pods|yaml/);
    expect(await vm.holds('systemctl is-active --quiet kubelet')).toBe(false);
  }, 1_500_000);
});
