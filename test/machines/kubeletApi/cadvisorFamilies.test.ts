/** Each family of /metrics/cadvisor of the reference kubelet 1.36 is made, with its type and labels, or is left out for a reason. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { cadvisorMetrics, containerKey, type GroupReading } from '../../../src/machines/edge/stats/cadvisorMetrics.ts';
import type { Summary } from '../../../src/machines/edge/stats/stats.ts';
import type { GroupFigures } from '../../../src/machines/figures/groupStats.ts';
import { CADVISOR_LEFT_OUT } from '../../reference/leftOut/leftOut.ts';

interface Family {
  type: string;
  labels: string[];
}
const REFERENCE: Record<string, Family> = JSON.parse(
  readFileSync(new URL('../../reference/recorded/cadvisor136.json', import.meta.url), 'utf8'),
);

const time = '2026-01-01T00:00:00.000000000Z';
const FIGURES: GroupFigures = {
  cpu: {
    ...{ usedSeconds: 1, userSeconds: 1, systemSeconds: 1, periods: 1, throttledPeriods: 1, throttledSeconds: 1 },
    ...{ burstPeriods: 1, burstSeconds: 1 },
  },
  memory: {
    ...{ usageBytes: 1, workingSetBytes: 1, rssBytes: 1, cacheBytes: 1, mappedBytes: 1, swapBytes: 1, kernelBytes: 1, maxBytes: 1 },
    ...{ activeFileBytes: 1, inactiveFileBytes: 1, limitHits: 1, oomKills: 1, faults: { own: 1, all: 1 }, majorFaults: { own: 1, all: 1 } },
  },
  io: new Map([['8:0', { readBytes: 1, writeBytes: 1, reads: 1, writes: 1 }]]),
  limits: {
    ...{ cpuPeriodUs: 1, cpuQuotaUs: 1, cpuShares: 2, memoryBytes: 1, memoryReservedBytes: 0, swapBytes: 0, threads: 0 },
  },
  tasks: { processes: 1, threads: 1, descriptors: 1, sockets: 1, openFilesMax: 1024 },
};
const COUNTERS = { rxBytes: 1, rxPackets: 1, rxErrors: 1, rxDropped: 1, txBytes: 1, txPackets: 1, txErrors: 1, txDropped: 1 };
const IO = {
  ...{ reads: 1, readsMerged: 1, sectorsRead: 1, readSeconds: 1, writes: 1, writesMerged: 1, sectorsWritten: 1, writeSeconds: 1 },
  ...{ inProgress: 1, ioSeconds: 1, weightedSeconds: 1 },
};
const GROUPS: GroupReading = {
  containers: new Map([[containerKey('u', 'main'), { id: 'c', image: 'i', path: '/k/c', figures: FIGURES }]]),
  pods: [{ id: 's', namespace: 'ns', name: 'web', interfaces: [{ name: 'eth0', ...COUNTERS }], path: '/k/s', figures: FIGURES, madeMs: 1 }],
  groups: [{ path: '/k', figures: FIGURES, madeMs: 1 }],
  devices: new Map(),
  podPsi: new Map(),
  imageDevice: '/dev/vda',
  node: {
    ...{ interfaces: [{ name: 'eth0', ...COUNTERS }], pressure: {}, psi: {}, figures: FIGURES },
    disks: [{ device: '/dev/vda', room: { bytesTotal: 1, bytesAvailable: 1, inodesTotal: 1, inodesFree: 1 }, io: IO }],
  },
};
const USE = { cpu: { time, usageCoreNanoSeconds: 1 }, memory: { time, usageBytes: 1, workingSetBytes: 1, rssBytes: 1 } };
const SUMMARY: Summary = {
  node: { nodeName: 'n', startTime: time, ...USE, swap: { time, swapAvailableBytes: 1, swapUsageBytes: 0 } },
  pods: [{ podRef: { name: 'web', namespace: 'ns', uid: 'u' }, startTime: time, containers: [{ name: 'main', startTime: time, ...USE }] }],
};

function familiesOf(text: string): Record<string, Family> {
  const found: Record<string, Family> = {};
  for (const line of text.split('\n')) {
    const [, name, type] = /^# TYPE (\S+) (\S+)/.exec(line) ?? [];
    if (name !== undefined && type !== undefined) found[name] = { type, labels: [] };
    const [, of, labels = ''] = /^(\w+)(?:\{(.*)\})? /.exec(line) ?? [];
    const family = of === undefined ? undefined : found[of];
    const names = [...labels.matchAll(/(\w+)="/g)].map(([, label = '']) => label);
    if (family !== undefined) family.labels = [...new Set([...family.labels, ...names])].sort();
  }
  return found;
}

it('has each family of the reference with its type and labels, but those that are left out for a reason', () => {
  const machine = { cpus: 2, memoryBytes: 1, physicalCores: 2, sockets: 1 };
  const made = familiesOf(cadvisorMetrics({ summary: SUMMARY, groups: GROUPS, machine, nowMs: 1 }));
  const wanted = Object.entries(REFERENCE).filter(([name]) => CADVISOR_LEFT_OUT[name] === undefined);
  expect(Object.fromEntries(wanted.map(([name]) => [name, made[name]]))).toEqual(Object.fromEntries(wanted));
});

it('leaves out families that the reference has and that it does not make', () => {
  const made = familiesOf(cadvisorMetrics({ summary: SUMMARY, groups: GROUPS, machine: { cpus: 2, memoryBytes: 1 }, nowMs: 1 }));
  for (const name of Object.keys(CADVISOR_LEFT_OUT)) {
    expect(REFERENCE[name]).toBeDefined();
    expect(made[name]).toBeUndefined();
  }
});
