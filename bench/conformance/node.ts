/** One node with a control plane and a proxy of services, whose agent is this daemon or the reference kubelet, one after the other. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SERVICE_RANGE } from '@actorlet/fleet/src/plane/flags.ts';
import { createDaemon, type Daemon, NODE_NAME } from '../../test/e2e/daemon.ts';
import { type ControlPlane, startControlPlane } from '../../test/e2e/lab/cluster/controlPlane.ts';
import { createReferenceKubelet, type ReferenceKubelet } from '../../test/e2e/lab/cluster/referenceKubelet.ts';
import { type Containerd, startContainerd } from '../../test/e2e/lab/containerd.ts';
import { until } from '../lib/report.ts';
import type { Witness } from '../lib/witness.ts';
import { importImages } from './images.ts';
import { DEVICES } from './ownNamespaces.ts';
import { asset, optionalAsset } from './programs.ts';

export const AGENTS = ['actorlet', 'kubelet'] as const;
export type Agent = (typeof AGENTS)[number];

/** Of a bridge of this node: an API server goes to no node on the loopback. */
export const NODE_IP = '198.18.77.1';
/** Specs ask there. */
const KUBELET_PORT = 10_250;
/** That of every kubelet: plugins of the specs come there, and drivers mount volumes there. */
const ROOT_DIR = '/var/lib/kubelet';
const ROOT_DIR_ARGS = [`--root-dir=${ROOT_DIR}`];
const BRIDGE = 'node0';
const DNS = 'coredns';
const DOMAIN = 'cluster.local';
/** Specs of dynamic resources go through the older versions of that API, too. */
const SERVED = ['--runtime-config=resource.k8s.io/v1beta1=true,resource.k8s.io/v1beta2=true'];
const READY = { timeoutMs: 120_000, everyMs: 200 };
const GONE = { timeoutMs: 60_000, everyMs: 500 };

export class SpecNode {
  readonly #lab: Containerd;
  readonly #plane: ControlPlane;
  readonly #daemon: Daemon;
  readonly #reference: ReferenceKubelet;
  /** Programs of a cluster that every node has. */
  readonly #beside: readonly ChildProcess[];
  /** Images of the specs that no stand-in is made for. */
  readonly missing: readonly string[];

  private constructor(o: {
    lab: Containerd;
    plane: ControlPlane;
    daemon: Daemon;
    reference: ReferenceKubelet;
    beside: readonly ChildProcess[];
    missing: readonly string[];
  }) {
    this.#lab = o.lab;
    this.#plane = o.plane;
    this.#daemon = o.daemon;
    this.#reference = o.reference;
    this.#beside = o.beside;
    this.missing = o.missing;
  }

  /** `flags`: more of them, for the API server. */
  static async start(o: { images: readonly string[]; dir: string; flags: readonly string[] }): Promise<SpecNode> {
    // An address that nobody answers at: a name of a registry is not found, and no call waits for the network.
    const { lab, missing } = await startRuntime({ ...o, route: ['unreachable', 'default'] });
    const plane = await startControlPlane({
      ...{ controllerManager: true, scheduler: true },
      flags: {
        'kube-apiserver': [
          ...[...SERVED, ...o.flags],
          ...['--bind-address=0.0.0.0', `--advertise-address=${NODE_IP}`, '--endpoint-reconciler-type=lease'],
          // Its certificate has this name, and not the address.
          '--service-account-jwks-uri=https://kubernetes.default.svc/openid/v1/jwks',
        ],
      },
    });
    const served = { enableServer: true, address: NODE_IP, authentication: { x509: { clientCAFile: plane.ca.certFile } } };
    const args = ['--kubeconfig', plane.nodeKubeconfig(NODE_NAME), `--node-ip=${NODE_IP}`, ...ROOT_DIR_ARGS];
    // A spec enters the mounts of the process that `pidof kubelet` finds.
    process.env.ACTORLET_PROCESS_NAME = 'kubelet';
    const daemon = await createDaemon(lab, { ...configuration(), ...served, port: KUBELET_PORT }, args);
    mkdirSync(daemon.rootDir, { recursive: true });
    execFileSync('mount', ['--bind', daemon.rootDir, ROOT_DIR], { stdio: 'pipe' });
    const reference = await createReferenceKubelet({ plane, daemon, port: KUBELET_PORT });
    return new SpecNode({ lab, plane, daemon, reference, beside: [...startProxy(plane, o.dir), ...startDns(plane, o.dir)], missing });
  }

  get kubeconfig(): string {
    return this.#plane.adminKubeconfig;
  }

