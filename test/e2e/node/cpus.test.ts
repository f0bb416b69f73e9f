/** CPUs that a container has alone, on a real containerd: what the kernel says of who may run where. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readCpus, readNumaNodes } from '../../../src/boot/dependencies/machine/cpuTopology.ts';
import { type CpuSet, formatCpuSet, parseCpuSet, sameSet, without } from '../../../src/machines/allocation/cpuSet.ts';
import { decodeCpuState } from '../../../src/machines/allocation/cpus/file.ts';
import { decodeMemoryState } from '../../../src/machines/allocation/memory/file.ts';
import { buildDaemon, createDaemon, type Daemon } from '../daemon.ts';
import { type Containerd, startContainerd } from '../lab/containerd.ts';
import { manifest, steady } from '../manifests.ts';
import { containers, exec, running } from '../runtime.ts';

const ONLINE: CpuSet = readCpus().map((c) => c.id);
/** Those that this machine lets us hand on; where it is less than all, or one only, nothing can be told apart. */
const ALLOWED = parseCpuSet(/^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '') ?? [];
const able = ONLINE.length > 1 && sameSet(ONLINE, ALLOWED);
/** Reconciliation comes within this, on a machine that does much else. */
const LOOK_MS = 60_000;
const RESERVED = ONLINE.slice(0, 1);
const FIRST_NODE = readNumaNodes()[0]?.id ?? 0;

let lab: Containerd;
let daemon: Daemon;

beforeAll(async () => {
  if (!able) return;
  await buildDaemon();
  lab = await startContainerd();
  daemon = await createDaemon(lab, {
    cpuManagerPolicy: 'static',
    reservedSystemCPUs: formatCpuSet(RESERVED),
    cpuManagerReconcilePeriod: '3s',
    // The memory manager, and alignment that refuses no pod.
    topologyManagerPolicy: 'best-effort',
    memoryManagerPolicy: 'Static',
    systemReserved: { memory: '412Mi' },
    evictionHard: { 'memory.available': '100Mi' },
    reservedMemory: [{ numaNode: FIRST_NODE, limits: { memory: '512Mi' } }],
  });
  await daemon.start();
});
afterAll(async () => {
  await daemon?.dispose();
  if (lab !== undefined) expect(await lab.stop()).toEqual([]);
});

/** What its cgroup says, as the container sees it, and what the kernel says of its first process. */
async function runsOn(pod: string): Promise<CpuSet> {
  const [held] = (await containers(lab, pod)).filter((c) => c.running);
  if (held === undefined) throw new Error(`no container of ${pod} runs`);
  const group = 'cat /sys/fs/cgroup/cpuset/cpuset.cpus 2>/dev/null || cat /sys/fs/cgroup/cpuset.cpus.effective';
  const { out } = await exec(lab, held.id, `${group}; sed -n "s/^Cpus_allowed_list:[[:space:]]*//p" /proc/1/status`);
  const [ofGroup, ofProcess] = out.split('\n').map((text) => parseCpuSet(text));
  if (ofGroup === undefined || ofGroup === null || ofProcess === undefined || ofProcess === null) throw new Error(`not told: ${out}`);
  expect(ofProcess).toEqual(ofGroup);
  return ofGroup;
}
/** NUMA nodes of its memory, as its cgroup says. */
async function memoryNodes(pod: string): Promise<readonly number[] | null> {
  const [held] = (await containers(lab, pod)).filter((c) => c.running);
  const group = 'cat /sys/fs/cgroup/cpuset/cpuset.mems 2>/dev/null || cat /sys/fs/cgroup/cpuset.mems';
  return parseCpuSet((await exec(lab, held?.id ?? '', group)).out.trim());
}
function state(): { shared: CpuSet; entries: Record<string, CpuSet>[] } {
  const read = decodeCpuState(readFileSync(join(daemon.rootDir, 'cpu_manager_state'), 'utf8'));
  if (!read.ok) throw new Error(read.why);
  return { shared: read.ledger.shared, entries: [...read.ledger.entries.values()].map((c) => Object.fromEntries(c)) };
}

describe.runIf(able)('a container of a Guaranteed pod that asks for a whole CPU', () => {
  const amounts = { cpu: '1', memory: '32Mi' };
  let own: CpuSet = [];

  it("has one alone that is not the system's, and one that ran before is off it at the next look", async () => {
    daemon.put('old.yaml', manifest('old', [steady()]));
    await daemon.phase('old', 'Running', 60_000);
    expect(await runsOn('old')).toEqual(ONLINE);
    daemon.put('alone.yaml', manifest('alone', [steady('main', { resources: { requests: amounts, limits: amounts } })]));
    const pod = await daemon.phase('alone', 'Running', 60_000);
    expect(pod.status.qosClass).toBe('Guaranteed');
    own = await runsOn('alone');
    expect(own).toHaveLength(1);
    expect(RESERVED).not.toContain(own[0]);
    const left = without(ONLINE, own);
    await daemon.wait('the older one to be off it', async () => sameSet(await runsOn('old'), left), { timeoutMs: LOOK_MS });
    expect(state()).toEqual({ shared: left, entries: [{ main: own }] });
    const node = readCpus().find((c) => c.id === own[0])?.node;
    expect(await memoryNodes('alone')).toEqual([node]);
    const read = decodeMemoryState(readFileSync(join(daemon.rootDir, 'memory_manager_state'), 'utf8'));
    expect(read.ok && [...read.ledger.entries.values()].map((c) => c.get('main'))).toEqual([
      [{ resource: 'memory', size: 32 * 2 ** 20, nodes: [node] }],
    ]);
  });

  it('keeps it over a restart of the daemon, and nothing starts anew', async () => {
    const before = await running(lab);
    const ledger = state();
    await daemon.end('SIGKILL');
    await daemon.start();
    await daemon.phase('alone', 'Running', 60_000);
    await daemon.phase('old', 'Running', 60_000);
    expect(state()).toEqual(ledger);
    expect([await runsOn('alone'), await runsOn('old')]).toEqual([own, without(ONLINE, own)]);
    expect(await running(lab)).toEqual(before);
  });

  it('is refused where none is left', async () => {
    const all = { cpu: String(ONLINE.length - 1), memory: '32Mi' };
    daemon.put('late.yaml', manifest('late', [steady('main', { resources: { requests: all, limits: all } })]));
    const pod = await daemon.phase('late', 'Failed', 60_000);
    // A static pod is critical: others would have to make room for it, and static ones never do.
    expect(pod.status.reason).toBe('UnexpectedAdmissionError');
    expect(state().entries).toEqual([{ main: own }]);
  });

  it('releases it when its pod is gone', async () => {
    daemon.remove('alone.yaml');
    await daemon.wait('all to be shared again', async () => sameSet(await runsOn('old'), ONLINE), { timeoutMs: LOOK_MS });
    expect(state()).toEqual({ shared: ONLINE, entries: [] });
  });

  it('is not started with another policy over the file', async () => {
    await daemon.end('SIGTERM');
    daemon.configure({ cpuManagerPolicy: 'none', reservedSystemCPUs: '' });
    await daemon.start({ ready: false });
    await daemon.wait('it to end', () => !daemon.alive(), { timeoutMs: LOOK_MS });
    expect(daemon.log()).toContain('please drain this node and delete the CPU manager checkpoint file');
  });
});
