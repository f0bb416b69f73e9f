/** Probes of whole nodes in virtual time: what they do to a pod, when they come, and that nothing flips for a restart. */
import { describe, expect } from 'vitest';
import { eventsView } from '../../../src/machines/foundation/messages.ts';
import { statusesView } from '../../../src/machines/pods/status/messages.ts';
import { itOnNode as it } from '../onNode.ts';
import { pod, type VirtualNode, virtualNode } from '../virtualNode.ts';

const exec = { exec: { command: ['check'] } };
const http = { httpGet: { path: '/healthz', port: 8080 } };

/** What the exec probes of each container say, by container name. */
function scripted(codes: Map<string, number>) {
  return {
    exec: ({ name }: { name: string }) => ({
      exitCode: codes.get(name) ?? 0,
      stdout: new TextEncoder().encode(`code ${codes.get(name) ?? 0}`),
    }),
  };
}
function condition(h: VirtualNode, name: string, type: string) {
  return h.status(name)?.status.conditions?.find((c) => c.type === type);
}
const ready = (h: VirtualNode, name: string) => condition(h, name, 'Ready')?.status === 'True';
const main = (h: VirtualNode, name: string) => h.status(name)?.status.containerStatuses?.find((c) => c.name === 'main');
function eventsOf(h: VirtualNode, reason: string): string[] {
  return (h.tree.registry.read(eventsView)?.value ?? []).filter((e) => e.reason === reason).map((e) => e.message);
}
/** Every value that Ready of this pod has from here on, across restarts of anything. */
function watchReady(h: VirtualNode, name: string): string[] {
  const seen: string[] = [];
  const look = () => {
    const status = condition(h, name, 'Ready')?.status;
    if (status !== undefined && seen.at(-1) !== status) seen.push(status);
  };
  look();
  h.tree.registry.watch(statusesView, look);
  return seen;
}

