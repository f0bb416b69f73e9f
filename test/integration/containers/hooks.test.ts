/** Lifecycle hooks on a whole node in virtual time (pod lifecycle 5.13, 5.14; traps 31, 32, 45, 46). */
import { describe, expect } from 'vitest';
import { eventsView } from '../../../src/machines/foundation/messages.ts';
import { workersAddr } from '../../../src/machines/pods/workers/messages.ts';
import type { CriMethod, CriRequest } from '../../../src/machines/wire/criCalls.ts';
import { itWith } from '../onNode.ts';
import { pod, type VirtualNode, virtualNode } from '../virtualNode.ts';

const HOOK = 'hook';
/** Takes so long, then ends with that code. */
const command = (delayMs: number, exitCode = 0): object => ({ exec: { command: [HOOK, String(delayMs), String(exitCode)] } });
const messages = (h: VirtualNode, reason: string): string[] =>
  (h.tree.registry.read(eventsView)?.value ?? []).filter((e) => e.reason === reason).map((e) => e.message);
/** Of each command, whether the runtime was told to give it up. */
const cancelled = (h: VirtualNode): boolean[] => h.calls.filter((c) => c.method === 'ExecSync').map((c) => c.signal.aborted);

interface Seen {
  method: CriMethod;
  /** Name of the container, for a start of the configuration's. */
  name: string;
  /** Seconds, for a stop. */
  timeout: number;
  atMs: number;
}

/** A node whose runtime runs {@link command}, and what it was asked for since. */
async function hooked(): Promise<VirtualNode & { seen: Seen[]; of(method: CriMethod, name?: string): Seen[] }> {
  const h = await virtualNode({
    hollow: {
      exec: (_, [name, delayMs, exitCode]) => (name === HOOK ? { delayMs: Number(delayMs), exitCode: Number(exitCode) } : undefined),
    },
  });
  const seen: Seen[] = [];
  h.faults.fault = (method, req) => {
    const { containerId, timeout } = req as { containerId?: string; timeout?: number };
    const name = h.runtime.dump().containers.find((c) => c.id === containerId)?.name ?? '';
    seen.push({ method, name, timeout: Number(timeout ?? 0), atMs: h.time.clock.monoMs() });
    return undefined;
  };
  const of = (method: CriMethod, name?: string) => seen.filter((s) => s.method === method && (name === undefined || s.name === name));
  return Object.assign(h, { seen, of });
}
const it = itWith(hooked);
async function running(h: VirtualNode, name: string, manifest: object): Promise<void> {
  h.write(name, manifest);
  await h.until(`${name} runs`, () => h.phase(name) === 'Running');
  await h.advance(5_000);
}
const waiting = (h: VirtualNode, name: string, container = 'main') =>
  h.status(name)?.status.containerStatuses?.find((s) => s.name === container)?.state.waiting;

