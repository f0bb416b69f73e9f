/** Windows, patterns and subjects of faults. */

import type { HostFs } from '@actorlet/kubelet/ports/ports.ts';
import { actorPattern, createMatcher, globToRegExp } from '@actorlet/shown/src/match.ts';
import { describe, expect, it } from 'vitest';
import { decodeScenario } from '../src/read/decode.ts';
import { type CriIds, criSubject, FS_OPS } from '../src/subjects.ts';
import type { FsOp } from '../src/types.ts';
import { windowsOf } from '../src/windows.ts';

function windows(faults: string, durationMs: number): string[] {
  const decoded = decodeScenario(
    `apiVersion: actorlet.dev/v1alpha1\nkind: FaultScenario\nmetadata: {name: w}\nspec:\n  faults:\n${faults}`,
    'simulation',
  );
  if (!decoded.ok) throw new Error(decoded.errors.map((e) => e.message).join('\n'));
  return windowsOf(decoded.scenario, durationMs).map((w) => `${w.fault.name}#${w.index} ${w.atMs}-${w.endMs}`);
}

describe('windows', () => {
  it('a fault without an end lasts until the scenario ends, an instant does not last', () => {
    expect(windows('  - {name: a, kind: disk.full, at: 2s}\n  - {name: b, kind: hints.cut, at: 1s}\n', 10_000)).toEqual([
      'b#0 1000-1000',
      'a#0 2000-10000',
    ]);
  });
  it('a period repeats until the count or the end, and nothing outlasts the scenario', () => {
    expect(windows('  - {name: a, kind: disk.full, at: 1s, for: 2s, every: 4s}\n', 10_000)).toEqual([
      'a#0 1000-3000',
      'a#1 5000-7000',
      'a#2 9000-10000',
    ]);
    expect(windows('  - {name: a, kind: hints.cut, every: 1s, count: 2}\n', 10_000)).toEqual(['a#0 0-0', 'a#1 1000-1000']);
  });
  it('what follows another begins at the end of its first window', () => {
    expect(
      windows(
        '  - {name: c, kind: hints.cut, after: b}\n  - {name: b, kind: disk.full, for: 2s, after: a, at: 1s}\n  - {name: a, kind: disk.full, at: 3s, for: 1s, every: 5s}\n',
        9_500,
      ),
    ).toEqual(['a#0 3000-4000', 'b#0 5000-7000', 'c#0 7000-7000', 'a#1 8000-9000']);
  });
  it('what would begin after the end never does', () => {
    expect(windows('  - {kind: hints.cut, at: 10s}\n  - {name: a, kind: disk.full}\n  - {kind: hints.cut, after: a}\n', 10_000)).toEqual([
      'a#0 0-10000',
    ]);
  });
});

describe('patterns', () => {
  it('a star stays within a segment, two do not', () => {
    expect(globToRegExp('node/*/x').test('node/a/x')).toBe(true);
    expect(globToRegExp('node/*/x').test('node/a/b/x')).toBe(false);
    expect(globToRegExp('node/**').test('node/a/b')).toBe(true);
    expect(globToRegExp('a?c').test('abc')).toBe(true);
    expect(globToRegExp('a?c').test('a/c')).toBe(false);
  });
  it('everything else is itself', () => {
    expect(globToRegExp('a.b+(c)[d]$^|\\').test('a.b+(c)[d]$^|\\')).toBe(true);
    expect(globToRegExp('a.b').test('axb')).toBe(false);
  });
  it('actors are named with or without the root', () => {
    expect(['pods/workers/*', '/runtime/cri/', 'node/edge', 'node', '**/cri'].map(actorPattern)).toEqual([
      'node/pods/workers/*',
      'node/runtime/cri',
      'node/edge',
      'node',
      '**/cri',
    ]);
  });
  it('an actor of an earlier version is the one that took its work', () => {
    expect(actorPattern('pods/admission')).toBe('node/pods/podManager');
  });
  it('no list matches all; a list matches nothing that is not known', () => {
    const m = createMatcher();
    expect([m.any(undefined, undefined), m.any([], 'x'), m.any(['*'], undefined), m.any(['a', 'x*'], 'xy'), m.any(['a'], 'b')]).toEqual([
      true,
      true,
      false,
      true,
      false,
    ]);
    expect([m.one(undefined, 'a'), m.one(['a', 'b'], 'b'), m.one(['a'], 'b' as 'a')]).toEqual([true, true, false]);
  });
});

describe('subjects', () => {
  it('every operation of the file system has its group', () => {
    // A new operation of the port breaks the type check here.
    const groups: Record<keyof HostFs, FsOp> = FS_OPS;
    expect(groups.rename).toBe('rename');
    expect([FS_OPS.readFile, FS_OPS.writeFile, FS_OPS.fsyncDir, FS_OPS.unlink]).toEqual(['read', 'write', 'sync', 'remove']);
  });
  it('a call is about the pod and container of its request, by metadata or by id', () => {
    const ids: CriIds = {
      sandbox: (id) => (id === 's1' ? { namespace: 'ns', pod: 'web' } : undefined),
      container: (id) => (id === 'c1' ? { namespace: 'ns', pod: 'web', container: 'main' } : undefined),
    };
    const pod = { metadata: { name: 'web', namespace: 'ns' } };
    expect(criSubject({ config: pod }, ids)).toEqual({ namespace: 'ns', pod: 'web' });
    expect(criSubject({ podSandboxId: 's1', config: { metadata: { name: 'main' } }, sandboxConfig: pod }, ids)).toEqual({
      namespace: 'ns',
      pod: 'web',
      container: 'main',
    });
    expect(criSubject({ image: {}, sandboxConfig: pod }, ids)).toEqual({ namespace: 'ns', pod: 'web' });
    expect(criSubject({ podSandboxId: 's1' }, ids)).toEqual({ namespace: 'ns', pod: 'web' });
    expect(criSubject({ containerId: 'c1', timeout: 3 }, ids)).toEqual({ namespace: 'ns', pod: 'web', container: 'main' });
    expect([criSubject({ containerId: 'gone' }, ids), criSubject({ podSandboxId: 'gone' }, ids), criSubject({}, ids)]).toEqual([
      {},
      {},
      {},
    ]);
  });
});