describe('readiness', () => {
  it('holds Ready back until the probe passes, and takes it away after failureThreshold failures', async () => {
    const codes = new Map([['main', 1]]);
    await using h = await virtualNode({ hollow: scripted(codes) });
    await h.run('web', pod('web', { container: { readinessProbe: { ...exec, periodSeconds: 5, failureThreshold: 2 } } }));
    await h.advance(12_000);
    expect(main(h, 'web')).toMatchObject({ ready: false, started: true });
    expect(condition(h, 'web', 'ContainersReady')).toMatchObject({
      status: 'False',
      reason: 'ContainersNotReady',
      message: 'containers with unready status: [main]',
    });
    expect(condition(h, 'web', 'Ready')).toMatchObject({ status: 'False', reason: 'ContainersNotReady' });
    expect(eventsOf(h, 'Unhealthy')).toEqual(['Readiness probe failed: code 1']);
    codes.set('main', 0);
    await h.until('it is ready', () => ready(h, 'web'), 6_000);
    codes.set('main', 1);
    await h.advance(5_500);
    expect(ready(h, 'web'), 'one failure is not yet two').toBe(true);
    await h.until('it is not ready', () => !ready(h, 'web'), 6_000);
    expect(main(h, 'web')?.restartCount).toBe(0);
    expect(h.running('web')).toHaveLength(1);
  });

  it('is asked at once when the container starts, then once per period', async ({ h }) => {
    h.write('web', pod('web', { container: { readinessProbe: { ...http, periodSeconds: 7 } } }));
    await h.until('it is ready', () => ready(h, 'web'), 5_000);
    await h.advance(21_500);
    const times = h.probes.asked.map((a) => a.atMs);
    expect(h.probes.asked[0]?.what).toMatch(/^http:\/\/[\d.]+:8080\/healthz$/);
    expect(times).toHaveLength(4);
    expect(times.slice(1).map((t, i) => t - (times[i] ?? 0))).toEqual([7_000, 7_000, 7_000]);
  });

  it('counts the initial delay from the start of the container', async ({ h }) => {
    h.write('web', pod('web', { container: { readinessProbe: { ...http, initialDelaySeconds: 5 } } }));
    await h.until('it runs', () => h.running('web').length === 1);
    const startedAtMs = h.time.clock.monoMs();
    await h.until('it is asked', () => h.probes.asked.length > 0, 16_000);
    const delayMs = (h.probes.asked[0]?.atMs ?? 0) - startedAtMs;
    expect(delayMs).toBeGreaterThanOrEqual(5_000);
    expect(delayMs).toBeLessThan(6_000);
  });

  it('counts it by its own clock where that of the runtime is hours behind', async () => {
    await using h = await virtualNode({ runtimeAheadMs: -5 * 3_600_000 });
    h.write('web', pod('web', { container: { readinessProbe: { ...http, initialDelaySeconds: 20 } } }));
    await h.until('it runs', () => h.running('web').length === 1);
    const startedAtMs = h.time.clock.monoMs();
    await h.until('it is asked', () => h.probes.asked.length > 0, 40_000);
    expect((h.probes.asked[0]?.atMs ?? 0) - startedAtMs).toBeGreaterThan(14_000);
  });

  it('goes on while the pod is being stopped; liveness does not (trap 40)', async ({ h }) => {
    h.write(
      'web',
      pod('web', {
        life: 'term=20s',
        container: {
          readinessProbe: { ...http, periodSeconds: 1, failureThreshold: 1 },
          livenessProbe: { tcpSocket: { port: 9 }, periodSeconds: 1 },
        },
      }),
    );
    await h.until('it is ready', () => ready(h, 'web'));
    await h.advance(2_000);
    h.remove('web');
    await h.until('it is being stopped', () => h.record('web')?.worker?.phase === 'terminating');
    await h.advance(1_500);
    const from = h.probes.asked.length;
    h.probes.answer = () => 500;
    await h.until('Ready is False while the container runs', () => !ready(h, 'web') && h.running('web').length === 1, 5_000);
    await h.advance(3_000);
    const asked = h.probes.asked.slice(from).map((a) => a.what);
    expect(asked.length).toBeGreaterThan(2);
    expect(asked.filter((a) => a.startsWith('tcp'))).toEqual([]);
    await h.until('it is gone', () => h.record('web') === undefined);
    const after = h.probes.asked.length;
    await h.advance(10_000);
    expect(h.probes.asked.length).toBe(after);
  });

  it('says nothing when the runtime does not answer: errors are tried three times and count as nothing (trap 41)', async ({ h }) => {
    h.write('web', pod('web', { container: { readinessProbe: { ...exec, periodSeconds: 5, failureThreshold: 1 } } }));
    await h.until('it is ready', () => ready(h, 'web'));
    let tries = 0;
    h.faults.fault = (method) => {
      if (method !== 'ExecSync') return undefined;
      tries += 1;
      return { kind: 'refuse', code: 2, details: 'the runtime is out of sorts' };
    };
    await h.advance(5_500);
    expect(tries).toBe(3);
    await h.advance(60_000);
    expect(ready(h, 'web')).toBe(true);
    expect(eventsOf(h, 'Unhealthy')[0]).toMatch(/^Readiness probe errored and resulted in unknown state: .*out of sorts/);
  });
});

