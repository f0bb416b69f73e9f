/** What is left of the dead: messages, logs, and what is collected. */

import { describe, expect, it } from 'vitest';
import { pathName } from '../../../src/machines/pod/pathName.ts';
import {
  containerIdOfLink,
  containerLogLink,
  containerLogLinkName,
  logFilesOf,
  podFolder,
  podLogDir,
  podUidOfLogDir,
  restartCountFromLogNames,
} from '../../../src/machines/pod/runtime/logNames.ts';
import type { ListedPod } from '../../../src/machines/pod/runtime/seen.ts';
import { chooseTerminationMessage } from '../../../src/machines/pod/runtime/terminationMessage.ts';
import {
  containersToCollect,
  DEFAULT_GC_POLICY,
  deadLinks,
  logDirsToRemove,
  sandboxesToCollect,
} from '../../../src/machines/reclaim/containerGc.ts';
import { NOW_MS, rc, T0_MS } from './fixtures.ts';

describe('termination message', () => {
  const log = async (): Promise<string> => Array.from({ length: 100 }, (_, i) => `2024-05-01T10:00:00Z stdout F line ${i}`).join('\n');
  const none = (): Promise<null> => Promise.reject(new Error('the log must not be read'));
  const fallback = { terminationMessagePolicy: 'FallbackToLogsOnError' };

  it('trap 51: the last 4096 bytes of the file count', async () => {
    const text = `start${'x'.repeat(5000)}end`;
    const message = await chooseTerminationMessage(rc('web', 'exited', { exitCode: 1, ...fallback }), text, none);
    expect([message.length, message.endsWith('end'), message.includes('start')]).toEqual([4096, true, false]);
  });

  it('trap 51: the log stands in only for a failure without a message, under that policy', async () => {
    expect(await chooseTerminationMessage(rc('web', 'exited', { exitCode: 0, ...fallback }), '', none)).toBe('');
    expect(await chooseTerminationMessage(rc('web', 'exited', { exitCode: 1 }), null, none)).toBe('');
    expect(
      await chooseTerminationMessage(
        rc('web', 'exited', { exitCode: 1, reason: 'ContainerCannotRun', message: 'm', ...fallback }),
        '',
        none,
      ),
    ).toBe('m');
    const text = await chooseTerminationMessage(rc('web', 'exited', { exitCode: 1, message: 'oops', ...fallback }), null, log);
    expect(text.startsWith('oops: line 20\nline 21\n')).toBe(true);
    expect(text.endsWith('line 99\n')).toBe(true);
  });

  it('joins fragments of a long line and keeps at most 2048 bytes', async () => {
    const parts = async (): Promise<string> => `t stderr P ${'a'.repeat(3000)}\nt stderr F z\n`;
    const text = await chooseTerminationMessage(rc('web', 'exited', { exitCode: 1, ...fallback }), '', parts);
    expect(text).toBe(`${'a'.repeat(2046)}z\n`);
  });

  it('says nothing of a container that asked for no message or has not ended', async () => {
    expect(await chooseTerminationMessage(rc('web', 'exited', { terminationMessagePath: '', message: 'cri' }), 'text', none)).toBe('cri');
    expect(await chooseTerminationMessage(rc('web', 'running'), 'text', none)).toBe('');
  });
});

describe('log names', () => {
  const ref = podFolder({ uid: 'u-1', name: 'p', namespace: 'ns' });
  const web = pathName('web');
  it('are made and read back', () => {
    expect(podLogDir('/var/log/pods', ref)).toBe('/var/log/pods/ns_p_u-1');
    expect(podUidOfLogDir('ns_p_u-1')).toBe('u-1');
    expect(podUidOfLogDir('other')).toBeUndefined();
    expect(containerLogLink('/l', ref, { container: web, id: pathName('abcdef0123') })).toBe('/l/p_ns_web-abcdef0123.log');
    expect(containerIdOfLink('p_ns_web-abcdef0123.log')).toBe('abcdef0123');
    expect(containerIdOfLink('p_ns_web-abc.log')).toBeUndefined();
    expect(containerLogLinkName({ ...ref, name: pathName('n'.repeat(253)) }, web, pathName('abcdef')).length).toBe(255);
  });

  it('trap 20: the restart count goes on from the log files when the runtime has forgotten', () => {
    expect(restartCountFromLogNames([])).toBe(0);
    expect(restartCountFromLogNames(['0.log', '10.log', '9.log.20240501-100000.gz', 'x.log', '11.txt'])).toBe(11);
    expect(logFilesOf(1, ['1.log', '11.log', '1.log.20240501-100000', '2.log'])).toEqual(['1.log', '1.log.20240501-100000']);
  });
});

