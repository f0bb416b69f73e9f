/** What `kubectl get` shows of the embedded API server: the words that a cluster has for the same state. */
import { describe, expect, it } from 'vitest';
import { tableOf } from '../../src/boot/embedded/table.ts';

const NOW = Date.parse('2026-01-01T01:00:00Z');
const metadata = { name: 'x', creationTimestamp: '2026-01-01T00:00:00Z' };
const rowOf = (object: object): string[] =>
  (tableOf({ ...object, metadata: { ...metadata, ...(object as { metadata?: object }).metadata } }, NOW) as { rows: { cells: string[] }[] })
    .rows[0]?.cells ?? [];
const pod = (status: object, spec: object = { containers: [{ name: 'a' }] }, more: object = {}): string | undefined =>
  rowOf({ kind: 'Pod', metadata: more, spec, status })[2];
const container = (state: object, more: object = {}): object => ({ name: 'a', state, ready: false, restartCount: 0, ...more });
const WITH_INIT = { initContainers: [{ name: 'a' }, { name: 'b', restartPolicy: 'Always' }, { name: 'c' }], containers: [{ name: 'm' }] };

describe('a table of the embedded API server', () => {
  it('shows why a pod is not up, as a cluster does', () => {
    expect(pod({ phase: 'Running', containerStatuses: [container({ running: {} }, { ready: true })] })).toBe('Running');
    expect(pod({ phase: 'Running', containerStatuses: [container({ waiting: { reason: 'CrashLoopBackOff' } })] })).toBe('CrashLoopBackOff');
    expect(pod({ phase: 'Pending', containerStatuses: [container({ waiting: { reason: 'ImagePullBackOff' } })] })).toBe('ImagePullBackOff');
    expect(pod({ phase: 'Running', containerStatuses: [container({ terminated: { exitCode: 3, reason: 'Error' } })] })).toBe('Error');
    expect(pod({ phase: 'Failed', containerStatuses: [container({ terminated: { exitCode: 3 } })] })).toBe('ExitCode:3');
    expect(pod({ phase: 'Succeeded', containerStatuses: [container({ terminated: { exitCode: 0, reason: 'Completed' } })] })).toBe(
      'Completed',
    );
    expect(pod({ phase: 'Failed', reason: 'Evicted' })).toBe('Evicted');
    expect(pod({})).toBe('Pending');
    expect(pod({ phase: 'Running' }, {}, { deletionTimestamp: '2026-01-01T00:30:00Z' })).toBe('Terminating');
  });

  it('counts the init containers that are done', () => {
    const waits = { containerStatuses: [container({ waiting: { reason: 'PodInitializing' } }, { name: 'm' })], phase: 'Pending' };
    const done = container({ terminated: { exitCode: 0, reason: 'Completed' } });
    const sidecar = container({ running: {} }, { name: 'b', started: true });
    const next = (state: object): object => container(state, { name: 'c' });
    const of = (...initContainerStatuses: object[]): string | undefined => pod({ ...waits, initContainerStatuses }, WITH_INIT);
    expect(of(container({ running: {} }))).toBe('Init:0/3');
    expect(of(done, sidecar, next({ running: {} }))).toBe('Init:2/3');
    expect(of(done, sidecar, next({ waiting: { reason: 'CrashLoopBackOff' } }))).toBe('Init:CrashLoopBackOff');
    expect(of(done, sidecar, next({ terminated: { exitCode: 2, reason: 'Error' } }))).toBe('Init:Error');
    expect(of(done, sidecar, next({ terminated: { exitCode: 0, reason: 'Completed' } }))).toBe('PodInitializing');
    expect(pod({ ...waits, phase: 'Failed', initContainerStatuses: [container({ terminated: { exitCode: 3 } })] }, WITH_INIT)).toBe(
      'Init:ExitCode:3',
    );
  });

  it('counts sidecars as ready, and restarts of init containers until these are done', () => {
    const up = container({ running: {} }, { name: 'b', started: true, ready: true, restartCount: 2 });
    const first = container({ terminated: { exitCode: 0 } }, { restartCount: 4 });
    const last = (exitCode: number): object => container({ terminated: { exitCode } }, { name: 'c', restartCount: 8 });
    const main = container({ running: {} }, { name: 'm', ready: true, restartCount: 1 });
    const of = (...initContainerStatuses: object[]): string[] =>
      rowOf({ kind: 'Pod', spec: WITH_INIT, status: { phase: 'Running', initContainerStatuses, containerStatuses: [main] } }).slice(1, 4);
    expect(of(first, up, last(1))).toEqual(['1/2', 'Init:ExitCode:1', '14']);
    expect(of(first, up, last(0))).toEqual(['2/2', 'Running', '3']);
  });

  it('says of a pod that is done in part whether it is ready, and of what waits for nothing why', () => {
    const ended = (exitCode: number, more: object): object => container({ terminated: { exitCode, ...more } });
    const done = ended(0, { reason: 'Completed' });
    const runs = container({ running: {} }, { ready: true });
    const conditions = [{ type: 'Ready', status: 'True' }];
    expect(pod({ phase: 'Running', conditions, containerStatuses: [done, runs] })).toBe('Running');
    expect(pod({ phase: 'Running', containerStatuses: [done, runs] })).toBe('NotReady');
    expect(pod({ phase: 'Running', containerStatuses: [done, ended(1, { reason: 'Error' }), runs] })).toBe('Error');
    expect(pod({ phase: 'Failed', containerStatuses: [ended(137, { signal: 9 })] })).toBe('Signal:9');
    expect(pod({ conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }] })).toBe('SchedulingGated');
    expect(pod({ phase: 'Succeeded', containerStatuses: [done] }, {}, { deletionTimestamp: '2026-01-01T00:30:00Z' })).toBe('Completed');
  });

  it('shows cordoned nodes and their version', () => {
    const status = { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { kubeletVersion: 'v1.36.0' } };
    expect(rowOf({ kind: 'Node', status })).toEqual(['x', 'Ready', '1h', 'v1.36.0']);
    expect(rowOf({ kind: 'Node', spec: { unschedulable: true }, status: {} })).toEqual(['x', 'NotReady,SchedulingDisabled', '1h', '']);
  });

  it('shows other objects where one has an odd status', () => {
    const good = { kind: 'Pod', metadata: { ...metadata, name: 'good' }, spec: {}, status: { phase: 'Running' } };
    const odd = { ...good, metadata: { ...metadata, name: 'odd' }, status: { phase: 'Running', containerStatuses: [{ name: 'a' }, null] } };
    const table = tableOf({ kind: 'PodList', items: [odd, good] }, NOW) as { rows: { cells: string[] }[] };
    expect(table.rows.map(({ cells }) => cells.slice(0, 3))).toEqual([
      ['odd', '<invalid>', '<invalid>'],
      ['good', '0/0', 'Running'],
    ]);
    expect(rowOf({ kind: 'Event', message: 5, involvedObject: { kind: 7 } }).slice(3)).toEqual(['<invalid>', '<invalid>']);
    expect(rowOf({ kind: 'Node', status: { conditions: 'none' } })[1]).toBe('<invalid>');
  });

  it('shows what events say', () => {
    const event = { type: 'Warning', reason: 'BackOff', message: 'again\n', involvedObject: { kind: 'Pod', name: 'web' } };
    const lastTimestamp = '2026-01-01T00:59:55Z';
    expect(rowOf({ kind: 'Event', ...event, lastTimestamp })).toEqual(['5s', 'Warning', 'BackOff', 'pod/web', 'again']);
    expect(rowOf({ kind: 'Event', metadata: { creationTimestamp: 'no time' } })).toEqual(['<unknown>', '', '', '/', '']);
  });
});
