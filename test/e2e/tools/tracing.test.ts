/**
 * Traces of a pod on a real containerd, with a real receiver. A containerd that can send traces of its own (2.x of Debian;
 * 1.6 is built without) sends them to the same receiver, and its spans stand below the calls of this node.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ReceivedSpan, type Receiver, traceReceiver } from '../../boot/traceReceiver.ts';
import { buildDaemon, createDaemon, type Daemon } from '../daemon.ts';
import { type Containerd, startContainerd } from '../lab/containerd.ts';
import { manifest, steady } from '../manifests.ts';

const WAIT_MS = 60_000;
let receiver: Receiver;
let lab: Containerd;
let daemon: Daemon;
const wrapper = mkdtempSync(join(tmpdir(), 'actorlet-traced-'));
const path = process.env.PATH;
const canTrace = /tracing\.processor\.v1\.otlp/.test(execFileSync('containerd', ['config', 'default'], { encoding: 'utf8' }));

beforeAll(async () => {
  await buildDaemon();
  receiver = await traceReceiver();
  // containerd takes all of it from its environment.
  const real = execFileSync('sh', ['-c', 'command -v containerd'], { encoding: 'utf8' }).trim();
  const settings = `OTEL_EXPORTER_OTLP_ENDPOINT=http://${receiver.endpoint} OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_SERVICE_NAME=containerd OTEL_BSP_SCHEDULE_DELAY=200`;
  writeFileSync(join(wrapper, 'containerd'), `#!/bin/sh\nexport ${settings}\nexec ${real} "$@"\n`);
  chmodSync(join(wrapper, 'containerd'), 0o755);
  process.env.PATH = `${wrapper}:${path}`;
  lab = await startContainerd();
  daemon = await createDaemon(lab, { tracing: { endpoint: receiver.endpoint, samplingRatePerMillion: 1_000_000 } });
  await daemon.start();
});
afterAll(async () => {
  await daemon?.dispose();
  const left = await lab?.stop();
  process.env.PATH = path;
  rmSync(wrapper, { recursive: true, force: true });
  await receiver?.[Symbol.asyncDispose]();
  expect(left).toEqual([]);
});

const of = (service: string): ReceivedSpan[] => receiver.spans.filter((s) => s.resource['service.name'] === service);
const call = (traceId: string, method: string): ReceivedSpan | undefined =>
  of('kubelet').find((s) => s.traceId === traceId && s.attributes['rpc.method'] === method);

async function traceOf(root: string): Promise<ReceivedSpan> {
  return daemon.wait(`the trace of ${root}`, () => of('kubelet').find((s) => s.name === root) ?? false, { timeoutMs: WAIT_MS });
}

it("holds a pod's start and stop, and containerd's spans stand below the calls that they are of", async () => {
  daemon.put('web.json', manifest('web', [steady()]));
  const start = await traceOf('pod start');
  expect(start.attributes['k8s.pod.name']).toMatch(/^web-/);
  for (const method of ['RunPodSandbox', 'CreateContainer', 'StartContainer']) {
    const span = call(start.traceId, method);
    expect(span?.endNs, method).toBeGreaterThan(span?.startNs ?? 0n);
  }
  daemon.remove('web.json');
  const stop = await traceOf('pod stop');
  expect(call(stop.traceId, 'StopPodSandbox')).toBeDefined();
  if (!canTrace) {
    expect(of('containerd')).toEqual([]);
    return;
  }
  for (const [traceId, method] of [
    [start.traceId, 'RunPodSandbox'],
    [start.traceId, 'StartContainer'],
    [stop.traceId, 'StopPodSandbox'],
  ] as const) {
    const ours = call(traceId, method);
    const below = await daemon.wait(
      `containerd's span of ${method}`,
      () => of('containerd').find((s) => s.parentSpanId === ours?.spanId) ?? false,
      { timeoutMs: WAIT_MS },
    );
    expect(below.traceId).toBe(traceId);
    expect(below.name).toContain(method);
    expect(below.startNs >= (ours?.startNs ?? 0n) - 1_000_000n && below.endNs <= (ours?.endNs ?? 0n) + 1_000_000n).toBe(true);
  }
});
