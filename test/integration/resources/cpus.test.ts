/** CPUs that containers have alone, on a whole node of four CPUs in virtual time (resources and volumes 2.2). */
import { describe, expect } from 'vitest';
import { decodeCpuState } from '../../../src/machines/allocation/cpus/file.ts';
import type { CriRequest } from '../../../src/machines/wire/criCalls.ts';
import { create, createReady, drop, events, inApi, cluster as ofCluster, patch, waiting } from '../cluster/clusterPods.ts';
import { itWith } from '../onNode.ts';
import { pod as manifest, ROOT, type VirtualNode, virtualNode } from '../virtualNode.ts';

const FILE = `${ROOT}/cpu_manager_state`;
const PERIOD_MS = 10_000;
const STATIC = { cpuManagerPolicy: 'static', reservedSystemCPUs: '0' };
const node = () => virtualNode({ config: STATIC });
const it = itWith(node);
const cluster = () => ofCluster({ config: STATIC });

const whole = (cpu: string) => {
  const amounts = { cpu, memory: '64Mi' };
  return { requests: amounts, limits: amounts };
};
const guaranteed = (cpu: string, more: object = {}) => ({ ...more, container: { resources: whole(cpu) } });
/** Of the running container of that name. */
const runsOn = (h: VirtualNode, pod: string, container = 'main') =>
  h.running().find((c) => c.labels['io.kubernetes.pod.name'] === pod && c.name === container)?.resources?.cpusetCpus;
const state = (h: VirtualNode) => {
  const read = decodeCpuState(h.fs.textOf(FILE) ?? '');
  if (!read.ok) throw new Error(read.why);
  return { shared: read.ledger.shared, entries: [...read.ledger.entries.values()].map((c) => Object.fromEntries(c)) };
};
const figures = async (h: VirtualNode) =>
  (await h.metrics.render())
    .split('\n')
    .filter((line) => /^kubelet_(cpu_manager|container_aligned)_/.test(line))
    .sort();
const reason = (h: VirtualNode, name: string) => inApi(h, name)?.status;
const updates = (h: VirtualNode) =>
  h.calls.filter((c) => c.method === 'UpdateContainerResources').map((c) => (c.req as CriRequest<'UpdateContainerResources'>).linux);

