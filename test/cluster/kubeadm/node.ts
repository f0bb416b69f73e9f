/**
 * A node of a kubeadm cluster in namespaces of its own on this machine: processes, mounts, host name and network. It has a containerd,
 * and folders of its own in the place of those that a node keeps below /etc, /root, /run, /usr/share, /var/lib and /var/log. What a namespace
 * cannot have is an init system: a stand-in for systemctl runs the agent that the drop-ins say. `dispose` leaves nothing.
 */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { program } from '../../e2e/lab/cluster/controlPlane.ts';
import { cniConfig, containerdConfig } from '../../e2e/lab/config.ts';
import { until } from '../../e2e/lab/ports.ts';

const project = join(import.meta.dirname, '../../..');
/** kubeadm's own waits end before. */
const LONG_MS = 900_000;
/** Folders that get changes of this node's own. */
const OWN = ['/etc', '/root', '/usr/share', '/var/lib', '/var/log'];
/** The first process of a namespace takes up what others leave. */
const REAP = 'echo ready; while :; do sleep 1000 & wait $!; done';
/** Nobody has sudo there. These nodes have no modules, which kubeadm's checks look for, and etcd stays as it is. */
const AS_ROOT = `sudo() { "$@"; }
kubeadm() {
  case $1 in
    upgrade) command kubeadm "$@" --ignore-preflight-errors=all --etcd-upgrade=false ;;
    *) command kubeadm "$@" ;;
  esac
}
`;
export const DROP_IN = '/etc/systemd/system/kubelet.service.d/20-actorlet.conf';

/** Nobody has that address. CoreDNS ends where its name server leads back to itself. */
const NAME_SERVER = '10.99.255.254';

/** Runs what kubelet.service would with the drop-ins of kubeadm and actorlet. */
const systemctl = (dir: string): string => `#!/bin/bash
running() { kill -0 "$(cat ${dir}/pid 2>/dev/null)" 2>/dev/null; }
end() { ! running || { kill "$(cat ${dir}/pid)"; while running; do sleep 0.1; done; }; }
case "$*" in
  *restart*kubelet* | *start*kubelet*)
    end
    agent=${dir}/bin/kubelet
    [ ! -e ${DROP_IN} ] || agent=${project}/bin/actorlet
    [ ! -r /var/lib/kubelet/kubeadm-flags.env ] || . /var/lib/kubelet/kubeadm-flags.env
    [ ! -r /etc/default/kubelet ] || . /etc/default/kubelet
    setsid $agent --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf \\
      --config=/var/lib/kubelet/config.yaml $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS >>${dir}/agent.log 2>&1 </dev/null &
    echo $! >${dir}/pid ;;
  *stop*kubelet*) end ;;
  *is-active*kubelet*) running ;;
esac
`;

/** The bridge that nodes are at, in a network namespace of its own. */
export class Network implements Disposable {
  readonly #holder: ChildProcess;
  readonly pid: number;

  private constructor(holder: ChildProcess) {
    this.#holder = holder;
    this.pid = holder.pid ?? 0;
  }

  static async make(): Promise<Network> {
    const holder = spawn('unshare', ['-n', 'sh', '-c', 'echo ready; exec sleep infinity'], { stdio: ['ignore', 'pipe', 'inherit'] });
    await new Promise<void>((resolve) => holder.stdout.once('data', () => resolve()));
    const network = new Network(holder);
    execFileSync('nsenter', ['-t', String(network.pid), '-n', 'sh', '-c', 'ip link add nodes type bridge && ip link set nodes up']);
    return network;
  }

  [Symbol.dispose](): void {
    this.#holder.kill('SIGKILL');
  }
}

export class KubeadmNode {
  readonly name: string;
  readonly address: string;
  readonly dir: string;
  readonly #holder: ChildProcess;
  /** The first process of its namespaces, as this machine counts. */
  readonly #first: number;

  private constructor(o: { name: string; address: string; dir: string; holder: ChildProcess; first: number }) {
    this.name = o.name;
    this.address = o.address;
    this.dir = o.dir;
    this.#holder = o.holder;
    this.#first = o.first;
  }