type Listed = ListedPod['containers'][number];
function listed(
  uid: string,
  containers: [name: string, n: number, state: Listed['state'], sandboxId?: string][],
  sandboxes: [id: string, n: number, ready: boolean][] = [],
): ListedPod {
  const at = (n: number): bigint => BigInt(T0_MS + n * 1000) * 1_000_000n;
  return {
    uid,
    name: uid,
    namespace: 'ns',
    sandboxes: sandboxes.map(([id, n, ready]) => ({ id, ready, createdAtNs: at(n), attempt: n, labels: {}, annotations: {} })),
    containers: containers.map(([name, n, state, sandboxId = 's1']) => ({
      id: `${uid}/${name}-${n}`,
      name,
      sandboxId,
      state,
      createdAtNs: at(n),
      labels: {},
      annotations: {},
    })),
  };
}
const ids = (list: readonly { id: string }[]): string[] => list.map((c) => c.id);

describe('garbage collection', () => {
  const a = listed('a', [
    ['web', 1, 'exited'],
    ['web', 2, 'exited'],
    ['web', 3, 'unknown'],
    ['web', 4, 'running'],
    ['api', 1, 'exited'],
  ]);
  const b = listed('b', [
    ['job', 2, 'exited'],
    ['job', 1, 'exited'],
  ]);
  const base = { pods: [a, b], sourcesReady: true, isRemovable: () => false, nowWallMs: NOW_MS, policy: DEFAULT_GC_POLICY };

  it('trap 59: keeps the newest dead instance per container, removes the others oldest first', () => {
    expect(ids(containersToCollect(base))).toEqual(['a/web-1', 'a/web-2', 'b/job-1']);
  });

  it('keeps the last dead instance while its successor is created and not yet started', () => {
    const pod: ListedPod = {
      ...a,
      uid: 'c',
      containers: [
        { ...(a.containers[0] as ListedPod['containers'][number]), id: 'old', name: 'web', state: 'exited', createdAtNs: 1n },
        { ...(a.containers[0] as ListedPod['containers'][number]), id: 'next', name: 'web', state: 'created', createdAtNs: 2n },
      ],
    };
    expect(containersToCollect({ ...base, pods: [pod] })).toEqual([]);
  });

  it('removes everything of a pod that is gone, and only once all sources were heard', () => {
    const gone = { ...base, isRemovable: (uid: string) => uid === 'b' };
    expect(ids(containersToCollect(gone)).sort()).toEqual(['a/web-1', 'a/web-2', 'b/job-1', 'b/job-2']);
    expect(ids(containersToCollect({ ...gone, sourcesReady: false }))).not.toContain('b/job-2');
  });

  it('stops one of unknown state first, spares the young, and holds the limit of the node', () => {
    const all = containersToCollect({ ...base, isRemovable: () => true });
    expect(all.filter((c) => c.killFirst).map((c) => c.id)).toEqual(['a/web-3']);
    expect(
      ids(
        containersToCollect({
          ...base,
          isRemovable: () => true,
          nowWallMs: T0_MS + 5000,
          policy: { ...DEFAULT_GC_POLICY, minAgeMs: 4000 },
        }),
      ).sort(),
    ).toEqual(['a/api-1', 'a/web-1', 'b/job-1']);
    expect(ids(containersToCollect({ ...base, policy: { ...DEFAULT_GC_POLICY, maxContainers: 1 } }))).toEqual([
      'a/web-1',
      'a/web-2',
      'b/job-1',
      'a/api-1',
      'b/job-2',
    ]);
  });

  it('removes sandboxes that are neither ready, nor used, nor the newest of a wanted pod', () => {
    const p = listed(
      'p',
      [['web', 1, 'exited', 'used']],
      [
        ['newest', 4, false],
        ['ready', 3, true],
        ['used', 2, false],
        ['old', 1, false],
        ['older', 0, false],
      ],
    );
    const input = { pods: [p], sourcesReady: true, isRemovable: () => false };
    expect(ids(sandboxesToCollect(input))).toEqual(['older', 'old']);
    expect(ids(sandboxesToCollect({ ...input, isRemovable: () => true, gone: new Set(['p/web-1']) }))).toEqual([
      'older',
      'old',
      'used',
      'newest',
    ]);
  });

  it('removes log directories of gone pods and links that lead nowhere, except while a log is being rotated', () => {
    expect(logDirsToRemove({ dirNames: ['ns_a_u1', 'ns_b_u2', 'junk'], sourcesReady: true, isRemovable: (uid) => uid === 'u1' })).toEqual([
      'ns_a_u1',
    ]);
    expect(logDirsToRemove({ dirNames: ['ns_a_u1'], sourcesReady: false, isRemovable: () => true })).toEqual([]);
    const states = new Map([
      ['running1', 'running'],
      ['exited01', 'exited'],
    ] as const);
    const links = [
      { name: 'p_ns_c-running1.log', targetExists: false },
      { name: 'p_ns_c-exited01.log', targetExists: false },
      { name: 'p_ns_c-unknown1.log', targetExists: false },
      { name: 'p_ns_c-alive001.log', targetExists: true },
      { name: 'readme', targetExists: false },
    ];
    const stateOf = (id: string) => (id === 'running1' || id === 'exited01' ? states.get(id) : undefined);
    expect(deadLinks({ links, stateOf })).toEqual(['p_ns_c-exited01.log', 'p_ns_c-unknown1.log']);
  });
});
