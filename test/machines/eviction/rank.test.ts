/** Who goes first, with which words, and who may come in: expected values are written out. */
import { describe, expect, it } from 'vitest';
import type { Signal, StarvedResource } from '../../../src/machines/config/evictionSignals.ts';
import type { PodSpec } from '../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { isCritical } from '../../../src/machines/pod/phase.ts';
import { pressureRefusal } from '../../../src/machines/reclaim/eviction/admission.ts';
import type { Met } from '../../../src/machines/reclaim/eviction/pass.ts';
import { evictionGraceSeconds, evictionMessage, type PodUsage, rank, type Usage } from '../../../src/machines/reclaim/eviction/rank.ts';
import { container, pod, sidecar } from '../pods/fixtures.ts';

const MIB = 1024 ** 2;
const named = (uid: string, spec: Partial<PodSpec> = {}): Pod => pod(spec, { metadata: { name: uid, uid } });
const asks = (requests: Record<string, string>) => container('web', { resources: { requests } });
const uses = (usage: Record<string, Usage>) =>
  new Map(Object.entries(usage).map(([uid, u]): [string, PodUsage] => [uid, { ...u, containers: new Map([['web', u]]) }]));
const order = (pods: Pod[], usage: ReadonlyMap<string, PodUsage>, resource: StarvedResource) =>
  rank(pods, usage, resource).map((p) => p.metadata.uid);
const met = (signal: Signal, o: { graceMs?: number; available?: number } = {}): Met => ({
  threshold: { signal, value: { kind: 'quantity', text: '100Mi' }, graceMs: o.graceMs ?? 0, minReclaim: null },
  observation: { available: o.available ?? 50 * MIB, capacity: 1000 * MIB, atMs: 0 },
});

describe('the ranking', () => {
  it('for memory: above what it asked for, then lower priority, then furthest above', () => {
    const pods = [
      named('within', { containers: [asks({ memory: '1Gi' })], priority: -5 }),
      named('above-important', { containers: [asks({ memory: '10Mi' })], priority: 100 }),
      named('above-little', { containers: [asks({ memory: '90Mi' })] }),
      named('above-much', { containers: [asks({ memory: '10Mi' })] }),
      named('unknown', { priority: 1000 }),
      named('within-less', { containers: [asks({ memory: '200Mi' })], priority: -5 }),
    ];
    const hundred = { memoryBytes: 100 * MIB };
    const usage = uses({
      within: hundred,
      'above-important': hundred,
      'above-little': hundred,
      'above-much': hundred,
      'within-less': hundred,
    });
    expect(order(pods, usage, 'memory')).toEqual(['unknown', 'above-much', 'above-little', 'above-important', 'within-less', 'within']);
  });

  it('for disk: usage above the ephemeral-storage that was asked for; inodes are asked for by nobody', () => {
    const pods = [
      named('asked', { containers: [asks({ 'ephemeral-storage': '1Gi' })] }),
      named('little'),
      named('much', { containers: [asks({ 'ephemeral-storage': '1Mi' })] }),
    ];
    const usage = uses({
      asked: { diskBytes: 900 * MIB, inodes: 90 },
      little: { diskBytes: 5 * MIB, inodes: 500 },
      much: { diskBytes: 50 * MIB, inodes: 5 },
    });
    expect(order(pods, usage, 'ephemeral-storage')).toEqual(['much', 'little', 'asked']);
    expect(order(pods, usage, 'inodes')).toEqual(['little', 'asked', 'much']);
  });

  it('for processes: by priority, then by how many there are; one that is not known has none', () => {
    const pods = [named('a', { priority: 7 }), named('unknown'), named('few'), named('many'), named('c', { priority: -1 })];
    const usage = uses({ a: { tasks: 9000 }, few: { tasks: 3 }, many: { tasks: 5000 }, c: { tasks: 1 } });
    expect(order(pods, usage, 'pids')).toEqual(['c', 'many', 'few', 'unknown', 'a']);
  });
});