describe('liveness', () => {
  it('has the container killed and started again without back-off (trap 17)', async () => {
    const codes = new Map<string, number>();
    await using h = await virtualNode({ hollow: scripted(codes) });
    await h.run('web', pod('web', { container: { livenessProbe: { ...exec, periodSeconds: 2, failureThreshold: 3 } } }));
    await h.advance(10_000);
    const first = h.running('web')[0]?.id;
    codes.set('main', 1);
    await h.advance(3_900);
    expect(h.running('web')[0]?.id, 'two failures are not three').toBe(first);
    await h.until('the container is another', () => h.running('web').length === 1 && h.running('web')[0]?.id !== first, 5_000);
    codes.set('main', 0);
    expect(eventsOf(h, 'Killing')).toContain('Container main failed liveness probe, will be restarted');
    await h.until('its count is 1', () => main(h, 'web')?.restartCount === 1 && ready(h, 'web'), 5_000);
    expect(main(h, 'web')?.state.running).toBeDefined();
    expect(eventsOf(h, 'BackOff')).toEqual([]);
    await h.advance(30_000);
    expect(main(h, 'web')?.restartCount).toBe(1);
    expect(h.violations).toEqual([]);
  });

  it.each(['livenessProbe', 'startupProbe'])(
    'that failed (%s) has an OnFailure container started again though it ended well',
    async (probe) => {
      const codes = new Map([['main', 1]]);
      await using h = await virtualNode({ hollow: scripted(codes) });
      const container = { [probe]: { ...exec, periodSeconds: 1, failureThreshold: 2 } };
      h.write('web', pod('web', { life: 'termExit=0', container, spec: { restartPolicy: 'OnFailure' } }));
      await h.until('it was stopped twice', () => h.containers('web').filter((c) => c.state === 'CONTAINER_EXITED').length === 2, 120_000);
      codes.set('main', 0);
      await h.until('it runs again', () => ready(h, 'web'), 120_000);
      expect(main(h, 'web')).toMatchObject({ restartCount: 2, lastState: { terminated: { exitCode: 0 } } });
      expect(h.phase('web')).toBe('Running');
      expect(h.lines.filter((l) => /status update refused/.test(JSON.stringify(l)))).toEqual([]);
    },
  );

  it('that fails for ever slows the container down like any crash loop', async () => {
    const codes = new Map([['main', 1]]);
    await using h = await virtualNode({ hollow: scripted(codes) });
    h.write('web', pod('web', { container: { livenessProbe: { ...exec, periodSeconds: 2, failureThreshold: 2 } } }));
    await h.until('it was restarted', () => main(h, 'web')?.restartCount === 1, 10_000);
    await h.until('it backs off', () => main(h, 'web')?.state.waiting?.reason === 'CrashLoopBackOff', 120_000);
    await h.advance(15 * 60_000);
    // 0, 10, 20, 40, 80, 160, 300, 300: eight restarts within the first quarter of an hour and a bit.
    expect(main(h, 'web')?.restartCount).toBeGreaterThan(4);
    expect(main(h, 'web')?.restartCount).toBeLessThan(12);
    codes.set('main', 0);
    await h.until('it runs again', () => ready(h, 'web'), 310_000);
    expect(h.violations).toEqual([]);
  });

  it("gives the container the probe's own grace", async () => {
    const codes = new Map<string, number>();
    await using h = await virtualNode({ hollow: scripted(codes) });
    const livenessProbe = { ...exec, periodSeconds: 1, failureThreshold: 1, terminationGracePeriodSeconds: 7 };
    await h.run('web', pod('web', { life: 'term=ignore', container: { livenessProbe }, spec: { terminationGracePeriodSeconds: 300 } }));
    codes.set('main', 1);
    await h.until('it is asked to stop', () => h.calls.some((c) => c.method === 'StopContainer'), 10_000);
    expect(h.calls.find((c) => c.method === 'StopContainer')?.req).toMatchObject({ timeout: 7 });
  });

  it('kills the only container of a Never pod for good', async () => {
    const codes = new Map([['main', 1]]);
    await using h = await virtualNode({ hollow: scripted(codes) });
    const livenessProbe = { ...exec, periodSeconds: 1, failureThreshold: 1 };
    h.write('once', pod('once', { container: { livenessProbe }, spec: { restartPolicy: 'Never' } }));
    await h.until('it has failed', () => h.phase('once') === 'Failed');
    expect(eventsOf(h, 'Unhealthy')).toContain('Liveness probe failed: code 1');
    expect(eventsOf(h, 'Started')).toHaveLength(1);
    expect(main(h, 'once')?.restartCount).toBe(0);
  });
});

