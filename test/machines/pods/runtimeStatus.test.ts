/** From CRI answers to runtime status. */
import { describe, expect, it } from 'vitest';
import {
  composeStatus,
  exitForBackoff,
  firstStatus,
  nextRestartCount,
  type ReplacedInstances,
  toContainer,
  toSandbox,
  withReplaced,
} from '../../../src/machines/pod/runtime/runtimeStatus.ts';
import type { CriContainerStatus, PodSandboxStatus } from '../../../src/machines/wire/cri.ts';

function cri(id: string, createdAt: string, more: Partial<CriContainerStatus> = {}): CriContainerStatus {
  return {
    id,
    metadata: { name: 'web', attempt: 0 },
    state: 'CONTAINER_EXITED',
    createdAt,
    startedAt: '0',
    finishedAt: '0',
    exitCode: 0,
    image: { image: 'busybox:1.36' },
    imageRef: 'sha256:1',
    reason: '',
    message: '',
    labels: { 'io.kubernetes.container.name': 'web' },
    annotations: {},
    mounts: [],
    logPath: '',
    ...more,
  };
}
function sandbox(more: Partial<PodSandboxStatus> = {}): PodSandboxStatus {
  return {
    id: 's1',
    metadata: { name: 'p', uid: 'u', namespace: 'ns', attempt: 3 },
    state: 'SANDBOX_READY',
    createdAt: '5',
    labels: {},
    annotations: {},
    runtimeHandler: '',
    network: { ip: '10.0.0.5', additionalIps: [{ ip: 'fd00::5' }] },
    linux: { namespaces: { options: { network: 'POD' } } },
    ...more,
  };
}

function statusOf(sandboxes: readonly PodSandboxStatus[], containers: readonly CriContainerStatus[]) {
  return composeStatus({
    uid: 'u',
    name: 'p',
    namespace: 'ns',
    sandboxes: sandboxes.map(toSandbox),
    containers: containers.map(toContainer),
    observedAtMonoMs: 1,
  });
}