describe('the message', () => {
  const usage: PodUsage = {
    memoryBytes: 300 * MIB,
    containers: new Map([
      ['web', { memoryBytes: 200 * MIB }],
      ['log', { memoryBytes: 99 * MIB + 1 }],
      ['proxy', { memoryBytes: 20 * MIB }],
    ]),
  };
  const p = pod({
    initContainers: [sidecar('proxy', { resources: { requests: { memory: '10Mi' } } })],
    containers: [
      container('web', { resources: { requests: { memory: '64Mi' } } }),
      container('log', { resources: { requests: { memory: '1Gi' } } }),
    ],
  });

  it('names the resource, the threshold, what is left, and containers above what they asked for', () => {
    expect(evictionMessage(p, usage, met('memory.available'))).toBe(
      'The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. ' +
        'Container web was using 200Mi, request is 64Mi, has larger consumption of memory. ' +
        'Container proxy was using 20Mi, request is 10Mi, has larger consumption of memory. ',
    );
  });
  it('names no container for inodes and processes, or where nobody knows what they use', () => {
    expect(evictionMessage(p, usage, met('nodefs.inodesFree', { available: 7 }))).toBe(
      'The node was low on resource: inodes. Threshold quantity: 100Mi, available: 7. ',
    );
    expect(evictionMessage(p, undefined, met('memory.available'))).toBe(
      'The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. ',
    );
  });
});

it("the grace is a second where a hard threshold is met, else the pod's own up to the most that is allowed", () => {
  const p = pod({ terminationGracePeriodSeconds: 30 });
  expect(evictionGraceSeconds(p, met('memory.available'), 60)).toBe(1);
  expect(evictionGraceSeconds(p, met('memory.available', { graceMs: 1 }), 60)).toBe(30);
  expect(evictionGraceSeconds(p, met('memory.available', { graceMs: 1 }), 5)).toBe(5);
});

describe('critical pods', () => {
  it("are static ones, mirrors, and those of the system's own priority", () => {
    expect(isCritical(pod())).toBe(false);
    expect(isCritical(pod({}, { source: 'file' }))).toBe(true);
    expect(isCritical(pod({}, { source: 'http' }))).toBe(true);
    const annotations = { 'kubernetes.io/config.source': 'api', 'kubernetes.io/config.mirror': 'x' };
    expect(isCritical(pod({}, { metadata: { annotations } }))).toBe(true);
    expect([1_999_999_999, 2_000_000_000].map((priority) => isCritical(pod({ priority })))).toEqual([false, true]);
  });
});

describe('admission under pressure', () => {
  const burstable = pod({ containers: [asks({ memory: '1Mi' })] });
  const tolerant = (toleration: object) => pod({ tolerations: [toleration] });
  const key = 'node.kubernetes.io/memory-pressure';

  it('is open without pressure and for critical pods', () => {
    expect(pressureRefusal(pod(), [])).toBeNull();
    expect(pressureRefusal(pod({}, { source: 'file' }), ['DiskPressure', 'PIDPressure'])).toBeNull();
  });
  it('for memory refuses pods that asked for nothing and do not tolerate it', () => {
    expect(pressureRefusal(pod(), ['MemoryPressure'])).toEqual({
      reason: 'Evicted',
      message: 'The node had condition: [MemoryPressure]. ',
    });
    expect(pressureRefusal(burstable, ['MemoryPressure'])).toBeNull();
  });
  it.each([
    [{ key, operator: 'Exists', effect: 'NoSchedule' }, true],
    [{ key, operator: 'Exists' }, true],
    [{ operator: 'Exists' }, true],
    [{ key, value: '' }, true],
    [{ key, value: 'x' }, false],
    [{ key, operator: 'Exists', effect: 'NoExecute' }, false],
    [{ key: 'node.kubernetes.io/disk-pressure', operator: 'Exists' }, false],
  ])('takes toleration %j as one of memory pressure: %s', (toleration, admitted) => {
    expect(pressureRefusal(tolerant(toleration), ['MemoryPressure']) === null).toBe(admitted);
  });
  it('for disk and processes refuses every other pod, whatever it tolerates', () => {
    for (const p of [burstable, tolerant({ operator: 'Exists' })])
      expect(pressureRefusal(p, ['MemoryPressure', 'DiskPressure'])?.message).toBe(
        'The node had condition: [MemoryPressure DiskPressure]. ',
      );
    expect(pressureRefusal(burstable, ['PIDPressure'])).not.toBeNull();
  });
});
