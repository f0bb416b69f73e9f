/** Traces of pods on a whole node in virtual time: what the spans say, and that nothing of the pod's secrets is in them. */
import { createHash } from 'node:crypto';
import type { CriMethod } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import type { Ports } from '@actorlet/kubelet/ports/ports.ts';
import { describe, expect } from 'vitest';
import { createReady, drop, inApi } from '../../../../test/integration/cluster/clusterPods.ts';
import { itWith } from '../../../../test/integration/onNode.ts';
import { pod, type VirtualNode, type VirtualNodeOptions, virtualNode } from '../../../../test/integration/virtualNode.ts';
import type { Span } from '../../src/tracing/model.ts';
import { isSampled, PodTracer, START_LIMIT_MS } from '../../src/tracing/tracer.ts';
import { inspectedOf } from '../rig.ts';

const SLOW: Partial<Record<CriMethod, number>> = {
  ...{ RunPodSandbox: 100, PullImage: 300, CreateContainer: 50, StartContainer: 70, StopContainer: 40 },
};
const TRACED = { config: { tracing: { endpoint: null, samplingRatePerMillion: 1_000_000 } } } as const;

function traced(h: VirtualNode, o: { rate?: number; cluster?: boolean } = {}) {
  const traces: Span[][] = [];
  const tracer = new PodTracer(inspectedOf(h), {
    samplingRatePerMillion: o.rate ?? 1_000_000,
    sha256Hex: (text) => createHash('sha256').update(text).digest('hex'),
    sink: (spans) => traces.push([...spans]),
    cluster: o.cluster ?? false,
  });
  return { traces, tracer };
}
type Told = { method: CriMethod; traceparent: string | undefined }[];
/** `told`: hears what the runtime is told of each call's trace. */
async function tracedNode(o: VirtualNodeOptions & { told?: Told } = {}) {
  const { told } = o;
  const ports = ({ cri, ...rest }: Ports): Ports => ({
    ...rest,
    cri: {
      call(method, req, opts) {
        told?.push({ method, traceparent: opts.traceparent });
        return cri.call(method, req, opts);
      },
      hints: (signal) => cri.hints(signal),
      reconnect: () => cri.reconnect(),
      close: () => cri.close(),
    },
  });
  const h = await virtualNode({ ...TRACED, ports, ...o });
  h.faults.latencyMs = SLOW;
  return h;
}
const it = itWith(tracedNode);
const names = (trace: readonly Span[] | undefined) => (trace ?? []).map((s) => s.name);
const one = (trace: readonly Span[] | undefined, name: string): Span => {
  const found = (trace ?? []).find((s) => s.name === name);
  if (found === undefined) throw new Error(`no span ${name} among ${names(trace).join(', ')}`);
  return found;
};
const tookMs = (s: Span) => s.endMs - s.startMs;
/** Every span but the root has a parent in the trace and lies within it. */
function expectNested(trace: readonly Span[] | undefined): void {
  const byId = new Map((trace ?? []).map((s) => [s.spanId, s]));
  expect(byId.size).toBe(trace?.length);
  for (const span of trace ?? []) {
    expect(span.traceId).toBe(trace?.[0]?.traceId);
    expect(span.traceId).toMatch(/^[0-9a-f]{32}$/);
    expect(span.spanId).toMatch(/^[0-9a-f]{16}$/);
    if (span === trace?.[0]) {
      expect(span.parentSpanId).toBe('');
      continue;
    }
    const parent = byId.get(span.parentSpanId);
    expect(parent, span.name).toBeDefined();
    expect(span.startMs, span.name).toBeGreaterThanOrEqual(parent?.startMs ?? Number.NaN);
    expect(span.endMs, span.name).toBeLessThanOrEqual(parent?.endMs ?? Number.NaN);
  }
}