describe('runtime status', () => {
  it('trap 19: is newest first whatever order the runtime lists in, to the nanosecond', () => {
    const a = cri('a', '1700000000000000001', { annotations: { 'io.kubernetes.container.restartCount': '1' } });
    const b = cri('b', '1700000000000000002', { annotations: { 'io.kubernetes.container.restartCount': '2' } });
    const c = cri('c', '1700000000000000002', { annotations: { 'io.kubernetes.container.restartCount': '3' } });
    const orders = [
      [a, b, c],
      [c, b, a],
      [b, a, c],
      [b, c, a],
    ].map((list) => statusOf([], list).containers.map((x) => x.id));
    expect(orders).toEqual(orders.map(() => ['c', 'b', 'a']));
    expect(firstStatus(statusOf([], [a, c, b]), 'web')?.restartCount).toBe(3);
  });

  it('puts what was created late, and never started, behind the instance that runs', () => {
    const count = (n: string) => ({ 'io.kubernetes.container.restartCount': n });
    const up = cri('up', '10', { state: 'CONTAINER_RUNNING', annotations: count('1') });
    const late = cri('late', '11', { state: 'CONTAINER_CREATED', annotations: count('0') });
    expect(firstStatus(statusOf([], [late, up]), 'web')?.id).toBe('up');
    // Where nothing runs, one with the same count is the newest, and about to be started or replaced.
    const same = { ...late, annotations: count('1') };
    expect(firstStatus(statusOf([], [same, { ...up, state: 'CONTAINER_EXITED' }]), 'web')?.id).toBe('late');
  });

  it('goes by the counts of the node where the clock of the runtime was set back', () => {
    const count = (n: string) => ({ 'io.kubernetes.container.restartCount': n });
    const ended = cri('ended', '11', { state: 'CONTAINER_EXITED', annotations: count('0') });
    const after = cri('after', '10', { state: 'CONTAINER_RUNNING', annotations: count('1') });
    expect(firstStatus(statusOf([], [ended, after]), 'web')?.id).toBe('after');
  });

  it('gives the next instance a count above all that ran, and never below what was shown', () => {
    const count = (n: string) => ({ 'io.kubernetes.container.restartCount': n });
    const ran = cri('ran', '10', { annotations: count('1') });
    const made = cri('made', '11', { state: 'CONTAINER_CREATED', annotations: count('0') });
    const shown = (restartCount: number, state: object, lastState: object = {}) => ({
      name: 'web',
      state,
      lastState,
      ready: false,
      restartCount,
      image: '',
      imageID: '',
    });
    const next = (list: CriContainerStatus[], of?: ReturnType<typeof shown>) => nextRestartCount(statusOf([], list), 'web', of);
    expect(next([ran, made])).toBe(2);
    expect(next([made])).toBe(0);
    expect(next([])).toBeNull();
    expect(next([ran], shown(4, { waiting: {} }))).toBe(4);
    expect(next([], shown(1, { waiting: {} }))).toBe(1);
    expect(next([], shown(1, { terminated: { exitCode: 0 } }))).toBe(2);
    expect(next([], shown(0, { waiting: {} }))).toBeNull();
    // Its hook failed and hides its end: the instance that was taken away since was its first.
    const hidden = shown(0, { waiting: { reason: 'PostStartHookError' } }, { terminated: { exitCode: 43 } });
    expect([next([], hidden), next([ran], hidden)]).toEqual([1, 2]);
  });

  it('turns nanoseconds into milliseconds, and 0 and the zero time of Go into never', () => {
    const x = toContainer(cri('a', '1', { startedAt: '1700000000123999999', finishedAt: '-6795364578871345152' }));
    expect(x.startedAtMs).toBe(1_700_000_000_123);
    expect(x.finishedAtMs).toBeNull();
  });

  it('takes addresses from the newest sandbox only, and only when it is ready and not on the host network', () => {
    expect(statusOf([sandbox()], []).ips).toEqual(['10.0.0.5', 'fd00::5']);
    expect(statusOf([sandbox({ state: 'SANDBOX_NOTREADY' })], []).ips).toEqual([]);
    expect(statusOf([sandbox({ id: 'new', createdAt: '9', state: 'SANDBOX_NOTREADY' }), sandbox()], []).ips).toEqual([]);
    const host = statusOf([sandbox({ linux: { namespaces: { options: { network: 'NODE' } } } })], []);
    expect([host.ips, host.sandboxes[0]?.hostNetwork, host.sandboxes[0]?.attempt]).toEqual([[], true, 3]);
  });

  it('reads back what was written on the container and finds the host file of its termination log', () => {
    const annotations = {
      'io.kubernetes.container.hash': 'B47EC1E2',
      'io.kubernetes.container.restartCount': 'many',
      'io.kubernetes.container.terminationMessagePath': '/dev/termination-log',
    };
    const mounts = [{ containerPath: '/dev/termination-log', hostPath: '/x/1' }];
    const x = toContainer(cri('a', '1', { annotations, mounts }));
    expect([x.hash, x.restartCount, x.terminationMessageHostPath]).toEqual(['b47ec1e2', 0, '/x/1']);
  });

  it('trap 17: back-off looks past the instance that was just replaced, not past those replaced before', () => {
    const ended = { startedAt: '1000000000', finishedAt: '9000000000' };
    const status = statusOf([], [cri('old', '1', ended), cri('killed', '2', ended)]);
    const kills = (ids: string[], of = status) =>
      withReplaced(
        new Map(),
        ids.map((id) => ({ id, name: 'web' })),
        { status: of, max: 32 },
      );
    const exit = (replaced: ReplacedInstances, healthyMs = 600_000) => exitForBackoff(status, 'web', { replaced, healthyMs })?.id ?? null;
    expect(exit(new Map())).toBe('killed');
    const then = statusOf([], [cri('old', '1', ended), cri('killed', '2', { state: 'CONTAINER_RUNNING' })]);
    const replaced = kills(['killed'], then);
    expect(exit(replaced)).toBe('old');
    expect(exit(replaced, 5_000), 'it had been healthy').toBeNull();
    const collected = statusOf([], [cri('killed', '2', ended)]);
    expect(exitForBackoff(collected, 'web', { replaced, healthyMs: 600_000 })?.id, 'remembered after it was collected').toBe('old');
    const first = kills(['killed'], statusOf([], [cri('killed', '2', { state: 'CONTAINER_RUNNING' })]));
    expect(exit(first), 'nothing ended before').toBeNull();
    expect(exitForBackoff(status, 'other', { replaced, healthyMs: 1 })).toBeNull();
    expect(withReplaced(replaced, [{ id: 'next', name: 'web' }], { status, max: 1 }).size).toBe(1);
  });

  it('takes an instance whose start the runtime broke off for one that never ran, and one that could not start for a failure', () => {
    const of = (more: Partial<CriContainerStatus>) => toContainer(cri('c', '1', { exitCode: 128, reason: 'StartError', ...more })).state;
    expect(of({ message: 'failed to create containerd task: failed to start shim: context canceled: unknown' })).toBe('created');
    expect(of({ message: 'failed to create containerd task: failed to start shim: start failed: : signal: killed: unknown' })).toBe(
      'created',
    );
    expect(of({ message: 'failed to create containerd task: failed to create shim task: ttrpc: closed: unknown' })).toBe('created');
    expect(of({ message: 'failed to create shim task: OCI runtime create failed: exec: "nope": executable file not found in $PATH' })).toBe(
      'exited',
    );
    expect(of({ message: 'failed to start containerd task "x": context deadline exceeded: unknown' })).toBe('created');
    expect(of({ message: 'exec: "nope": executable file not found in $PATH: unknown' })).toBe('exited');
    expect(of({ message: 'context canceled', startedAt: '7' })).toBe('exited');
    expect(of({ message: 'context canceled', reason: 'Error' })).toBe('exited');
  });
});
