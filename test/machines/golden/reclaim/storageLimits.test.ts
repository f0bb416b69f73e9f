/** Who is evicted for what it wrote (resources 3.7): a row for each rule and its edge, with the very words and the metric's label. */
import { expect } from 'vitest';
import type { PodSpec } from '../../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../../src/machines/kube/types.ts';
import { exceeded, hasStorageLimits, type StorageUse } from '../../../../src/machines/reclaim/eviction/limits.ts';
import { container, pod, sidecar } from '../../pods/fixtures.ts';
import { deciding, goldenTable } from '../table.ts';

const MIB = 1024 ** 2;

interface Row {
  pod: Pod;
  volumes?: Record<string, number>;
  /** Logs and writable layer. */
  containers?: Record<string, [logs: number, layer: number]>;
  dedicated?: boolean;
}
const limited = (limit: string, more: Partial<PodSpec> = {}): Pod =>
  pod({ containers: [container('web', { resources: { limits: { 'ephemeral-storage': limit } } })], ...more });
const scratch = (emptyDir: object): Pod => pod({ volumes: [{ name: 'scratch', emptyDir }] });

const ROWS: Record<string, Row> = {
  'nothing limited': { pod: pod(), containers: { web: [MIB, MIB] } },
  'volume: as much as its limit': { pod: scratch({ sizeLimit: '1Mi' }), volumes: { scratch: MIB } },
  'volume: more than its limit': { pod: scratch({ sizeLimit: '1Mi' }), volumes: { scratch: MIB + 1 } },
  'volume: a limit of nothing is none': { pod: scratch({ sizeLimit: '0' }), volumes: { scratch: MIB } },
  'volume: in memory the kernel keeps it': { pod: scratch({ medium: 'Memory', sizeLimit: '1Mi' }), volumes: { scratch: 2 * MIB } },
  'volume: another one': { pod: scratch({ sizeLimit: '1Mi' }), volumes: { other: 2 * MIB } },
  'pod: logs, layers and volumes together': {
    pod: limited('3Mi', { volumes: [{ name: 'scratch', emptyDir: {} }] }),
    volumes: { scratch: MIB },
    containers: { web: [MIB, MIB + 1] },
  },
  'pod: just as much': { pod: limited('3Mi'), volumes: { scratch: MIB }, containers: { web: [MIB, MIB] } },
  'pod: the limits of its containers together': {
    pod: pod({
      containers: ['a', 'b'].map((name) => container(name, { resources: { limits: { 'ephemeral-storage': '1Mi' } } })),
    }),
    containers: { a: [MIB, 0], b: [MIB, 1] },
  },
  'pod: a container without a limit counts in what is used': {
    pod: pod({ containers: [container('web', { resources: { limits: { 'ephemeral-storage': '1Mi' } } }), container('free')] }),
    containers: { web: [0, 0], free: [MIB, 1] },
  },
  'pod: sidecars count': {
    pod: limited('1Mi', { initContainers: [sidecar('side', { resources: { limits: { 'ephemeral-storage': '1Mi' } } })] }),
    containers: { web: [0, MIB], side: [MIB, 1] },
  },
  'container: more than its own, the pod less than all': {
    pod: pod({
      containers: [
        container('web', { resources: { limits: { 'ephemeral-storage': '1Mi' } } }),
        container('large', { resources: { limits: { 'ephemeral-storage': '1Gi' } } }),
      ],
    }),
    containers: { web: [MIB, 1], large: [0, 0] },
  },
  'container: its layer does not count where images have a disk of their own': {
    pod: pod({
      containers: [
        container('web', { resources: { limits: { 'ephemeral-storage': '1Mi' } } }),
        container('large', { resources: { limits: { 'ephemeral-storage': '1Gi' } } }),
      ],
    }),
    containers: { web: [MIB, 5], large: [0, 0] },
    dedicated: true,
  },
  'container: a sidecar more than its own, the pod less than all': {
    pod: limited('1Gi', { initContainers: [sidecar('side', { resources: { limits: { 'ephemeral-storage': '1Mi' } } })] }),
    containers: { web: [0, 0], side: [MIB, 1] },
  },
  'container: an init container that is no sidecar has ended': {
    pod: limited('1Gi', { initContainers: [container('init', { resources: { limits: { 'ephemeral-storage': '1Mi' } } })] }),
    containers: { web: [0, 0], init: [MIB, 1] },
  },
  'the volume is named first': {
    pod: limited('1Mi', { volumes: [{ name: 'scratch', emptyDir: { sizeLimit: '2Mi' } }] }),
    volumes: { scratch: 3 * MIB },
    containers: { web: [2 * MIB, 0] },
  },
  'the pod is named before its container': { pod: limited('1Mi'), containers: { web: [2 * MIB, 0] } },
};

goldenTable(
  'storage limits are as recorded',
  'reclaim/storageLimits',
  deciding(ROWS, (row) => {
    const use: StorageUse = {
      volumes: new Map(Object.entries(row.volumes ?? {})),
      containers: new Map(Object.entries(row.containers ?? {}).map(([c, [logs, layer]]) => [c, { logs, layer }])),
    };
    const result = exceeded(row.pod, use, { dedicatedImageFs: row.dedicated ?? false });
    // One that is not measured is never found out.
    if (result !== null) expect(hasStorageLimits(row.pod)).toBe(true);
    return result;
  }),
);
