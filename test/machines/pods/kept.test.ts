/** Static pods that run although their manifest cannot be used: which run on, and what takes them over. */
import { describe, expect, it } from 'vitest';
import type { ListedPod } from '../../../src/machines/pod/runtime/seen.ts';
import { ANY_POD, keepsRefused, keptPods } from '../../../src/machines/pods/podConfig/kept.ts';
import { applyListing, applyReadings, emptyFileStore, type FileReading, toSet } from '../../../src/machines/pods/sources/fileStore.ts';
import { pod } from './fixtures.ts';

const listed = (name: string, o: { source?: string; ready?: boolean } = {}): ListedPod => ({
  uid: `uid-${name}`,
  name,
  namespace: 'default',
  sandboxes: [
    {
      ...{ id: name, ready: o.ready ?? true, createdAtNs: 1n, attempt: 0, labels: {} },
      annotations: { 'kubernetes.io/config.source': o.source ?? 'file' },
    },
  ],
  containers: [],
});
const kept = (holds: string | undefined, ...pods: ListedPod[]): string[] =>
  keptPods(pods, 'file', [{ where: '/m/a.yaml', message: 'no', ...(holds === undefined ? {} : { holds }) }]).map((p) => p.name);

describe('a pod that runs', () => {
  it('is kept by the manifest that seems to define it', () => {
    expect(kept('web-n1_default', listed('web-n1'), listed('db-n1'))).toEqual(['web-n1']);
  });
  it('is kept by a manifest of which nobody can say what it defines', () => {
    expect(kept(ANY_POD, listed('web-n1'), listed('db-n1'))).toEqual(['web-n1', 'db-n1']);
  });
  it('is not kept by a manifest that is gone or empty, and not where it is of another source or has ended', () => {
    expect(kept(undefined, listed('web-n1'))).toEqual([]);
    expect(kept(ANY_POD, listed('web-n1', { source: 'api' }), listed('old-n1', { ready: false }))).toEqual([]);
  });
  it('is kept where this node does not support what its manifest asks for', () => {
    const refused = (reason: string) => ({ is: 'refused', verdict: { kind: 'rejected', reason, eviction: null } }) as const;
    const record = { state: refused('UnsupportedField'), source: 'file' } as const;
    expect(keepsRefused(record)).toBe(true);
    expect(keepsRefused({ ...record, source: 'api' })).toBe(false);
    expect(keepsRefused({ ...record, state: refused('OutOfcpu') })).toBe(false);
  });
});

describe('a file', () => {
  const bad: FileReading = { path: '/m/a.yaml', kind: 'bad', message: 'no', digest: 'b', holds: 'web-n1_default' };
  const good: FileReading = { path: '/m/a.yaml', kind: 'pod', pod: pod({}), digest: 'g', notes: ['line 3: twice'] };

  it('that was bad from the beginning says which pod it may hold', () => {
    const { store } = applyListing(emptyFileStore, [bad], true);
    expect(toSet(store)).toEqual({ pods: [], errors: [{ where: '/m/a.yaml', message: 'no', holds: 'web-n1_default' }] });
  });
  it('that became bad keeps its own pod until the next listing', () => {
    const { store } = applyReadings(applyReadings(emptyFileStore, [good]).store, [bad]);
    expect(toSet(store).errors).toMatchObject([{ message: 'no (its pod runs on as last read until the next listing)' }]);
    expect(toSet(store).errors[0]?.holds).toBeUndefined();
  });
  it('that is read leniently has its pod, and notes', () => {
    const { pods, errors } = toSet(applyReadings(emptyFileStore, [good]).store);
    expect(pods).toHaveLength(1);
    expect(errors).toEqual([{ where: '/m/a.yaml', message: 'line 3: twice', fullName: expect.any(String), note: true }]);
  });
});
