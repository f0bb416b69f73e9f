/** Tracing of a whole daemon on the hollow runtime, with a real receiver; the wire format; the runtime's traceparent. */
import { type ChildProcess, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import type { Span } from '@actorlet/inspect/src/tracing/model.ts';
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { createClock } from '../../src/boot/dependencies/clock.ts';
import { createGrpcCri } from '../../src/boot/dependencies/cri/grpcCri.ts';
import { loadCriProto } from '../../src/boot/dependencies/cri/load.ts';
import { createOtlpSender, exportRequest, loadTraceService } from '../../src/boot/tracing/otlp.ts';
import { freePort } from '../freePort.ts';
import { DAEMON } from '../programs.ts';
import { collectingLogger } from '../supervision/fakePorts.ts';
import { HEADER, tempDir, until } from './helpers.ts';
import { plain, type ReceivedSpan, traceReceiver, type WireRequest } from './traceReceiver.ts';

const manifest = (name: string, startDelay: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, annotations: { 'actorlet.dev/hollow': `startDelay=${startDelay},pullDelay=120ms,sandboxDelay=80ms` } },
    spec: {
      dnsPolicy: 'Default',
      containers: [{ name: 'main', image: 'hollow/run', env: [{ name: 'PASSWORD', value: 'hunter2-planted' }] }],
    },
  });

interface Daemon extends AsyncDisposable {
  log(): string;
  metrics(): Promise<string>;
  /** The pod's phase as the read-only port shows it; undefined: it is not there. */
  phase(name: string): Promise<string | undefined>;
  write(name: string, startDelay?: string): void;
  remove(name: string): void;
  /** SIGTERM; the exit code and how long it took. */
  stop(): Promise<{ code: number | null; tookMs: number }>;
}
async function daemonWith(tracing: string): Promise<Daemon> {
  const dir = tempDir();
  const readOnlyPort = await freePort();
  const config = dir.write(
    'kubelet.yaml',
    `${HEADER}containerRuntimeEndpoint: embedded://hollow\nstaticPodPath: ${dir.path}/pods\npodLogsDir: ${dir.path}/logs
enableServer: false\nhealthzPort: 0\nreadOnlyPort: ${readOnlyPort}\naddress: 127.0.0.1\ncgroupsPerQOS: false\nenforceNodeAllocatable: []\n${tracing}\n`,
  );
  dir.write('pods/.keep', '');
  const args = [DAEMON, `--config=${config}`, `--root-dir=${dir.path}/root`, '--hostname-override=n1'];
  const process_: ChildProcess = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  const note = (d: Buffer): void => {
    text += d.toString();
  };
  process_.stdout?.on('data', note);
  process_.stderr?.on('data', note);
  const ended = new Promise<number | null>((resolve) => process_.once('exit', resolve));
  const stop = async () => {
    const from = performance.now();
    process_.kill('SIGTERM');
    return { code: await ended, tookMs: performance.now() - from };
  };
  const get = async (path: string): Promise<string> => (await fetch(`http://127.0.0.1:${readOnlyPort}${path}`)).text();
  return {
    log: () => text,
    metrics: () => get('/metrics'),
    async phase(name) {
      const { items } = JSON.parse(await get('/pods')) as { items: { metadata: { name: string }; status: { phase: string } }[] | null };
      return items?.find((p) => p.metadata.name === `${name}-n1`)?.status.phase;
    },
    write: (name, startDelay = '50ms') => void dir.write(`pods/${name}.json`, manifest(name, startDelay)),
    remove: (name) => rmSync(`${dir.path}/pods/${name}.json`),
    stop,
    async [Symbol.asyncDispose]() {
      process_.kill('SIGKILL');
      await ended;
      dir[Symbol.dispose]();
    },
  };
}
const runs = (d: Daemon, name: string) => () =>
  d.phase(name).then(
    (phase) => phase === 'Running',
    () => false,
  );
async function eventually(what: string, holds: () => Promise<boolean>): Promise<void> {
  let held = false;
  let asking = false;
  await until(what, () => {
    if (!asking && !held) {
      asking = true;
      void holds().then((answer) => {
        held = answer;
        asking = false;
      });
    }
    return held;
  });
}
const figure = (metrics: string, name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1]);