describe('a container of a Guaranteed pod', () => {
  it('has the whole CPUs that it asks for alone, and no quota of time on them; 1500m share (trap 21)', async ({ h }) => {
    h.write('alone', manifest('alone', guaranteed('1')));
    h.write('odd', manifest('odd', guaranteed('1500m')));
    await h.until('both run', () => runsOn(h, 'alone-n1') && runsOn(h, 'odd-n1'));
    expect(runsOn(h, 'alone-n1')).toBe('1');
    expect(h.running('alone')[0]?.resources).toMatchObject({ cpuQuota: -1 });
    await h.advance(2 * PERIOD_MS);
    // All that is left, the system's among it.
    expect(runsOn(h, 'odd-n1')).toBe('0,2-3');
    expect(h.running('odd')[0]?.resources).toMatchObject({ cpuQuota: 150_000 });
    expect(state(h)).toEqual({ shared: [0, 2, 3], entries: [{ main: [1] }] });
    expect(h.violations).toEqual([]);
    expect(await figures(h)).toEqual([
      'kubelet_container_aligned_compute_resources_count{boundary="physical_cpu",scope="container"} 0',
      'kubelet_container_aligned_compute_resources_count{boundary="uncore_cache",scope="container"} 1',
      'kubelet_container_aligned_compute_resources_failure_count{boundary="physical_cpu",scope="container"} 0',
      'kubelet_cpu_manager_allocation_per_numa{numa_node="0"} 1',
      'kubelet_cpu_manager_exclusive_cpu_allocation_count 1',
      'kubelet_cpu_manager_pinning_errors_total 0',
      'kubelet_cpu_manager_pinning_requests_total 1',
      // Without the one that is the system's.
      'kubelet_cpu_manager_shared_pool_size_millicores 2000',
    ]);
  });

  it('keeps its CPUs when it starts again, and they come back when its pod is gone (trap 24)', async () => {
    await using h = await cluster();
    create(h, 'crashing', guaranteed('1', { life: 'run=1s,exit=1' }));
    await h.until('it has started again', () => (inApi(h, 'crashing')?.status.containerStatuses?.[0]?.restartCount ?? 0) >= 2);
    const sets = h.calls
      .filter((c) => c.method === 'CreateContainer')
      .map((c) => (c.req as CriRequest<'CreateContainer'>).config.linux?.resources?.cpusetCpus);
    expect(new Set(sets)).toEqual(new Set(['1']));
    expect(state(h).entries).toEqual([{ main: [1] }]);
    drop(h, 'pods/crashing');
    await h.until('gone', () => inApi(h, 'crashing') === undefined);
    await h.until('released', () => state(h).entries.length === 0, 3 * PERIOD_MS);
    expect(state(h).shared).toEqual([0, 1, 2, 3]);
  });

  it('keeps its CPUs over a restart of the daemon, and of the CPU manager', async ({ h }) => {
    h.write('a', manifest('a', guaranteed('1')));
    await h.until('a runs', () => runsOn(h, 'a-n1'));
    h.write('b', manifest('b', guaranteed('1')));
    await h.until('b runs', () => runsOn(h, 'b-n1'));
    const before = state(h);
    const ids = h.running().map((c) => c.id);
    await h.restart();
    h.kill('node/allocation/cpus');
    await h.advance(3 * PERIOD_MS);
    expect([runsOn(h, 'a-n1'), runsOn(h, 'b-n1')]).toEqual(['1', '2']);
    expect(state(h)).toEqual(before);
    expect(h.running().map((c) => c.id)).toEqual(ids);
    expect(h.violations).toEqual([]);
  });

  it('uses again what init containers held, and a sidecar keeps its own (trap 23)', async ({ h }) => {
    h.write(
      'reuse',
      manifest('reuse', { inits: [{ resources: whole('3') }], lives: { 'init-0': 'run=1s,exit=0' }, container: { resources: whole('3') } }),
    );
    await h.until('it runs', () => runsOn(h, 'reuse-n1'), 120_000);
    expect(runsOn(h, 'reuse-n1')).toBe('1-3');
    expect(state(h)).toEqual({ shared: [0], entries: [{ 'init-0': [1, 2, 3], main: [1, 2, 3] }] });
    h.remove('reuse');
    await h.until('gone', () => h.record('reuse') === undefined);
    const sidecar = { name: 'side', restartPolicy: 'Always', resources: whole('1') };
    h.write('side', manifest('side', { inits: [sidecar], container: { resources: whole('2') } }));
    await h.until('both run', () => runsOn(h, 'side-n1') && runsOn(h, 'side-n1', 'side'), 120_000);
    expect([runsOn(h, 'side-n1', 'side'), runsOn(h, 'side-n1')]).toEqual(['1', '2-3']);
  });
});

