/** Probes on a real containerd: each kind failing and recovering, what it does to the container, and no flips for a restart. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Container } from '../../../src/machines/kube/podTable.ts';
import { RUNS_ALL } from '../../rotation.ts';
import type { Daemon, PodView } from '../daemon.ts';
import type { Containerd } from '../lab/containerd.ts';
import { until } from '../lab/ports.ts';
import { manifest, sh, steady } from '../manifests.ts';
import { onContainerd } from '../onContainerd.ts';
import { containers, exec, hostPid, running } from '../runtime.ts';

let lab: Containerd;
let daemon: Daemon;
const helpers: ChildProcess[] = [];

onContainerd((made) => ({ lab, daemon } = made));
afterAll(() => {
  for (const child of helpers) child.kill('SIGKILL');
});

const WAIT_MS = 60_000;
const isReady = (p: PodView) => p.status.conditions?.find((c) => c.type === 'Ready')?.status === 'True';
const ready = (name: string) => daemon.podWhere(name, `${name} to be ready`, isReady, WAIT_MS);
const unready = (name: string) =>
  daemon.podWhere(name, `${name} not to be ready`, (p) => p.status.phase === 'Running' && !isReady(p), WAIT_MS);
async function idOf(pod: string): Promise<string> {
  return until(`${pod} to run`, async () => (await containers(lab, pod)).find((c) => c.running)?.id ?? false, { timeoutMs: WAIT_MS });
}
async function unhealthy(pod: string, words: RegExp): Promise<void> {
  const fits = async () => (await daemon.events(pod)).some((e) => e.reason === 'Unhealthy' && words.test(e.message));
  await daemon.wait(`an event of ${pod} like ${words}`, fits, { timeoutMs: WAIT_MS });
}
/** Not ready, ready, not ready and ready again, always in the same container. */
async function goesUpAndDown(
  pod: string,
  o: { words: RegExp; up(id: string): Promise<unknown>; down(id: string): Promise<unknown> },
): Promise<void> {
  const id = await idOf(pod);
  const before = await unready(pod);
  expect(before.status.conditions?.find((c) => c.type === 'ContainersReady')).toMatchObject({
    status: 'False',
    reason: 'ContainersNotReady',
    message: 'containers with unready status: [main]',
  });
  await unhealthy(pod, o.words);
  await o.up(id);
  await ready(pod);
  await o.down(id);
  await unready(pod);
  await o.up(id);
  const after = await ready(pod);
  expect(await idOf(pod)).toBe(id);
  expect(after.status.containerStatuses?.[0]).toMatchObject({ restartCount: 0, started: true, ready: true });
}

/** The time-out is long for the sake of slow machines: a probe that fails here does so at once. */
const quick = { periodSeconds: 1, failureThreshold: 2, timeoutSeconds: 30 };
/** Puts a web server into the container, which serves /www, and takes it away again. */
const serve = (id: string) => exec(lab, id, 'mkdir -p /www && echo fine > /www/healthz && httpd -p 8080 -h /www');
const stopServing = (id: string) => exec(lab, id, 'kill $(pidof httpd 2>/dev/null || ps | grep "[h]ttpd -p" | awk "{print \\$1}")');