describe('preStop', () => {
  it('runs before TERM, and whole seconds of it are taken from the grace', async ({ h }) => {
    await running(
      h,
      'web',
      pod('web', { container: { lifecycle: { preStop: command(3_700) } }, spec: { terminationGracePeriodSeconds: 20 } }),
    );
    h.remove('web');
    await h.until('it has ended', () => h.running('web').length === 0);
    const [hook] = h.of('ExecSync');
    const [stop] = h.of('StopContainer');
    expect(h.of('ExecSync')).toHaveLength(1);
    expect(stop).toMatchObject({ timeout: 17 });
    expect((stop?.atMs ?? 0) - (hook?.atMs ?? 0)).toBeGreaterThanOrEqual(3_700);
    expect(messages(h, 'FailedPreStopHook')).toEqual([]);
  });

  it('that takes longer than the grace leaves 2 s for the stop (trap 32), and that is said', async ({ h }) => {
    await running(
      h,
      'web',
      pod('web', { container: { lifecycle: { preStop: command(900_000) } }, spec: { terminationGracePeriodSeconds: 8 } }),
    );
    h.remove('web');
    await h.until('it is stopped', () => h.of('StopContainer').length === 1);
    // As with the kubelet it runs on.
    expect(cancelled(h)).toEqual([false]);
    await h.until('it has ended', () => h.running('web').length === 0);
    const [hook] = h.of('ExecSync');
    const [stop] = h.of('StopContainer');
    expect(stop).toMatchObject({ timeout: 2 });
    expect(Math.round(((stop?.atMs ?? 0) - (hook?.atMs ?? 0)) / 1_000)).toBe(8);
    expect(messages(h, 'FailedPreStopHook')).toEqual(['PreStopHook failed: it did not end within 8 s']);
  });

  it('of a pod deleted by force is skipped, and TERM still has 2 s (trap 31)', async ({ h }) => {
    const manifest = pod('web', { uid: 'pinned-1', container: { lifecycle: { preStop: command(1_000) } } }) as { metadata: object };
    await running(h, 'web', manifest);
    h.write('web', {
      ...manifest,
      metadata: { ...manifest.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 0 },
    });
    await h.until('it has ended', () => h.running('web').length === 0);
    expect(h.of('ExecSync')).toEqual([]);
    expect(h.of('StopContainer')).toMatchObject([{ timeout: 2 }]);
  });

  it('that fails is said without what the command printed, and the stop goes on with the rest of the grace', async ({ h }) => {
    await running(
      h,
      'web',
      pod('web', { container: { lifecycle: { preStop: command(0, 7) } }, spec: { terminationGracePeriodSeconds: 9 } }),
    );
    h.remove('web');
    await h.until('it has ended', () => h.running('web').length === 0);
    expect(h.of('StopContainer')).toMatchObject([{ timeout: 9 }]);
    expect(messages(h, 'FailedPreStopHook')).toEqual(['PreStopHook failed: command exited with code 7']);
  });

  it('runs for a container that its liveness probe ends', async ({ h }) => {
    h.probes.answer = (what) => (what.includes('/live') ? 500 : 200);
    const livenessProbe = { httpGet: { port: 80, path: '/live' }, periodSeconds: 1, failureThreshold: 1, terminationGracePeriodSeconds: 6 };
    h.write('web', pod('web', { container: { livenessProbe, lifecycle: { preStop: command(1_000) } } }));
    await h.until('it is stopped', () => h.of('StopContainer').length > 0);
    expect(h.of('ExecSync')).toHaveLength(1);
    expect(h.of('StopContainer')[0]).toMatchObject({ timeout: 5 });
  });

  it('does not run for a container that has ended', async ({ h }) => {
    h.write(
      'web',
      pod('web', { life: 'run=1s,exit=0', container: { lifecycle: { preStop: command(0) } }, spec: { restartPolicy: 'Never' } }),
    );
    await h.until('it is over', () => h.phase('web') === 'Succeeded');
    h.remove('web');
    await h.until('it is gone', () => h.record('web') === undefined);
    expect(h.of('ExecSync')).toEqual([]);
  });

  it('of one container does not hold up the stop of another; a sidecar waits, its hook does not (trap 39)', async ({ h }) => {
    const slow = { name: 'slow', image: 'busybox:1', lifecycle: { preStop: command(6_000) } };
    const quick = { name: 'quick', image: 'busybox:1' };
    const inits = [
      { name: 'first', restartPolicy: 'Always', lifecycle: { preStop: command(1_000) } },
      { name: 'second', restartPolicy: 'Always' },
    ];
    await running(h, 'web', pod('web', { inits, spec: { containers: [slow, quick], terminationGracePeriodSeconds: 30 } }));
    const began = h.time.clock.monoMs();
    h.remove('web');
    await h.until('it has ended', () => h.running('web').length === 0);
    const at = (name: string) => Math.floor(((h.of('StopContainer', name)[0]?.atMs ?? 0) - began) / 1_000);
    expect(Math.floor(((h.of('ExecSync', 'first')[0]?.atMs ?? 0) - began) / 1_000)).toBeLessThan(2);
    expect(at('quick')).toBeLessThan(2);
    expect(at('slow')).toBeGreaterThanOrEqual(6);
    expect(h.of('StopContainer').map((s) => s.name)).toEqual(['quick', 'slow', 'second', 'first']);
    expect(h.of('StopContainer', 'first')[0]?.timeout).toBeLessThanOrEqual(24);
  });

  it('that a smaller grace meets is cancelled, and run anew within that one', async ({ h }) => {
    await running(
      h,
      'web',
      pod('web', { container: { lifecycle: { preStop: command(900_000) } }, spec: { terminationGracePeriodSeconds: 600 } }),
    );
    const uid = h.uid('web');
    h.remove('web');
    await h.until('the hook runs', () => h.of('ExecSync').length === 1);
    await h.advance(5_000);
    h.tree.registry.send(workersAddr, { type: 'pod.kill', uid, life: 1, graceOverrideSeconds: 3 });
    await h.until('it runs again', () => h.of('ExecSync').length === 2);
    expect(cancelled(h)).toEqual([true, false]);
    await h.until('it has ended', () => h.running('web').length === 0, 10_000);
    expect(h.of('StopContainer').map((s) => s.timeout)).toEqual([2]);
  });

  it('is not run again once it has ended, when a smaller grace interrupts the stop', async ({ h }) => {
    await running(
      h,
      'web',
      pod('web', {
        life: 'term=ignore',
        container: { lifecycle: { preStop: command(3_000) } },
        spec: { terminationGracePeriodSeconds: 60 },
      }),
    );
    const uid = h.uid('web');
    h.remove('web');
    await h.until('the hook has ended', () => h.of('StopContainer').length === 1);
    h.tree.registry.send(workersAddr, { type: 'pod.kill', uid, life: 1, graceOverrideSeconds: 4 });
    await h.until('it has ended', () => h.running('web').length === 0);
    expect(h.of('ExecSync')).toHaveLength(1);
    expect(h.of('StopContainer').map((s) => s.timeout)).toEqual([57, 4]);
  });

  it('runs again when the daemon was killed in the middle of it', async ({ h }) => {
    await running(
      h,
      'web',
      pod('web', { container: { lifecycle: { preStop: command(4_000) } }, spec: { terminationGracePeriodSeconds: 30 } }),
    );
    h.remove('web');
    await h.until('the hook runs', () => h.of('ExecSync').length === 1);
    await h.restart();
    await h.until('it has ended', () => h.running('web').length === 0);
    expect(h.of('ExecSync')).toHaveLength(2);
    expect(h.of('StopContainer')).toMatchObject([{ timeout: 26 }]);
  });

  it('that sleeps takes its time from the grace; one that only opens a connection is no hook', async ({ h }) => {
    const containers = [
      { name: 'sleeps', image: 'busybox:1', lifecycle: { preStop: { sleep: { seconds: 5 } } } },
      { name: 'dials', image: 'busybox:1', lifecycle: { preStop: { tcpSocket: { port: 80 } } } },
    ];
    await running(h, 'web', pod('web', { spec: { containers, terminationGracePeriodSeconds: 30 } }));
    h.remove('web');
    await h.until('it has ended', () => h.running('web').length === 0);
    expect(h.of('StopContainer', 'sleeps')).toMatchObject([{ timeout: 25 }]);
    expect(h.of('StopContainer', 'dials')).toMatchObject([{ timeout: 30 }]);
    expect(messages(h, 'FailedPreStopHook')).toEqual(['PreStopHook failed: invalid handler: only exec, httpGet and sleep can be run']);
  });
});