describe('what is left', () => {
  it('is where a container that ran before is confined to at the next look, and not sooner (trap 22)', async ({ h }) => {
    h.write('old', manifest('old'));
    await h.until('old runs', () => runsOn(h, 'old-n1'));
    expect(runsOn(h, 'old-n1')).toBe('0-3');
    // Right after a look.
    await h.until('looked', () => updates(h).length > 0, 2 * PERIOD_MS);
    h.write('alone', manifest('alone', guaranteed('1')));
    await h.until('alone runs', () => runsOn(h, 'alone-n1'), 5_000);
    expect([runsOn(h, 'alone-n1'), runsOn(h, 'old-n1')]).toEqual(['1', '0-3']);
    await h.until('confined', () => runsOn(h, 'old-n1') === '0,2-3', PERIOD_MS + 1_000);
    // Told once, and nothing but that.
    const told = updates(h).filter((linux) => linux?.cpusetCpus === '0,2-3');
    expect(told).toEqual([{ cpusetCpus: '0,2-3' }]);
    await h.advance(3 * PERIOD_MS);
    expect(updates(h).filter((linux) => linux?.cpusetCpus === '0,2-3')).toHaveLength(1);
    h.remove('alone');
    await h.until('widened', () => runsOn(h, 'old-n1') === '0-3', 4 * PERIOD_MS);
  });

  it('is tried again where the runtime refuses, and says so', async ({ h }) => {
    h.write('old', manifest('old'));
    await h.until('old runs', () => runsOn(h, 'old-n1'));
    h.faults.fault = (method) => (method === 'UpdateContainerResources' ? { kind: 'refuse', code: 2, details: 'not now' } : undefined);
    h.write('alone', manifest('alone', guaranteed('1')));
    await h.until('it says so', () => h.lines.some((l) => l.msg.includes('is not on CPUs 0,2-3 yet: not now')), 3 * PERIOD_MS);
    expect(runsOn(h, 'old-n1')).toBe('0-3');
    h.faults.fault = () => undefined;
    await h.until('confined', () => runsOn(h, 'old-n1') === '0,2-3', 3 * PERIOD_MS);
  });

  it('is told again when what was given up has had its effect after all', async ({ h }) => {
    h.write('old', manifest('old'));
    await h.until('old runs', () => runsOn(h, 'old-n1'));
    await h.until('looked', () => updates(h).length > 0, 2 * PERIOD_MS);
    h.faults.latencyMs.UpdateContainerResources = 60_000;
    h.write('alone', manifest('alone', guaranteed('1')));
    await h.until('alone runs', () => runsOn(h, 'alone-n1'));
    await h.advance(2 * PERIOD_MS);
    h.faults.latencyMs.UpdateContainerResources = 0;
    h.remove('alone');
    await h.advance(4 * 60_000);
    expect(updates(h).filter((linux) => linux?.cpusetCpus === '0,2-3')).toHaveLength(2);
    expect(runsOn(h, 'old-n1')).toBe('0-3');
    const told = updates(h).length;
    await h.advance(5 * PERIOD_MS);
    expect(updates(h)).toHaveLength(told);
  });

  // Found by seed 2701166: a call that was under way when the daemon died came after what the next one told.
  it('is told once more when what an earlier daemon asked for has had its effect', async ({ h }) => {
    h.write('old', manifest('old'));
    await h.until('old runs', () => runsOn(h, 'old-n1'));
    h.write('alone', manifest('alone', guaranteed('1')));
    await h.until('alone runs', () => runsOn(h, 'alone-n1'));
    h.faults.latencyMs.UpdateContainerResources = 60_000;
    await h.advance(PERIOD_MS);
    h.faults.latencyMs.UpdateContainerResources = 0;
    await h.crash();
    h.remove('alone');
    await h.boot();
    await h.until('told the rest', () => runsOn(h, 'alone-n1') === undefined && runsOn(h, 'old-n1') === '0-3', 6 * PERIOD_MS);
    await h.until('the late one came', () => runsOn(h, 'old-n1') === '0,2-3', 60_000);
    await h.until('corrected', () => runsOn(h, 'old-n1') === '0-3', 150_000);
  });
});

