/** Foundation and edge under the real supervision: started as children, killed, asked while away. */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RecorderFilter } from '@actorlet/kubelet/machines/recorder/moment.ts';
import { shownPages } from '@actorlet/shown/src/extension.ts';
import { describe, expect, onTestFinished, test } from 'vitest';
import { adminServerSpec } from '../../src/actors/edge/admin.ts';
import { readOnlyServerSpec } from '../../src/actors/edge/readOnly.ts';
import { checkpointSpec } from '../../src/actors/foundation/checkpoint.ts';
import { telemetrySpec } from '../../src/actors/foundation/telemetry.ts';
import { createRecorder } from '../../src/actors/recorder/recorder.ts';
import { createTree } from '../../src/actors/supervision/tree.ts';
import type { AnySpec, SupervisorSpec } from '../../src/actors/supervision/types.ts';
import { createMetrics } from '../../src/boot/dependencies/metrics/metrics.ts';
import { createNet } from '../../src/boot/dependencies/net/net.ts';
import {
  type CheckpointEvent,
  type CheckpointFound,
  checkpointAddr,
  eventsAddr,
  eventsView,
} from '../../src/machines/foundation/messages.ts';
import { type ActorView, findActor } from '../../src/machines/supervision/actorState.ts';
import { askHttps } from '../askHttps.ts';
import { fakePorts } from '../supervision/fakePorts.ts';
import { until } from './harness.ts';
import { memoryFs } from './memoryFs.ts';