describe('postStart', () => {
  it('holds up later containers and the status of its own until it has ended (trap 46)', async ({ h }) => {
    const containers = [
      { name: 'a', image: 'busybox:1', lifecycle: { postStart: command(7_000) } },
      { name: 'b', image: 'busybox:1' },
    ];
    h.write('web', pod('web', { spec: { containers } }));
    await h.until('the hook runs', () => h.of('ExecSync').length === 1);
    await h.advance(5_000);
    expect(h.running('web').map((c) => c.name)).toEqual(['a']);
    expect([h.phase('web'), waiting(h, 'web', 'a')]).toEqual(['Pending', { reason: 'ContainerCreating' }]);
    await h.until('both run', () => h.phase('web') === 'Running');
    const [hook] = h.of('ExecSync');
    const [, second] = h.of('StartContainer');
    expect((second?.atMs ?? 0) - (hook?.atMs ?? 0)).toBeGreaterThanOrEqual(7_000);
  });

  it('of a sidecar holds up what comes after it', async ({ h }) => {
    const inits = [{ name: 'side', restartPolicy: 'Always', lifecycle: { postStart: command(4_000) } }];
    h.write('web', pod('web', { inits, life: '' }));
    await h.until('the hook runs', () => h.of('ExecSync').length === 1);
    await h.advance(3_000);
    expect(h.running('web').map((c) => c.name)).toEqual(['side']);
    await h.until('all run', () => h.running('web').length === 2);
  });

  it('that fails ends the container, says so, and it is started again with back-off', async ({ h }) => {
    h.write('web', pod('web', { container: { lifecycle: { postStart: command(200, 3), preStop: command(100) } } }));
    await h.until('its reason shows', () => waiting(h, 'web')?.reason === 'PostStartHookError');
    expect(waiting(h, 'web')?.message).toBe('command exited with code 3');
    expect(messages(h, 'FailedPostStartHook')).toEqual(['PostStartHook failed: command exited with code 3']);
    expect(messages(h, 'Killing')).toEqual(['FailedPostStartHook']);
    // Its preStop hook runs before it is stopped.
    expect(h.seen.filter((s) => s.method === 'ExecSync' || s.method === 'StopContainer').map((s) => s.method)).toEqual([
      'ExecSync',
      'ExecSync',
      'StopContainer',
    ]);
    await h.until('it was started again and again', () => h.of('StartContainer').length === 3);
    // It counts as a crash: once at once, and then after a wait.
    const [first = 0, second = 0, third = 0] = h.of('StartContainer').map((s) => s.atMs);
    expect(second - first).toBeLessThan(2_000);
    expect(third - second).toBeGreaterThanOrEqual(10_000);
    expect(third - second).toBeLessThan(12_000);
    await h.until('back-off shows', () => waiting(h, 'web')?.reason === 'CrashLoopBackOff', 120_000);
  });

  it('that fails is followed by a stop until one succeeds', async ({ h }) => {
    const log = h.faults.fault;
    h.faults.fault = (method, req) => {
      log(method, req);
      return method === 'StopContainer' && h.of('StopContainer').length < 3 ? { kind: 'refuse', code: 2, details: 'not now' } : undefined;
    };
    h.write('web', pod('web', { container: { lifecycle: { postStart: command(200, 3) } } }));
    await h.until('the stop failed', () => h.containerState('web', 'main') === 'stoppingAgain');
    await h.until('its reason shows', () => waiting(h, 'web')?.reason === 'PostStartHookError');
    expect(h.of('StopContainer')).toHaveLength(3);
    expect(h.running('web')).toEqual([]);
  });

  it('that fails ends a Never pod', async ({ h }) => {
    h.write('web', pod('web', { container: { lifecycle: { postStart: command(200, 3) } }, spec: { restartPolicy: 'Never' } }));
    await h.until('it is over', () => h.phase('web') === 'Failed');
    expect(h.of('StartContainer')).toHaveLength(1);
  });

  it('over HTTP is content with any answer (trap 45), and fails where there is none', async ({ h }) => {
    h.probes.answer = (what) => (what.includes(':81/') ? 'refused' : 500);
    const lifecycle = (port: number) => ({ lifecycle: { postStart: { httpGet: { port, path: '/started?token=hunter2' } } } });
    await running(h, 'good', pod('good', { container: lifecycle(80) }));
    expect(h.probes.asked.map((a) => a.what)).toEqual([expect.stringMatching(/^http:\/\/[0-9.]+(:80)?\/started\?token=hunter2$/)]);
    h.write('bad', pod('bad', { container: lifecycle(81) }));
    await h.until('its reason shows', () => waiting(h, 'bad')?.reason === 'PostStartHookError');
    expect(messages(h, 'FailedPostStartHook')).toEqual([
      expect.stringMatching(/^PostStartHook failed: request to [0-9.]+:81: connect ECONNREFUSED$/),
    ]);
    expect(JSON.stringify([messages(h, 'FailedPostStartHook'), waiting(h, 'bad')])).not.toContain('hunter2');
    // Its cause goes: it comes up without help.
    h.probes.answer = () => 200;
    await h.until('it runs', () => h.phase('bad') === 'Running', 120_000);
  });

  it('over HTTPS is content with a server that speaks plain HTTP, which is said and counted', async ({ h }) => {
    h.probes.answer = (what) => (what.startsWith('https:') ? 'plain' : 200);
    const lifecycle = { postStart: { httpGet: { port: 80, path: '/started', scheme: 'HTTPS' } } };
    await running(h, 'web', pod('web', { container: { lifecycle } }));
    expect(h.probes.asked.map((a) => new URL(a.what).protocol)).toEqual(['https:', 'http:']);
    expect(messages(h, 'LifecycleHTTPFallback')).toHaveLength(1);
    expect(await h.metrics.render()).toContain('kubelet_lifecycle_handler_http_fallbacks_total 1\n');
  });

  it('does not run again for a container that runs already when the daemon comes back', async ({ h }) => {
    h.write('web', pod('web', { container: { lifecycle: { postStart: command(60_000) } } }));
    await h.until('the hook runs', () => h.of('ExecSync').length === 1);
    await h.restart();
    await h.until('it counts as running', () => h.phase('web') === 'Running');
    await h.advance(90_000);
    expect([h.of('ExecSync').length, h.of('StartContainer').length]).toEqual([1, 1]);
  });

  it('is run again when the link to the runtime went away in the middle of it: the container is left alone', async ({ h }) => {
    h.write('web', pod('web', { container: { lifecycle: { postStart: command(4_000) } } }));
    await h.until('the hook runs', () => h.of('ExecSync').length === 1);
    h.kill('node/runtime/cri');
    await h.until('it counts as running', () => h.phase('web') === 'Running');
    expect([h.of('ExecSync').length, h.of('StartContainer').length, h.of('StopContainer').length]).toEqual([2, 1, 0]);
    expect(messages(h, 'FailedPostStartHook')).toEqual([]);
  });

  it('is not waited for when its container ends, or its pod goes', async ({ h }) => {
    h.write('web', pod('web', { life: 'run=2s,exit=4', container: { lifecycle: { postStart: { sleep: { seconds: 25 } } } } }));
    await h.until('it is started again', () => h.of('StartContainer').length === 2, 20_000);
    h.write('other', pod('other', { container: { lifecycle: { postStart: { sleep: { seconds: 25 } } } } }));
    await h.until('the other one is in its hook', () => h.containerState('other', 'main') === 'hooking');
    h.remove('other');
    await h.until('it is gone', () => h.record('other') === undefined, 10_000);
  });

  it('that hangs does not keep a new definition from being followed', async ({ h }) => {
    const of = (image: string, delayMs: number) =>
      pod('web', { uid: 'pinned-1', container: { image, lifecycle: { postStart: command(delayMs) } } });
    h.write('web', of('busybox:1', 9_000_000));
    await h.until('the hook runs', () => h.containerState('web', 'main') === 'hooking');
    await h.advance(5_000);
    h.write('web', of('busybox:2', 100));
    await h.until('it runs', () => h.phase('web') === 'Running', 120_000);
    expect(h.of('StartContainer')).toHaveLength(2);
  });
});