describe('traces', () => {
  it('has one trace for the start of a pod: source, admission, volumes, the pull and each runtime call, nested and in time', async ({
    h,
  }) => {
    const { traces } = traced(h);
    await h.run('web', pod('web'));
    await h.advance(5_000);
    expect(traces).toHaveLength(1);
    const [trace] = traces;
    expectNested(trace);
    const root = one(trace, 'pod start');
    expect(root.attributes).toEqual({
      'k8s.pod.uid': h.uid('web'),
      'k8s.pod.name': 'web-n1',
      'k8s.namespace.name': 'default',
      'actorlet.pod.source': 'file',
    });
    expect(root.error).toBe('');
    expect(tookMs(root)).toBe(520);
    expect(one(trace, 'source').attributes).toEqual({ 'actorlet.pod.source': 'file' });
    for (const name of ['admission', 'volumes']) expect(one(trace, name).parentSpanId).toBe(root.spanId);
    const sandbox = one(trace, 'pod sandbox');
    const run = one(trace, 'runtime.v1.RuntimeService/RunPodSandbox');
    expect([run.parentSpanId, tookMs(run), run.kind]).toEqual([sandbox.spanId, 100, 'client']);
    const pull = one(trace, 'runtime.v1.ImageService/PullImage');
    expect([pull.parentSpanId, tookMs(pull)]).toEqual([one(trace, 'image pull').spanId, 300]);
    expect(one(trace, 'image pull').attributes).toEqual({ 'k8s.container.name': 'main' });
    expect(tookMs(one(trace, 'runtime.v1.RuntimeService/StartContainer'))).toBe(70);
    expect(one(trace, 'runtime.v1.RuntimeService/CreateContainer').attributes).toEqual({
      'rpc.system': 'grpc',
      'rpc.service': 'runtime.v1.RuntimeService',
      'rpc.method': 'CreateContainer',
      'k8s.container.name': 'main',
      'rpc.grpc.status_code': 0,
    });
    expect(root.events.map((e) => e.name)).toEqual(['MissingClusterDNS', 'Pulling', 'Pulled', 'Created', 'Started']);
  });

  it('has one trace for its stop, from the wish to the end of its worker', async ({ h }) => {
    const { traces, tracer } = traced(h);
    await h.run('web', pod('web'));
    await h.advance(5_000);
    h.remove('web');
    await h.until('web is gone', () => h.record('web') === undefined);
    await h.advance(60_000);
    expect(traces).toHaveLength(2);
    const stop = traces[1];
    expectNested(stop);
    expect(stop?.[0]?.name).toBe('pod stop');
    expect(stop?.[0]?.traceId).not.toBe(traces[0]?.[0]?.traceId);
    expect(tookMs(one(stop, 'pod stop'))).toBe(40);
    for (const name of ['source', 'admission', 'volumes teardown']) expect(names(stop)).toContain(name);
    expect(one(stop, 'runtime.v1.RuntimeService/StopContainer').parentSpanId).toBe(one(stop, 'stop containers').spanId);
    expect(tracer.open).toBe(0);
  });

  it('tells the runtime the span of each call', async () => {
    const told: Told = [];
    await using h = await tracedNode({ told });
    const { traces } = traced(h);
    await h.run('web', pod('web'));
    await h.advance(5_000);
    const root = one(traces[0], 'pod start');
    const run = one(traces[0], 'runtime.v1.RuntimeService/RunPodSandbox');
    expect(told.find((t) => t.method === 'RunPodSandbox')?.traceparent).toBe(`00-${root.traceId}-${run.spanId}-01`);
    expect(told.filter((t) => t.method === 'ListContainers').map((t) => t.traceparent)).not.toContainEqual(expect.any(String));
    const spans = new Set(traces[0]?.map((s) => s.spanId));
    const heard = told.flatMap((t) => (t.traceparent === undefined ? [] : [t.traceparent.split('-')[2] ?? '']));
    expect(heard.filter((id) => !spans.has(id))).toEqual([]);
    expect(heard.length).toBeGreaterThan(5);
  });

  it('holds the writes of the status in a cluster', async () => {
    await using h = await tracedNode({ cluster: true });
    const { traces } = traced(h, { cluster: true });
    await createReady(h, 'web');
    await h.advance(11_000);
    drop(h, 'pods/web');
    await h.until('web is gone', () => inApi(h, 'web') === undefined);
    await h.advance(20_000);
    expect(traces.map((t) => t[0]?.name)).toEqual(['pod start', 'pod stop']);
    for (const trace of traces) {
      expectNested(trace);
      expect(names(trace)).toContain('status write');
      expect(one(trace, 'source').attributes).toEqual({ 'actorlet.pod.source': 'api' });
    }
    const write = traces[0]?.findLast((s) => s.name === 'status write');
    expect(write?.error).toBe('');
    expect(write?.endMs).toBe(traces[0]?.[0]?.endMs);
  });

  it('says what went wrong by its code, without the words of the runtime', async ({ h }) => {
    const { traces } = traced(h);
    h.faults.fault = (method) =>
      method === 'StartContainer' ? { kind: 'refuse', code: 2, details: 'exec: "--password=hunter2": not found' } : undefined;
    h.write('web', pod('web'));
    await h.advance(START_LIMIT_MS + 10_000);
    expect(traces).toHaveLength(1);
    expectNested(traces[0]);
    expect(traces[0]?.[0]?.error).toBe('not ready after 10 minutes');
    const start = one(traces[0], 'runtime.v1.RuntimeService/StartContainer');
    expect([start.error, start.attributes['rpc.grpc.status_code']]).toEqual(['UNKNOWN', 2]);
    expect(JSON.stringify(traces)).not.toContain('hunter2');
  });

  it('holds no environment, argument, label or annotation of a pod', async ({ h }) => {
    const { traces } = traced(h);
    const secret = 'hunter2-planted';
    const container = { name: 'main', image: 'hollow/run', command: ['sh', secret], args: [secret], env: [{ name: 'P', value: secret }] };
    const manifest = pod('web', { spec: { containers: [container] } }) as { metadata: Record<string, unknown> };
    manifest.metadata.annotations = { reason: secret };
    manifest.metadata.labels = { name: secret };
    await h.run('web', manifest);
    await h.advance(5_000);
    h.remove('web');
    await h.advance(60_000);
    expect(traces).toHaveLength(2);
    expect(JSON.stringify(traces)).not.toContain(secret);
  });

  it('goes on with the same trace when the worker crashes, and ends it with an error when the pod is stopped before it was ready', async ({
    h,
  }) => {
    const { traces, tracer } = traced(h);
    h.write('web', pod('web'));
    // RunPodSandbox took 100 ms, PullImage takes 300.
    await h.advance(200);
    h.kill(h.workerPath('web'));
    await h.advance(150);
    expect(tracer.open).toBe(1);
    h.remove('web');
    await h.advance(60_000);
    expect(traces.map((t) => [t[0]?.name, t[0]?.error])).toEqual([
      ['pod start', 'stopped before it was ready'],
      ['pod stop', ''],
    ]);
    for (const trace of traces) expectNested(trace);
  });

  it('calls it an adoption when the daemon finds the pod running, and has no second one when its worker crashes later', async () => {
    await using h = await tracedNode({ cluster: true });
    await createReady(h, 'web');
    await h.crash();
    // The pod is named again once the tracer looks.
    h.kube.trouble.down = true;
    await h.boot();
    const { traces } = traced(h, { cluster: true });
    h.kube.trouble.down = false;
    await h.advance(60_000);
    expect(h.kill(`node/pods/workers/${inApi(h, 'web')?.metadata.uid}`)).toBe(true);
    await h.advance(60_000);
    expect(traces.map((t) => t[0]?.name)).toEqual(['pod adoption']);
  });

  it('does not take the start of a pod for the cause of its end', async ({ h }) => {
    const { traces } = traced(h);
    const job = pod('job', { spec: { restartPolicy: 'Never' } }) as { metadata: Record<string, unknown> };
    job.metadata.annotations = { 'actorlet.dev/hollow': 'run=30s,exit=0' };
    h.write('job', job);
    await h.advance(60_000);
    expect(traces.map((t) => t[0]?.name)).toEqual(['pod start', 'pod stop']);
    expect(names(traces[1])).not.toContain('source');
    expect(tookMs(one(traces[1], 'pod stop'))).toBeLessThan(1_000);
  });

  it('reports what is under way when the daemon stops', async ({ h }) => {
    const { traces, tracer } = traced(h);
    h.write('web', pod('web'));
    // RunPodSandbox took 100 ms, PullImage takes 300.
    await h.advance(200);
    tracer[Symbol.dispose]();
    expect(traces.map((t) => [t[0]?.name, t[0]?.error])).toEqual([['pod start', 'the daemon stopped']]);
    expectNested(traces[0]);
    expect(one(traces[0], 'runtime.v1.ImageService/PullImage').attributes['actorlet.unfinished']).toBe(true);
    h.write('other', pod('other'));
    await h.advance(5_000);
    expect(traces).toHaveLength(1);
  });

  it('keeps nothing and tells the runtime nothing of a trace that is not sampled', async () => {
    const told: Told = [];
    await using h = await tracedNode({ told });
    const { traces, tracer } = traced(h, { rate: 0 });
    await h.run('web', pod('web'));
    expect(tracer.open).toBe(0);
    h.remove('web');
    await h.advance(60_000);
    expect(traces).toEqual([]);
    expect(told.filter((t) => t.traceparent !== undefined)).toEqual([]);
  });

  it('samples that share of all traces', () => {
    const ids = Array.from({ length: 10_000 }, (_, i) => createHash('sha256').update(String(i)).digest('hex').slice(0, 32));
    const share = (rate: number) => ids.filter((id) => isSampled(id, rate)).length / ids.length;
    expect([share(0), share(1_000_000)]).toEqual([0, 1]);
    expect(share(250_000)).toBeCloseTo(0.25, 1);
    // What a lower rate takes, a higher one takes too.
    expect(ids.filter((id) => isSampled(id, 1_000) && !isSampled(id, 250_000))).toEqual([]);
  });
});