const layer = (id: string, children: AnySpec[]): SupervisorSpec => ({
  type: 'supervisor',
  id,
  strategy: 'one_for_one',
  restart: 'permanent',
  shutdownMs: 5000,
  intensity: { max: 5, periodMs: 60_000 },
  backoff: { minMs: 10, maxMs: 100, factor: 2, jitter: 0 },
  escalate: 'parent',
  children,
});
const get = async (socketPath: string, path: string): Promise<string> => (await askHttps({ socketPath, path })).body;
async function node() {
  const root = mkdtempSync(join(tmpdir(), 'actorlet-edge-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const net = createNet();
  const sha256Hex = (t: string | Uint8Array) => createHash('sha256').update(t).digest('hex');
  const fs = memoryFs();
  const real = {
    wallMs: () => Date.now(),
    monoMs: () => performance.now(),
    setTimeout: (fn: () => void, ms: number) => setTimeout(fn, ms),
    clearTimeout: (id: unknown) => clearTimeout(id as NodeJS.Timeout),
  };
  const ports = fakePorts({
    net,
    fs,
    metrics: createMetrics(),
    clock: real,
    yield: { defer: (fn) => void setImmediate(fn) },
    entropy: { bytes: () => new Uint8Array(), md5Hex: () => '', sha256Hex },
  });
  const recorder = createRecorder();
  const free = await net.serveHttp({ host: '127.0.0.1', port: 0 }, async () => ({ status: 200, body: '' }));
  const port = Number(free.address.split(':')[1]);
  await free.close();
  const socketPath = join(root, 'actorlet.sock');
  const inspect = {
    state: () => tree.state(),
    stateAt: (path: string) => tree.stateAt(path),
    recorder: (filter: RecorderFilter) => recorder.read(filter),
    configz: () => ({ kind: 'KubeletConfiguration' }),
  };
  const build = { major: '1', minor: '36', gitVersion: 'v1.36.0', gitCommit: '', buildDate: '', platform: '' };
  const tree = createTree(
    layer('node', [
      layer('foundation', [checkpointSpec({ rootDir: root }), telemetrySpec()]),
      layer('edge', [
        adminServerSpec({
          socketPath,
          inspect,
          podLogsDir: '/var/log/pods',
          routes: [shownPages({ inspect, config: { config: { podLogsDir: '/var/log/pods' } } }).routes],
        }),
        readOnlyServerSpec({ host: '127.0.0.1', port, inspect, nodeName: 'n', build, ...FIGURES }),
      ]),
    ]),
    ports,
    { observers: [(e) => recorder.observe(e)] },
  );
  await tree.start();
  onTestFinished(() => tree.stop());
  const lifecycle = (path: string) => findActor(tree.state(), path)?.lifecycle;
  return { tree, ports, port, socketPath, fs, lifecycle };
}
const it = test.extend('n', () => node());

const FIGURES = {
  ...{ syncFrequencyMs: 60_000, rootDir: '/', podLogsDir: '/', runtimeRequestTimeoutMs: 10_000 },
  ...{ volumeStats: { periodMs: 0, health: false }, gates: [], pressure: true, fromCri: false },
  systemGroups: () => ({ kubelet: '', runtime: '', misc: '', pods: '' }),
  podGroup: () => undefined,
  podsAtRoot: false,
};

describe('under the real supervision', () => {
  it('starts listening, shows itself in /statez, and stops in order', async ({ n }) => {
    const state = JSON.parse(await get(n.socketPath, '/statez')) as ActorView;
    expect(findActor(state, 'node/edge/readOnly')).toMatchObject({
      lifecycle: 'running',
      state: 'listening',
      reason: 'Listening',
      message: `on 127.0.0.1:${n.port}`,
    });
    expect(await get(n.socketPath, '/healthz')).toBe('ok');
    expect(await get(n.socketPath, '/statez?text')).toMatch(/├─ foundation .*\n│ {2}├─ checkpoint/);
    await n.tree.stop();
    await expect(fetch(`http://127.0.0.1:${n.port}/healthz`)).rejects.toThrow();
    expect(n.ports.lines.filter((l) => l.level === 'error')).toEqual([]);
  });
  it('answers again on the same port and socket after each server was killed', async ({ n }) => {
    for (const path of ['node/edge/readOnly', 'node/edge/admin']) {
      const before = findActor(n.tree.state(), path)?.incarnation ?? 0;
      expect(n.tree.kill(path, 'test')).toBe(true);
      await until(() => {
        const now = findActor(n.tree.state(), path);
        return now !== undefined && now.incarnation > before && now.state === 'listening';
      });
    }
    expect((await fetch(`http://127.0.0.1:${n.port}/healthz`)).status).toBe(200);
    expect(await get(n.socketPath, '/healthz')).toBe('ok');
    expect(await (await fetch(`http://127.0.0.1:${n.port}/metrics`)).text()).toMatch(
      /^actorlet_actors_running\{path="node\/edge\/readOnly"\} 1$/m,
    );
  });
  it('keeps events and documents over the death of the actors that hold them', async ({ n }) => {
    const { registry } = n.tree;
    registry.send(eventsAddr, { type: 'event.record', event: { type: 'Normal', reason: 'Starting', message: 'hello' } });
    registry.send(checkpointAddr, { type: 'checkpoint.put', name: 'doc', value: [1, 2] });
    await until(() => registry.read(eventsView) !== undefined && [...n.fs.files.keys()].some((f) => f.endsWith('/doc.json')));
    for (const path of [eventsAddr.path, checkpointAddr.path]) {
      const before = findActor(n.tree.state(), path)?.incarnation ?? 0;
      n.tree.kill(path, 'test');
      await until(() => (findActor(n.tree.state(), path)?.incarnation ?? 0) > before && n.lifecycle(path) === 'running');
    }
    registry.send(eventsAddr, { type: 'event.record', event: { type: 'Normal', reason: 'Starting', message: 'hello' } });
    await until(() => registry.read(eventsView)?.value[0]?.count === 2);
    const found = await registry.ask<CheckpointEvent, CheckpointFound>(
      checkpointAddr,
      (replyTo) => ({ type: 'checkpoint.get', name: 'doc', replyTo }),
      { timeoutMs: 30_000 },
    );
    expect(found).toEqual({ kind: 'reply', value: { found: true, value: [1, 2] } });
  });
  it('shows in the recorder who died and why', async ({ n }) => {
    n.tree.kill(eventsAddr.path, 'test');
    await until(() => n.lifecycle(eventsAddr.path) !== 'running');
    expect(await get(n.socketPath, `/recorder?path=${eventsAddr.path}`)).toMatch(
      /child\.exited node\/foundation\/telemetry killed by test/,
    );
  });
});