it('a container whose image is still pulled when its pod gets a new definition is created by that one', async ({ h }) => {
  const of = (tag: number) => {
    const containers = ['old', 'slow'].map((name) => ({ name, image: `${name}:${tag}` }));
    return pod('web', { uid: 'pinned', lives: { old: 'term=8s' }, spec: { containers, terminationGracePeriodSeconds: 20 } });
  };
  h.faults.latencyMs.PullImage = 3_000;
  h.write('web', of(1));
  await h.until('one of them runs', () => h.running('web').length === 1, 10_000);
  h.write('web', of(2));
  await h.until('both run', () => h.running('web').length === 2 && h.of('StartContainer').length > 2, 60_000);
  const made = h.calls.flatMap(({ method, req }) => (method === 'CreateContainer' ? [(req as CriRequest<'CreateContainer'>).config] : []));
  expect(made.map(({ image }) => image.userSpecifiedImage).sort()).toEqual(['old:1', 'old:2', 'slow:2']);
});

describe('restart rules', () => {
  const rule = (operator: string, values: number[]) => [{ action: 'Restart', exitCodes: { operator, values } }];

  it('start a container of a Never pod again after the codes they name, and after no other', async ({ h }) => {
    const container = { restartPolicy: 'Never', restartPolicyRules: rule('In', [42]) };
    h.write('web', pod('web', { life: 'run=1s,exit=42;run=1s,exit=1', container, spec: { restartPolicy: 'Never' } }));
    await h.until('it is over', () => h.phase('web') === 'Failed', 120_000);
    expect(h.of('StartContainer')).toHaveLength(2);
  });

  it('let one container of an Always pod end for good while the others run', async ({ h }) => {
    const containers = [
      { name: 'once', image: 'busybox:1', restartPolicy: 'Never' },
      { name: 'main', image: 'busybox:1' },
    ];
    await running(h, 'web', pod('web', { lives: { once: 'run=1s,exit=1' }, spec: { containers } }));
    await h.advance(60_000);
    expect(h.of('StartContainer')).toHaveLength(2);
    expect(h.phase('web')).toBe('Running');
  });

  it('let an init container of an Always pod fail its pod', async ({ h }) => {
    h.write('web', pod('web', { lives: { 'init-0': 'run=1s,exit=1' }, inits: [{ restartPolicy: 'Never' }] }));
    await h.until('it is over', () => h.phase('web') === 'Failed', 60_000);
    expect(h.of('StartContainer')).toHaveLength(1);
  });
});