function expectOneTree(spans: readonly ReceivedSpan[]): ReceivedSpan {
  const roots = spans.filter((s) => s.parentSpanId === '');
  expect(roots).toHaveLength(1);
  const [root] = roots;
  if (root === undefined) throw new Error('no root');
  for (const span of spans) {
    const parent = span === root ? root : spans.find((s) => s.spanId === span.parentSpanId && s.traceId === span.traceId);
    expect(parent, span.name).toBeDefined();
    expect(span.startNs >= (parent?.startNs ?? 0n) && span.endNs <= (parent?.endNs ?? 0n) && span.startNs <= span.endNs, span.name).toBe(
      true,
    );
  }
  return root;
}

describe('tracing of a daemon', { timeout: 120_000 }, () => {
  it("sends a pod's start and its stop as one trace each, with spans nested and in time", async () => {
    await using receiver = await traceReceiver();
    const beganNs = BigInt(Date.now()) * 1_000_000n;
    await using d = await daemonWith(`tracing:\n  endpoint: ${receiver.endpoint}\n  samplingRatePerMillion: 1000000`);
    d.write('web');
    await until('the start arrives', () => receiver.spans.some((s) => s.name === 'pod start'));
    const start = [...receiver.spans];
    const root = expectOneTree(start);
    expect(root.attributes).toMatchObject({ 'k8s.pod.name': 'web-n1', 'k8s.namespace.name': 'default', 'actorlet.pod.source': 'file' });
    expect(root.resource).toMatchObject({ 'service.name': 'kubelet', 'host.name': 'n1' });
    expect(root.startNs > beganNs && root.endNs < BigInt(Date.now() + 1) * 1_000_000n).toBe(true);
    const names = start.map((s) => s.name);
    for (const name of ['source', 'admission', 'volumes', 'pod sandbox', 'image pull']) expect(names).toContain(name);
    const tookMs = (name: string) => {
      const s = start.find((one) => one.name.endsWith(name));
      return Number((s?.endNs ?? 0n) - (s?.startNs ?? 0n)) / 1e6;
    };
    expect(tookMs('/RunPodSandbox')).toBeGreaterThanOrEqual(79);
    expect(tookMs('/PullImage')).toBeGreaterThanOrEqual(119);
    expect(tookMs('/StartContainer')).toBeGreaterThanOrEqual(49);
    receiver.spans = [];
    d.remove('web');
    await until('the stop arrives', () => receiver.spans.some((s) => s.name === 'pod stop'));
    expect(expectOneTree(receiver.spans).attributes['k8s.pod.uid']).toBe(root.attributes['k8s.pod.uid']);
    expect(receiver.spans.map((s) => s.name)).toContain('runtime.v1.RuntimeService/StopPodSandbox');
    await eventually('the count is shown', async () => figure(await d.metrics(), 'actorlet_tracing_exported_spans') > start.length);
    expect(figure(await d.metrics(), 'actorlet_tracing_dropped_spans')).toBe(0);
    const everything = JSON.stringify([start, receiver.spans], (_k, v: unknown) => (typeof v === 'bigint' ? String(v) : v));
    expect(everything).not.toContain('hunter2');
    // A pod that is under way when the daemon stops is sent before its end.
    receiver.spans = [];
    d.write('slow', '60s');
    await eventually('it is known', async () => (await d.phase('slow')) !== undefined);
    expect((await d.stop()).code).toBe(0);
    expect(expectOneTree(receiver.spans).attributes['k8s.pod.name']).toBe('slow-n1');
  });

  it('sends nothing at a rate of 0', async () => {
    await using receiver = await traceReceiver();
    await using d = await daemonWith(`tracing:\n  endpoint: ${receiver.endpoint}\n  samplingRatePerMillion: 0`);
    d.write('web');
    await eventually('the pod runs', runs(d, 'web'));
    expect((await d.stop()).code).toBe(0);
    expect(receiver.requests).toBe(0);
    expect(d.log()).toContain('tracing is configured without a sampling rate: no trace is sent');
  });

  it('runs pods and ends in time while the receiver is away, and while it does not answer', async () => {
    await using stuck = await traceReceiver();
    stuck.answers = false;
    for (const endpoint of [`127.0.0.1:${await freePort()}`, stuck.endpoint]) {
      await using d = await daemonWith(`tracing:\n  endpoint: ${endpoint}\n  samplingRatePerMillion: 1000000`);
      d.write('web');
      await eventually('the pod runs', runs(d, 'web'));
      if (endpoint === stuck.endpoint) await until('it was asked', () => stuck.requests > 0);
      else await until('it says so', () => d.log().includes('the receiver did not take spans'));
      const { code, tookMs } = await d.stop();
      expect(code).toBe(0);
      expect(tookMs).toBeLessThan(9_000);
      expect(d.log()).toContain('these spans could not be sent before the end');
    }
  });
});