describe('startup', () => {
  it('holds the other probes back until it succeeds, then they come at once', async () => {
    const codes = new Map([['main', 1]]);
    await using h = await virtualNode({ hollow: scripted(codes) });
    h.write(
      'slow',
      pod('slow', {
        container: {
          startupProbe: { ...exec, periodSeconds: 2, failureThreshold: 30 },
          readinessProbe: { ...http, periodSeconds: 60 },
          livenessProbe: { tcpSocket: { port: 9 }, periodSeconds: 60 },
        },
      }),
    );
    await h.until('it runs', () => h.phase('slow') === 'Running');
    await h.advance(20_000);
    expect(main(h, 'slow')).toMatchObject({ started: false, ready: false });
    expect(h.probes.asked).toEqual([]);
    codes.set('main', 0);
    await h.until('it has started and is ready', () => main(h, 'slow')?.started === true && ready(h, 'slow'), 3_000);
    expect(h.probes.asked.map((a) => a.what.split(':')[0]).sort()).toEqual([expect.stringMatching(/^tcp/), 'http'].reverse());
    const execs = h.calls.filter((c) => c.method === 'ExecSync').length;
    await h.advance(30_000);
    expect(h.calls.filter((c) => c.method === 'ExecSync').length, 'a startup probe is done when it succeeded').toBe(execs);
  });

  it('that fails has the container killed and started again', async () => {
    const codes = new Map([['main', 1]]);
    await using h = await virtualNode({ hollow: scripted(codes) });
    h.write('slow', pod('slow', { container: { startupProbe: { ...exec, periodSeconds: 1, failureThreshold: 4 } } }));
    await h.until('it was restarted', () => main(h, 'slow')?.restartCount === 1, 30_000);
    expect(eventsOf(h, 'Killing')).toContain('Container main failed startup probe, will be restarted');
    codes.set('main', 0);
    await h.until('it is ready', () => ready(h, 'slow'), 30_000);
    expect(h.violations).toEqual([]);
  });

  it('of a sidecar holds back what comes after it (trap 39)', async () => {
    const codes = new Map([['init-0', 1]]);
    await using h = await virtualNode({ hollow: scripted(codes) });
    const sidecar = { restartPolicy: 'Always', startupProbe: { ...exec, periodSeconds: 1, failureThreshold: 60 }, readinessProbe: http };
    h.probes.answer = () => 503;
    h.write('pair', pod('pair', { inits: [sidecar] }));
    await h.until('the sidecar runs', () => h.running('pair').length === 1);
    await h.advance(10_000);
    expect(h.running('pair').map((c) => c.name)).toEqual(['init-0']);
    codes.set('init-0', 0);
    // Started is enough; ready it need not be.
    await h.until('the main container runs', () => h.running('pair').length === 2, 5_000);
    expect(ready(h, 'pair')).toBe(false);
    h.probes.answer = () => 200;
    await h.until('the pod is ready', () => ready(h, 'pair'), 15_000);
  });
});

describe('after a restart', () => {
  const web = pod('web', {
    container: {
      startupProbe: { ...exec, periodSeconds: 5 },
      readinessProbe: { ...http, periodSeconds: 30, initialDelaySeconds: 20 },
    },
  });

  it('of the daemon, what was ready stays ready until its probe says otherwise', async ({ h }) => {
    h.write('web', web);
    await h.until('it is ready', () => ready(h, 'web'), 60_000);
    await h.advance(1_000);
    await h.restart();
    const seen = watchReady(h, 'web');
    await h.until('its status is there', () => h.status('web') !== undefined);
    await h.advance(120_000);
    expect(seen).toEqual(['True']);
    expect(main(h, 'web')?.restartCount).toBe(0);
    h.probes.answer = () => 500;
    await h.until('its probe says otherwise', () => !ready(h, 'web'), 120_000);
  });

  it('of any actor on the way, Ready does not flip', async ({ h }) => {
    h.write('web', web);
    await h.until('it is ready', () => ready(h, 'web'), 60_000);
    const seen = watchReady(h, 'web');
    for (const path of [
      'node/services/probes',
      'node/services',
      'node/pods/status',
      'node/pods/podManager',
      'node/runtime',
      'node/foundation/checkpoint',
    ]) {
      expect(h.kill(path), path).toBe(true);
      await h.until(`${path} is up`, () => h.actor(path)?.lifecycle === 'running' && h.status('web') !== undefined, 120_000);
      await h.advance(70_000);
      expect(seen, path).toEqual(['True']);
    }
  });

  it('does not ask everything at once', async ({ h }) => {
    const names = Array.from({ length: 40 }, (_, i) => `p${i}`);
    for (const name of names)
      h.write(name, pod(name, { container: { readinessProbe: { ...http, periodSeconds: 20, failureThreshold: 1 } } }));
    await h.until('all are ready', () => names.every((n) => ready(h, n)), 120_000);
    await h.advance(5_000);
    await h.crash();
    h.probes.asked.length = 0;
    await h.boot();
    await h.until('all have a status', () => names.every((n) => h.status(n) !== undefined));
    const beganMs = h.time.clock.monoMs();
    await h.advance(20_000);
    const at = h.probes.asked.map((a) => a.atMs - beganMs);
    expect(at).toHaveLength(40);
    for (let second = 0; second < 20; second++) {
      expect(at.filter((t) => t >= second * 1_000 && t < (second + 1) * 1_000).length, `in second ${second}`).toBeLessThanOrEqual(8);
    }
    expect(names.every((n) => ready(h, n))).toBe(true);
  });

  it('with a checkpoint that cannot be read, pods are ready again as soon as their probes pass', async ({ h }) => {
    h.write('web', pod('web', { container: { readinessProbe: { ...http, periodSeconds: 300 } } }));
    await h.until('it is ready', () => ready(h, 'web'));
    await h.advance(1_000);
    await h.crash();
    h.fs.put('/var/lib/kubelet/actorlet/state/probes.json', 'torn');
    await h.boot();
    await h.until('it is ready again', () => ready(h, 'web'), 5_000);
  });
});