  /** @param o.number From 1: it is 10.99.0.N, its pods have 10.99.N.0/24. */
  static async make(o: {
    name: string;
    number: number;
    network: Network;
    images: readonly Buffer[];
    pauseImage: string;
    kubeadmsPause: readonly string[];
    assets?: string | undefined;
  }): Promise<KubeadmNode> {
    const dir = mkdtempSync(join(tmpdir(), `kubeadm-${o.name}-`));
    const flags = ['-n', '-m', '-u', '-p', '--fork', '--kill-child', '--mount-proc', '--propagation', 'private'];
    const holder = spawn('unshare', [...flags, 'bash', '-c', REAP], { stdio: ['ignore', 'pipe', 'inherit'] });
    await new Promise<void>((resolve) => holder.stdout.once('data', () => resolve()));
    const first = Number(readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8').trim());
    const node = new KubeadmNode({ name: o.name, address: `10.99.0.${o.number}`, dir, holder, first });
    try {
      await node.#begin(o);
    } catch (error) {
      await node.dispose();
      throw error;
    }
    return node;
  }

  async #begin({
    number,
    network,
    images,
    pauseImage,
    kubeadmsPause,
    assets,
  }: {
    number: number;
    network: Network;
    images: readonly Buffer[];
    pauseImage: string;
    kubeadmsPause: readonly string[];
    assets?: string | undefined;
  }): Promise<void> {
    const { dir, name, address } = this;
    for (const folder of ['bin', 'cni', 'own', 'lab']) mkdirSync(join(dir, folder));
    this.has(assets);
    symlinkSync(join(project, 'bin/actorctl'), join(dir, 'bin/actorctl'));
    writeFileSync(join(dir, 'bin/systemctl'), systemctl(dir), { mode: 0o755 });
    const names = { dir, socket: '/run/containerd/containerd.sock', bridge: 'cni0', subnet: `10.99.${number}`, pauseImage };
    writeFileSync(join(dir, 'containerd.toml'), containerdConfig(names));
    writeFileSync(join(dir, 'cni/10-node.conflist'), cniConfig(names));
    for (const [i, image] of images.entries()) writeFileSync(join(dir, `${i}.tar`), image);
    const peer = `to-${name}`;
    await run('nsenter', [
      '-t',
      String(network.pid),
      '-n',
      'sh',
      '-c',
      `ip link add ${peer} type veth peer name eth0 netns ${this.#first} && ip link set ${peer} master nodes up`,
    ]);
    await this.run(`hostname ${name}
ip link set lo up
ip addr add ${address}/16 dev eth0
ip link set eth0 up
ip route add default dev eth0
mount -t tmpfs own ${dir}/own
for folder in ${OWN.join(' ')}; do
  mkdir -p ${dir}/own$folder ${dir}/own/work$folder
  mount -t overlay -o lowerdir=$folder,upperdir=${dir}/own$folder,workdir=${dir}/own/work$folder own $folder
done
mount -t tmpfs own /run
echo nameserver ${NAME_SERVER} >/etc/resolv.conf
echo "${address} ${name}" >>/etc/hosts
mkdir -p /run/containerd /etc/systemd/system/kubelet.service.d /usr/share/actorlet /var/lib/kubelet /var/log/pods
rm -rf /var/lib/kubelet/* /etc/kubernetes
mount --bind /var/lib/kubelet /var/lib/kubelet
mount --make-rshared /var/lib/kubelet
cp ${project}/packaging/kubeadm/20-actorlet.conf /usr/share/actorlet/
cp ${project}/packaging/kubeadm/20-actorlet.conf ${DROP_IN}
setsid containerd -c ${dir}/containerd.toml >>${dir}/containerd.log 2>&1 </dev/null &
until ctr version >/dev/null 2>&1; do sleep 0.2; done
for tar in ${dir}/*.tar; do ctr -n k8s.io images import $tar; done
for name in ${kubeadmsPause.join(' ')}; do ctr -n k8s.io images tag ${pauseImage} $name; done
rm ${dir}/*.tar`);
  }

  /** Its programs are those of that folder from now on: what a package would bring. */
  has(assets?: string): void {
    for (const name of ['kubeadm', 'kubelet', 'kubectl'] as const) {
      const path = join(this.dir, 'bin', name);
      rmSync(path, { force: true });
      symlinkSync(program(name, assets), path);
    }
  }

  /** Runs a script as root on it. Rejects with what it printed when it fails. */
  run(script: string): Promise<string> {
    const head = `set -e\nexport PATH=${this.dir}/bin:$PATH:/usr/sbin:/sbin HOME=/root KUBECONFIG=${this.dir}/admin.conf\ncd ${this.dir}\n${AS_ROOT}`;
    return run('nsenter', ['-t', String(this.#first), '-n', '-m', '-u', '-p', 'bash', '-c', `${head}${script}`]);
  }

  log(): string {
    return readFileSync(join(this.dir, 'agent.log'), 'utf8');
  }

  /** Ends its processes, and with them its mounts and networks. */
  async dispose(): Promise<void> {
    const containers = join(this.dir, 'state/io.containerd.runtime.v2.task/k8s.io');
    const ids = existsSync(containers) ? readdirSync(containers) : [];
    this.#holder.kill('SIGKILL');
    await until('its processes to end', () => !existsSync(`/proc/${this.#first}`), { timeoutMs: 60_000 });
    removeCgroups(ids);
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** Of containers, by their ids: they outlive the processes. */
function removeCgroups(ids: readonly string[]): void {
  for (const controller of readdirSync('/sys/fs/cgroup'))
    for (const id of ids) {
      const folder = join('/sys/fs/cgroup', controller, 'k8s.io', id);
      if (existsSync(folder)) rmdirSync(folder);
    }
}

function run(file: string, args: readonly string[]): Promise<string> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => key !== 'LD_LIBRARY_PATH' && !key.startsWith('VITEST')));
  return new Promise((resolve, reject) => {
    execFile(file, args, { timeout: LONG_MS, maxBuffer: 1 << 24, env }, (error, stdout, stderr) =>
      error === null ? resolve(stdout.trim()) : reject(new Error(`${args.at(-1)}: ${error.message}\n${stdout}${stderr}`)),
    );
  });
}