const SPAN: Span = {
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  parentSpanId: '00f067aa0ba902b7',
  name: 'pod start',
  kind: 'client',
  startMs: 1_767_225_600_005,
  endMs: 1_767_225_600_520,
  attributes: { 'k8s.pod.name': 'web', left: 7, done: true, share: 0.5 },
  events: [{ atMs: 1_767_225_600_100, name: 'Pulled', attributes: { c: 'main' } }],
  error: 'UNKNOWN',
};
/** What @opentelemetry/otlp-transformer 0.301 makes of that span. */
const OFFICIAL =
  'CvcBCh0KGQoMc2VydmljZS5uYW1lEgkKB2t1YmVsZXQQABLVAQoNCghhY3RvcmxldBIBMRLDAQoQCvdlGRbNQ92ESOshHIAxnBIIt61rcWkgMzEiCADwZ6oLqQK3Kglwb2Qgc3RhcnQwAzlAS0buUXKGGEEAkvgMUnKGGEoVCgxrOHMucG9kLm5hbWUSBQoDd2ViSgoKBGxlZnQSAhgHSgoKBGRvbmUSAhABShIKBXNoYXJlEgkhAAAAAAAA4D9QAFogCQDh7/NRcoYYEgZQdWxsZWQaCwoBYxIGCgRtYWluIABgAHAAegsSB1VOS05PV04YAoUBAQEAAA==';

describe('the wire', () => {
  it("is that of OpenTelemetry's own exporter", () => {
    const { Export } = loadTraceService();
    const official = Export?.requestDeserialize(Buffer.from(OFFICIAL, 'base64')) as WireRequest;
    const request = exportRequest([SPAN], { resource: { 'service.name': 'kubelet' }, version: '1' });
    const ours = Export?.requestDeserialize(Export.requestSerialize(request)) as WireRequest;
    expect(ours).toEqual(official);
    const [resource] = ours.resourceSpans;
    expect(plain(resource?.resource.attributes ?? [])).toEqual({ 'service.name': 'kubelet' });
    expect(resource?.scopeSpans[0]?.spans[0]).toMatchObject({
      name: 'pod start',
      kind: 'SPAN_KIND_CLIENT',
      startTimeUnixNano: '1767225600005000000',
      status: { code: 'STATUS_CODE_ERROR', message: 'UNKNOWN' },
    });
  });

  it('says whether what was not taken may be sent again', async () => {
    await using receiver = await traceReceiver();
    using here = createOtlpSender({ endpoint: receiver.endpoint, resource: {}, version: '1', clock: createClock() });
    expect(await here.send([SPAN], AbortSignal.timeout(20_000))).toEqual({ ok: true, rejected: 0 });
    receiver.answers = false;
    const given = new AbortController();
    const sent = here.send([SPAN], given.signal);
    await until('it was asked', () => receiver.requests === 2);
    given.abort();
    expect(await sent).toMatchObject({ ok: false, again: true });
    using nowhere = createOtlpSender({ endpoint: `127.0.0.1:${await freePort()}`, resource: {}, version: '1', clock: createClock() });
    expect(await nowhere.send([SPAN], AbortSignal.timeout(20_000))).toMatchObject({ ok: false, again: true });
  });
});

it("puts the span of a call into the runtime's metadata, and nothing where the call is not traced", async () => {
  using dir = tempDir();
  const server = new Server();
  const heard: string[][] = [];
  server.addService(loadCriProto().runtime, {
    Version(call: ServerUnaryCall<object, object>, reply: sendUnaryData<object>) {
      heard.push(call.metadata.get('traceparent').map(String));
      reply(null, { version: '0.1.0', runtimeName: 'fake', runtimeVersion: '1', runtimeApiVersion: 'v1' });
    },
  });
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(`unix://${dir.path}/cri.sock`, ServerCredentials.createInsecure(), (e) => (e === null ? resolve() : reject(e))),
  );
  const cri = createGrpcCri({ endpoint: `unix://${dir.path}/cri.sock`, log: collectingLogger([]), clock: createClock() });
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  try {
    const o = { timeoutMs: 20_000, signal: new AbortController().signal };
    await cri.call('Version', { version: 'v1' }, { ...o, traceparent });
    await cri.call('Version', { version: 'v1' }, o);
    expect(heard).toEqual([[traceparent], []]);
  } finally {
    cri.close();
    server.forceShutdown();
  }
});