describe('a pod that asks for CPUs of its own', () => {
  it('is refused where no room is for it, and takes none from those that run', async () => {
    await using h = await cluster();
    await createReady(h, 'first', guaranteed('2'));
    create(h, 'second', guaranteed('2'));
    await h.until('refused', () => reason(h, 'second')?.phase === 'Failed');
    // Allocation comes before room, as in the reference.
    expect(reason(h, 'second')?.reason).toBe('UnexpectedAdmissionError');
    expect(state(h).entries).toEqual([{ main: [1, 2] }]);
  });

  it('is refused where whole cores are wanted and it asks for parts of one', async () => {
    const siblings = (id: number) => (id < 2 ? [0, 1] : [2, 3]);
    await using h = await ofCluster({
      config: { ...STATIC, reservedSystemCPUs: '0,1', cpuManagerPolicyOptions: { 'full-pcpus-only': 'true' } },
      cpus: [0, 1, 2, 3].map((id) => ({ id, socket: 0, siblings: siblings(id), node: 0 })),
    });
    create(h, 'half', guaranteed('1'));
    await h.until('refused', () => reason(h, 'half')?.phase === 'Failed');
    expect(reason(h, 'half')).toMatchObject({ reason: 'SMTAlignmentError' });
    expect(reason(h, 'half')?.message).toContain('requested 1 cpus not multiple cpus per core = 2');
    expect(events(h, 'SMTAlignmentError')).toHaveLength(1);
    await createReady(h, 'core', guaranteed('2'));
    expect(await figures(h)).toEqual([
      'kubelet_container_aligned_compute_resources_count{boundary="physical_cpu",scope="container"} 1',
      'kubelet_container_aligned_compute_resources_count{boundary="uncore_cache",scope="container"} 1',
      'kubelet_container_aligned_compute_resources_failure_count{boundary="physical_cpu",scope="container"} 1',
      'kubelet_cpu_manager_allocation_per_numa{numa_node="0"} 2',
      'kubelet_cpu_manager_exclusive_cpu_allocation_count 2',
      'kubelet_cpu_manager_pinning_errors_total 1',
      'kubelet_cpu_manager_pinning_requests_total 2',
      'kubelet_cpu_manager_shared_pool_size_millicores 0',
    ]);
    expect(runsOn(h, 'core')).toBe('2-3');
  });

  it('waits for a namesake that is on its way out', async ({ h }) => {
    h.write('web', manifest('web', { ...guaranteed('3'), spec: { terminationGracePeriodSeconds: 15 }, life: 'run=forever,term=ignore' }));
    await h.until('it runs', () => runsOn(h, 'web-n1'));
    const [before] = h.running('web');
    h.write('web', manifest('web', { ...guaranteed('2'), spec: { terminationGracePeriodSeconds: 15 } }));
    await h.until('the new one runs', () => h.running('web').some((c) => c.id !== before?.id), 60_000);
    expect(runsOn(h, 'web-n1')).toBe('1-2');
    await h.until('released', () => state(h).entries.length === 1, 3 * PERIOD_MS);
    expect(state(h)).toEqual({ shared: [0, 3], entries: [{ main: [1, 2] }] });
    expect(h.violations).toEqual([]);
  });

  it('is not let in before what it gets is on disk', async ({ h }) => {
    await h.until('there is a file', () => h.fs.has(FILE));
    h.fs.failing = (op, path) => (op === 'writeFile' && path.includes('cpu_manager_state') ? 'EIO' : undefined);
    h.write('alone', manifest('alone', guaranteed('1')));
    await h.until('it says so', () => h.actor('node/allocation/cpus')?.reason === 'SaveFailed', 20_000);
    await h.advance(20_000);
    expect(h.running('alone')).toEqual([]);
    h.fs.failing = () => undefined;
    await h.until('it runs', () => runsOn(h, 'alone-n1') === '1', 60_000);
  });

  it('has its cpu not changed in place', async () => {
    await using h = await cluster();
    await createReady(h, 'fixed', guaranteed('1'));
    const [container] = inApi(h, 'fixed')?.spec.containers ?? [];
    patch(h, 'pods/fixed', { spec: { containers: [{ ...container, resources: whole('2') }] } });
    await h.until('refused', () =>
      inApi(h, 'fixed')?.status.conditions?.some((c) => c.type === 'PodResizePending' && c.reason === 'Infeasible'),
    );
    expect(runsOn(h, 'fixed')).toBe('1');
    expect(waiting(h, 'fixed')).toBeUndefined();
  });
});

describe('the state of another policy', () => {
  it('ends the CPU manager and in the end the node, with what to do', async () => {
    await using h = await virtualNode({
      config: STATIC,
      ready: false,
      before: (n) => {
        n.fs.makeDir(ROOT);
        n.fs.put(FILE, '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}');
      },
    });
    await h.until('it says so', () =>
      h.lines.some((l) => JSON.stringify(l).includes('drain this node and delete the CPU manager checkpoint file')),
    );
    expect(h.fs.textOf(FILE)).toContain('1353318690');
  });
});