  /** What an observer with this folder is started with, so that this witness sees it. */
  witnessed(witness: Witness, dir: string, own: string): ReturnType<Witness['before']> {
    return witness.before({ dir, own, plane: this.#plane, socket: this.#lab.socket });
  }

  log(agent: Agent): string {
    return agent === 'kubelet' ? this.#reference.log() : this.#daemon.log();
  }

  /** Starts an agent, and waits until pods can be made. */
  async on(agent: Agent): Promise<void> {
    if (agent === 'actorlet') await this.#daemon.start();
    else await this.#reference.start({ nodeIp: NODE_IP, config: { address: NODE_IP, ...configuration() }, args: ROOT_DIR_ARGS });
    await until('the service account', async () => ((await this.#plane.hasAccount()) ? true : undefined), READY);
    await until('the node to be Ready', async () => ((await this.#isReady()) ? true : undefined), READY);
  }

  /** Of the reference kubelet, while that is the agent. */
  get kubeletPid(): number | undefined {
    return this.#reference.pid;
  }

  /** Until what the specs made has gone. */
  async clear(): Promise<void> {
    const gone = async () => ((await this.#plane.kubectl('get', 'pods', '-A', '-o', 'name')).trim() === '' ? true : undefined);
    // A spec that was cut off leaves its namespace.
    await this.#removeNamespaces();
    await until('pods of the specs to go', gone, GONE).catch((error: unknown) => process.stderr.write(`${String(error)}\n`));
  }

  async off(agent: Agent): Promise<void> {
    await (agent === 'actorlet' ? this.#daemon : this.#reference).end('SIGTERM');
  }

  /** What could not be removed. */
  async stop(): Promise<string[]> {
    await this.#reference.end('SIGTERM');
    await this.#daemon.dispose();
    for (const child of this.#beside) {
      child.kill('SIGTERM');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    }
    await this.#plane.stop();
    const left = await this.#lab.stop();
    await this.#reference.dispose();
    return left;
  }

  async #removeNamespaces(): Promise<void> {
    const { items } = JSON.parse(await this.#plane.kubectl('get', 'namespaces', '-o', 'json')) as {
      items: { metadata: { name: string; labels?: Record<string, string> } }[];
    };
    const made = items.filter(({ metadata }) => metadata.labels?.['e2e-framework'] !== undefined).map(({ metadata }) => metadata.name);
    if (made.length > 0) await this.#plane.kubectl('delete', 'namespace', '--wait=false', '--ignore-not-found', ...made);
  }

  async #isReady(): Promise<boolean> {
    const { spec, status } = JSON.parse(await this.#plane.kubectl('get', 'node', NODE_NAME, '-o', 'json')) as {
      spec: { taints?: object[] };
      status: { conditions: { type: string; status: string }[] };
    };
    return spec.taints === undefined && status.conditions.some((c) => c.type === 'Ready' && c.status === 'True');
  }
}

/** The address of the node, a containerd with the images that there are, and the cgroup of its pods. */
export async function startRuntime(o: { images: readonly string[]; dir: string; route: readonly string[] }): Promise<{
  lab: Containerd;
  /** Images that no stand-in is made for. */
  missing: readonly string[];
}> {
  for (const args of [
    ['link', 'add', BRIDGE, 'type', 'bridge'],
    ['addr', 'add', `${NODE_IP}/24`, 'dev', BRIDGE],
    ['link', 'set', BRIDGE, 'up'],
    // So the API server comes to webhooks: without a route a call ends before the proxy's rules.
    ['route', 'add', SERVICE_RANGE, 'dev', BRIDGE],
    ['route', 'add', ...o.route],
  ])
    execFileSync('ip', args, { stdio: 'pipe' });
  const lab = await startContainerd();
  chmodSync(lab.dir, 0o755);
  const devices = join(lab.dir, 'cdi');
  mkdirSync(devices, { recursive: true });
  execFileSync('mount', ['--bind', DEVICES, devices], { stdio: 'pipe' });
  const missing = importImages(o.images, { agnhost: asset('agnhost'), dir: o.dir, ctr: (...args) => lab.ctr(...args) });
  return { lab, missing };
}

/** The same for both agents. */
function configuration(): Record<string, unknown> {
  return {
    ...{ cgroupsPerQOS: true, podLogsDir: '/var/log/pods' },
    ...{ maxPods: 110, kubeAPIQPS: 50, kubeAPIBurst: 100 },
    ...(optionalAsset(DNS) === undefined ? {} : { clusterDNS: [NODE_IP], clusterDomain: DOMAIN }),
  };
}

/** Specs reach services where the program is there. */
function startProxy(plane: ControlPlane, dir: string): ChildProcess[] {
  return startBeside(dir, 'kube-proxy', [
    `--kubeconfig=${plane.adminKubeconfig}`,
    `--hostname-override=${NODE_NAME}`,
    '--cluster-cidr=10.128.0.0/9',
    '--proxy-mode=iptables',
    // These settings are of the whole machine, and a network namespace may not write them.
    ...['--conntrack-max-per-core=0', '--conntrack-tcp-timeout-established=0s', '--conntrack-tcp-timeout-close-wait=0s'],
  ]);
}

/** Pods of the specs resolve names of services where the program is there. */
function startDns(plane: ControlPlane, dir: string): ChildProcess[] {
  const file = join(dir, 'Corefile');
  const zones = `${DOMAIN} in-addr.arpa`;
  const kubernetes = `kubernetes ${zones} {\n    kubeconfig ${plane.adminKubeconfig}\n    pods insecure\n    ttl 5\n  }`;
  writeFileSync(file, `.:53 {\n  bind ${NODE_IP}\n  errors\n  ${kubernetes}\n}\n`);
  return startBeside(dir, DNS, [`-conf=${file}`]);
}

/** Nothing where the program is not there. */
function startBeside(dir: string, name: string, flags: readonly string[]): ChildProcess[] {
  const program = optionalAsset(name);
  if (program === undefined) return [];
  const log = openSync(join(dir, `${name}.log`), 'a');
  try {
    return [spawn(program, flags, { stdio: ['ignore', log, log], env: { PATH: `${process.env.PATH ?? ''}:/usr/sbin:/sbin` } })];
  } finally {
    closeSync(log);
  }
}
