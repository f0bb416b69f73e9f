/** The file of the CPU manager at the start (resources and volumes 2.2), and what the kernel says of the CPUs. */
import { readFileSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { readCpus, readNumaNodes } from '../../src/boot/dependencies/machine/cpuTopology.ts';
import { allCpus, countOf, threadsPerCore, topologyOf } from '../../src/machines/allocation/cpus/topology.ts';
import { fakeBoot, problemsOf, until } from './helpers.ts';
import { it } from './inFolder.ts';

/** This process keeps the OOM score and the limit it has. */
const OOM_SCORE = readFileSync('/proc/self/oom_score_adj', 'utf8').trim();
const OPEN_FILES = /Max open files\s+\d+\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? '1024';
const quiet = (dir: string, ...more: string[]) => [
  '--fail-swap-on=false',
  '--cgroups-per-qos=false',
  '--enforce-node-allocatable=none',
  '--enable-server=false',
  '--read-only-port=0',
  '--healthz-port=0',
  `--oom-score-adj=${OOM_SCORE}`,
  `--max-open-files=${OPEN_FILES}`,
  `--root-dir=${dir}/root`,
  ...more,
];
const NONE = '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}';
const STATIC = ['--cpu-manager-policy=static', '--reserved-cpus=0'];

describe('the state file', () => {
  it('writes that nothing is allocated where nothing is, and does so once', async ({ dir }) => {
    for (let i = 0; i < 2; i++) {
      const run = fakeBoot(quiet(dir.path));
      await until('it runs', () => run.nodeConfig() !== undefined);
      run.emit('SIGTERM');
      expect(await run.code).toBe(0);
      expect(readFileSync(`${dir.path}/root/cpu_manager_state`, 'utf8')).toBe(NONE);
    }
  });

  it('of another policy ends the start, with what to do (trap 25)', async ({ dir }) => {
    const file = dir.write('root/cpu_manager_state', NONE);
    const run = fakeBoot(quiet(dir.path, ...STATIC));
    expect(await run.code).toBe(1);
    expect(run.stderr()).toContain('configured policy "static" differs from state checkpoint policy "none"');
    expect(run.stderr()).toContain(`please drain this node and delete the CPU manager checkpoint file "${file}" before restarting Kubelet`);
    expect(run.nodeConfig()).toBeUndefined();
    expect(readFileSync(file, 'utf8')).toBe(NONE);
  });

  it('is not made by policy static before the CPU manager runs', async ({ dir }) => {
    const run = fakeBoot(quiet(dir.path, ...STATIC));
    await until('it runs', () => run.nodeConfig() !== undefined);
    run.emit('SIGTERM');
    expect(await run.code).toBe(0);
    expect(() => readFileSync(`${dir.path}/root/cpu_manager_state`)).toThrow('ENOENT');
  });

  it('is not got to where CPUs are reserved that are not there', async ({ dir }) => {
    const run = fakeBoot(quiet(dir.path, '--cpu-manager-policy=static', '--reserved-cpus=0,9999'));
    expect(await run.code).toBe(1);
    expect(run.stderr()).toContain('reservedSystemCPUs: 9999 of 0,9999 are not there');
  });
});

describe('the policy', () => {
  it("static needs CPUs that stay the system's", async () => {
    const problems = await problemsOf([], 'cpuManagerPolicy: static\n');
    expect(problems).toEqual([expect.stringContaining('cpuManagerPolicy (--cpu-manager-policy): static needs cpu in systemReserved')]);
    expect(await problemsOf([], 'cpuManagerPolicy: static\nsystemReserved: {cpu: 500m}\n')).toEqual([]);
  });
  it('has only options that are there', async () => {
    const body = 'cpuManagerPolicyOptions: {full-pcpus-only: "true", align: "true", align-by-socket: "true"}\n';
    expect(await problemsOf([], body)).toEqual([
      expect.stringContaining('cpuManagerPolicyOptions.align: unknown CPU Manager Policy option: "align"'),
      expect.stringContaining('cpuManagerPolicyOptions.align-by-socket: CPU Manager Policy Alpha-level Options not enabled'),
    ]);
  });
});

describe('the NUMA nodes of this machine', () => {
  it('are told by the kernel', () => {
    const nodes = readNumaNodes();
    expect(nodes.length).toBeGreaterThan(0);
    expect(nodes.reduce((sum, node) => sum + node.memoryBytes, 0)).toBeGreaterThan(0);
  });
  it('are read with holes in their numbers, without memory, with huge pages, and with caches that a part of them shares', ({ dir }) => {
    dir.write('cpu/online', '0-3\n');
    for (const id of [0, 1, 2, 3]) {
      dir.write(`cpu/cpu${id}/topology/physical_package_id`, '0\n');
      dir.write(`cpu/cpu${id}/topology/thread_siblings_list`, `${id}\n`);
      dir.write(`cpu/cpu${id}/cache/index2/level`, '2\n');
      for (const [file, text] of [
        ['level', '3'],
        ['id', String(4 + Math.floor(id / 2))],
        ['shared_cpu_list', id < 2 ? '0-1' : '2-3'],
      ] as const)
        dir.write(`cpu/cpu${id}/cache/index3/${file}`, `${text}\n`);
    }
    dir.write('node/node0/cpulist', '0-3\n');
    dir.write('node/node0/meminfo', 'Node 0 MemTotal:         1024 kB\nNode 0 MemFree: 1 kB\n');
    dir.write('node/node0/distance', '10 21\n');
    dir.write('node/node0/hugepages/hugepages-2048kB/nr_hugepages', '3\n');
    dir.write('node/node4/cpulist', '\n');
    expect(readNumaNodes(dir.path)).toEqual([
      { id: 0, memoryBytes: 1024 * 1024, hugePages: [{ pageBytes: 2 * 1024 * 1024, count: 3 }], distances: [10, 21] },
      { id: 4, memoryBytes: 0, hugePages: [], distances: null },
    ]);
    expect(readCpus(dir.path).map((c) => c.cache)).toEqual([4, 4, 5, 5]);
  });
});

describe('the CPUs of this machine', () => {
  it('are told by the kernel', () => {
    const cpus = readCpus();
    expect(cpus.length).toBeGreaterThan(0);
    for (const cpu of cpus) expect(cpu.siblings).toContain(cpu.id);
    expect(countOf(topologyOf(cpus), 'socket')).toBeGreaterThan(0);
  });
  it('are read as they lie: two sockets of a core of two threads, one of them offline', ({ dir }) => {
    dir.write('cpu/online', '0-1,3\n');
    for (const [id, socket, siblings] of [
      [0, 0, '0,2'],
      [1, 1, '1,3'],
      [3, 1, '1,3'],
    ] as const) {
      dir.write(`cpu/cpu${id}/topology/physical_package_id`, `${socket}\n`);
      dir.write(`cpu/cpu${id}/topology/thread_siblings_list`, `${siblings}\n`);
    }
    dir.write('node/node0/cpulist', '0,2\n');
    dir.write('node/node1/cpulist', '1,3\n');
    const topology = topologyOf(readCpus(dir.path));
    expect(topology.cpus).toEqual([
      { id: 0, core: 0, socket: 0, node: 0, cache: 0 },
      { id: 1, core: 1, socket: 1, node: 1, cache: 1 },
      { id: 3, core: 1, socket: 1, node: 1, cache: 1 },
    ]);
    expect([allCpus(topology), threadsPerCore(topology)]).toEqual([[0, 1, 3], 1]);
  });
});