it('bounds how many commands run at once, and a slow one does not starve the others', async () => {
  let running = 0;
  let most = 0;
  await using h = await virtualNode();
  const names = Array.from({ length: 30 }, (_, i) => `p${i}`);
  h.faults.latencyMs.ExecSync = 400;
  h.faults.fault = (method) => {
    if (method !== 'ExecSync') return undefined;
    running += 1;
    most = Math.max(most, running);
    h.time.clock.setTimeout(() => {
      running -= 1;
    }, 400);
    return undefined;
  };
  for (const name of names) h.write(name, pod(name, { container: { readinessProbe: { ...exec, periodSeconds: 5 } } }));
  await h.until('all are ready', () => names.every((n) => ready(h, n)), 120_000);
  await h.advance(30_000);
  expect(most).toBeLessThanOrEqual(8);
  expect(most).toBeGreaterThan(1);
});

it('says of a port that nobody listens on what the reference says', async ({ h }) => {
  h.probes.answer = () => 'refused';
  const port = { port: 81 };
  h.write(
    'web',
    pod('web', {
      container: { readinessProbe: { httpGet: { ...port, path: '/x' } }, startupProbe: { tcpSocket: port, failureThreshold: 99 } },
    }),
  );
  h.write('two', pod('two', { container: { readinessProbe: { httpGet: { ...port, path: '/x' } } } }));
  await h.until('both failed', () => eventsOf(h, 'Unhealthy').length > 1, 30_000);
  expect(eventsOf(h, 'Unhealthy').sort()).toEqual([
    expect.stringMatching(/^Readiness probe failed: Get "http:\/\/([\d.]+):81\/x": dial tcp \1:81: connect: connection refused$/),
    expect.stringMatching(/^Startup probe failed: dial tcp [\d.]+:81: connect: connection refused$/),
  ]);
});

it('counts on over the restarts of a container, as long as there is the pod', async () => {
  await using h = await virtualNode({ hollow: scripted(new Map([['main', 1]])) });
  h.write('web', pod('web', { container: { livenessProbe: { ...exec, periodSeconds: 1, failureThreshold: 1 } } }));
  await h.until('it was restarted', () => (main(h, 'web')?.restartCount ?? 0) > 2, 120_000);
  const rows = async () => (await h.metrics.render()).split('\n').filter((l) => l.startsWith('prober_'));
  // The time that a failed probe took is not told, as in the reference.
  expect(await rows()).toEqual([expect.stringMatching(/^prober_probe_total\{.*result="failed"\} [3-9]$/)]);
  h.remove('web');
  await h.until('it is gone', () => h.record('web') === undefined);
  await h.settle();
  expect(await rows()).toEqual([]);
});

it('asks gRPC at the address of the pod, and shows its metrics for as long as there is a probe', async ({ h }) => {
  h.write('rpc', pod('rpc', { container: { readinessProbe: { grpc: { port: 50051, service: 'front' } } } }));
  await h.until('it is ready', () => ready(h, 'rpc'));
  expect(h.probes.asked[0]?.what).toMatch(/^grpc [\d.]+:50051 front$/);
  const metrics = async () => (await h.metrics.render()).split('\n').filter((l) => l.startsWith('prober_'));
  expect(await metrics()).toContainEqual(
    `prober_probe_total{container="main",namespace="default",pod="rpc-n1",pod_uid="${h.uid('rpc')}",probe_type="Readiness",result="successful"} 1`,
  );
  h.remove('rpc');
  await h.until('it is gone', () => h.record('rpc') === undefined);
  await h.settle();
  expect(await metrics()).toEqual([]);
});