describe.concurrent('readiness', () => {
  it('by exec follows the exit code', async () => {
    const readinessProbe = { ...quick, exec: { command: ['sh', '-c', 'test -f /tmp/$(NAME) || { echo not yet; exit 1; }'] } };
    daemon.put('exec.json', manifest('exec', [steady('main', { env: [{ name: 'NAME', value: 'fine' }], readinessProbe })]));
    await goesUpAndDown('exec', {
      words: /^Readiness probe failed: not yet$/,
      up: (id) => exec(lab, id, 'touch /tmp/fine'),
      down: (id) => exec(lab, id, 'rm /tmp/fine'),
    });
  });

  it('by HTTP follows the status of the answer at a named port', async () => {
    const container: Partial<Container> = {
      ports: [{ name: 'web', containerPort: 8080 }],
      readinessProbe: { ...quick, httpGet: { path: '/healthz', port: 'web' } },
    };
    daemon.put(
      'http.json',
      manifest('http', [
        sh('main', 'mkdir -p /www; trap "exit 0" TERM; httpd -p 8080 -h /www; while :; do sleep 3600 & wait; done', container),
      ]),
    );
    await goesUpAndDown('http', {
      words: /^Readiness probe failed: HTTP probe failed with statuscode: 404$/,
      up: (id) => exec(lab, id, 'echo fine > /www/healthz'),
      down: (id) => exec(lab, id, 'rm /www/healthz'),
    });
  });

  it('by TCP follows whether the port is open', async () => {
    daemon.put('tcp.json', manifest('tcp', [steady('main', { readinessProbe: { ...quick, tcpSocket: { port: 8080 } } })]));
    await goesUpAndDown('tcp', {
      words: /^Readiness probe failed: dial tcp 10\.[\d.]+:8080: connect: connection refused/,
      up: serve,
      down: stopServing,
    });
  });

  it('by gRPC follows what the health service says', async () => {
    daemon.put('grpc.json', manifest('grpc', [steady('main', { readinessProbe: { ...quick, grpc: { port: 50051, service: 'front' } } })]));
    let server: ChildProcess | undefined;
    const up = async (id: string) => {
      server ??= await healthServer(await hostPid(lab, id), 50051, 'front');
      server.stdin?.write('serving\n');
    };
    const down = async () => void server?.stdin?.write('notServing\n');
    await goesUpAndDown('grpc', { words: /^Readiness probe failed: health rpc failed: .*ECONNREFUSED/, up, down });
    await unhealthy('grpc', /^Readiness probe failed: service unhealthy \(responded with "NOT_SERVING"\)$/);
    server?.kill('SIGKILL');
    await unready('grpc');
  });

  it('by a command that takes too long fails', async () => {
    const readinessProbe = { periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 1, exec: { command: ['sh', '-c', 'sleep 3600'] } };
    daemon.put('late.json', manifest('late', [steady('main', { readinessProbe })]));
    await unhealthy('late', /^Readiness probe failed: command timed out: "sh -c sleep 3600" timed out after 1s$/);
    await unready('late');
  });
});

describe.concurrent('liveness and startup', () => {
  it('a failed liveness probe has the container started again, with the grace of the probe', async () => {
    const livenessProbe = { ...quick, exec: { command: ['test', '!', '-f', '/tmp/dead'] }, terminationGracePeriodSeconds: 3 };
    daemon.put(
      'live.json',
      manifest('live', [sh('main', 'trap "" TERM; while :; do sleep 1; done', { livenessProbe })], {
        spec: { terminationGracePeriodSeconds: 600 },
      }),
    );
    const id = await idOf('live');
    await ready('live');
    await exec(lab, id, 'touch /tmp/dead');
    const pod = await daemon.podWhere(
      'live',
      'it to be started again',
      (p) => p.status.containerStatuses?.[0]?.restartCount === 1 && isReady(p),
      WAIT_MS,
    );
    expect(pod.status.containerStatuses?.[0]).toMatchObject({ lastState: { terminated: { exitCode: 137 } } });
    const events = await daemon.events('live');
    expect(events.filter((e) => e.reason === 'Killing').map((e) => e.message)).toEqual([
      'Container main failed liveness probe, will be restarted',
    ]);
    expect(events.some((e) => e.reason === 'Unhealthy' && e.fieldPath === 'spec.containers{main}')).toBe(true);
    expect(events.filter((e) => e.reason === 'BackOff')).toEqual([]);
  });

  it('nothing else is probed until the startup probe has succeeded; one that fails has the container started again', async () => {
    const alive = { exec: { command: ['test', '-f', '/tmp/alive'] } };
    const probes: Partial<Container> = {
      startupProbe: { ...quick, failureThreshold: 600, exec: { command: ['test', '-f', '/tmp/started'] } },
      livenessProbe: { ...quick, ...alive },
      readinessProbe: { ...quick, ...alive },
    };
    daemon.put('slow.json', manifest('slow', [steady('main', probes)]));
    daemon.put('never-up.json', manifest('never-up', [steady('main', { startupProbe: { ...quick, exec: { command: ['false'] } } })]));
    const id = await idOf('slow');
    await daemon.podWhere('never-up', 'a restart', (p) => (p.status.containerStatuses?.[0]?.restartCount ?? 0) > 0, WAIT_MS);
    const waiting = await daemon.podWhere('slow', 'it to run', (p) => p.status.phase === 'Running', WAIT_MS);
    expect(waiting.status.containerStatuses?.[0]).toMatchObject({ started: false, ready: false, restartCount: 0 });
    await exec(lab, id, 'touch /tmp/alive /tmp/started');
    const pod = await ready('slow');
    expect(pod.status.containerStatuses?.[0]).toMatchObject({ started: true, restartCount: 0, containerID: `containerd://${id}` });
    const killing = (await daemon.events('never-up')).filter((e) => e.reason === 'Killing').map((e) => e.message);
    expect(killing).toContain('Container main failed startup probe, will be restarted');
    daemon.remove('never-up.json');
  });
});

const PODS = RUNS_ALL ? 20 : 6;
describe('after kill -9 of the daemon', () => {
  it('ready pods stay ready: not one flips, no container is started again', async () => {
    const names = Array.from({ length: PODS }, (_, i) => `calm-${i}`);
    const readinessProbe = { periodSeconds: 4, timeoutSeconds: 30, exec: { command: ['true'] } };
    for (const name of names) daemon.put(`${name}.json`, manifest(name, [steady('main', { readinessProbe })]));
    const mine = (pods: PodView[]) => pods.filter((p) => p.metadata.name.startsWith('calm-'));
    await daemon.wait('all to be ready', async () => mine(await daemon.pods()).filter(isReady).length === names.length, {
      timeoutMs: 120_000,
    });
    // What was found last is on disk within moments; a probe later it surely is.
    const probed = async () => Number(/^prober_probe_total\{.*pod="calm-0-e2e".*\} (\d+)/m.exec(await metrics())?.[1] ?? 0);
    const now = await probed();
    await daemon.wait('another probe', async () => (await probed()) > now, { timeoutMs: WAIT_MS });
    const before = await running(lab);
    await daemon.end('SIGKILL');
    await daemon.start({ ready: false });
    const seen = new Map<string, Set<string>>();
    const look = async () => {
      for (const p of mine(await daemon.pods().catch(() => []))) {
        const said = p.status.conditions?.find((c) => c.type === 'Ready');
        if (said !== undefined) seen.set(p.metadata.name, (seen.get(p.metadata.name) ?? new Set()).add(said.status));
      }
    };
    // Until each has been probed by the new daemon, more than once for most.
    const again = async () => {
      await look();
      const text = await metrics().catch(() => '');
      return names.every((n) => text.includes(`pod="${n}-e2e"`));
    };
    await daemon.wait('all to be probed again', again, { timeoutMs: 120_000, everyMs: 10 });
    await look();
    expect(Object.fromEntries([...seen].map(([name, s]) => [name, [...s]]))).toEqual(
      Object.fromEntries(names.map((n) => [`${n}-e2e`, ['True']])),
    );
    const after = await running(lab);
    for (const name of names) expect(after[`${name}/main`]).toBe(before[`${name}/main`]);
  }, 360_000);
});

async function metrics(): Promise<string> {
  return (await fetch(`${daemon.readOnlyUrl}/metrics/probes`, { signal: AbortSignal.timeout(30_000) })).text();
}

/** A gRPC health server inside the network namespace of that process; it obeys lines on its input. */
async function healthServer(pid: number, port: number, service: string): Promise<ChildProcess> {
  const args = ['-t', String(pid), '-n', process.execPath, join(import.meta.dirname, '../healthServer.ts'), String(port), service];
  const child = spawn('nsenter', args, { stdio: ['pipe', 'pipe', 'inherit'] });
  helpers.push(child);
  await new Promise<void>((resolve, reject) => {
    child.stdout?.once('data', () => resolve());
    child.once('exit', (code) => reject(new Error(`the health server ended with ${code}`)));
  });
  return child;
}
