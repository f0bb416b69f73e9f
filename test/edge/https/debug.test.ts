/** /debug: profiles of the daemon and its log verbosity, for whoever may use everything; and /metrics/slis. */
import { describe, expect, it } from 'vitest';
import { createProfiler } from '../../../src/boot/dependencies/profiler.ts';
import type { Profiler } from '../../../src/ports/ports.ts';
import { ann, start } from './node.ts';

const withProfiler = (profiler: Profiler, o: Parameters<typeof start>[0] = {}) => start({ ...o, profiler });

describe('/debug/pprof', () => {
  it('lists what there is, and says what there is not', async () => {
    const s = await withProfiler(createProfiler());
    expect((await s.ask('/debug/pprof')).headers.location).toBe('/debug/pprof/');
    expect((await s.ask('/debug/pprof/')).body).toMatch(/profile\?seconds=30.*heap\?seconds=5.*allocs\?seconds=5.*goroutine/s);
    for (const path of [
      '/debug/pprof/trace',
      '/debug/pprof/mutex',
      '/debug/pprof/__proto__',
      '/debug/pprof/goroutine/x',
      '/debug/pprof/profile/x',
    ]) {
      expect([path, (await s.ask(path)).status]).toEqual([path, 404]);
    }
    const actors = await s.ask('/debug/pprof/goroutine');
    expect([actors.status, actors.body.split('\n').length > 3]).toEqual([200, true]);
    for (const path of ['/debug', '/debug/none']) expect([path, (await s.ask(path)).status]).toEqual([path, 404]);
    expect((await s.ask('/debug/pprof/profile', { method: 'DELETE' })).status).toBe(405);
  });

  it('gives profiles that the tools of V8 read, taken of this very process', async () => {
    const s = await withProfiler(createProfiler());
    const cpu = await s.ask('/debug/pprof/profile?seconds=1');
    expect(cpu).toMatchObject({ status: 200, headers: { 'content-type': 'application/json' } });
    const profile = JSON.parse(cpu.body) as {
      nodes: { callFrame: { functionName: string } }[];
      samples: number[];
      startTime: number;
      endTime: number;
    };
    expect(profile.samples.length).toBeGreaterThan(10);
    expect(profile.nodes.some((n) => n.callFrame.functionName === '(root)')).toBe(true);
    expect(profile.endTime - profile.startTime).toBeGreaterThan(900_000);
    const kept: string[][] = [];
    const grow = setInterval(() => kept.push(Array.from({ length: 5_000 }, (_, i) => `${kept.length} ${i}`)), 5);
    try {
      for (const name of ['heap', 'allocs']) {
        const heap = JSON.parse((await s.ask(`/debug/pprof/${name}?seconds=1`)).body) as { head: { children: object[] } };
        expect(heap.head.children.length).toBeGreaterThan(0);
      }
    } finally {
      clearInterval(grow);
    }
  });

  it('watches the processor for 30 s and the heap for 5 s, unless the client says otherwise', async () => {
    const asked: [string, number][] = [];
    const taken = (kind: string) => async (ms: number) => {
      asked.push([kind, ms]);
      return '';
    };
    const s = await withProfiler({ cpu: taken('cpu'), heap: taken('heap') });
    for (const path of ['profile', 'heap', 'allocs', 'heap?seconds=', 'heap?seconds=40']) await s.ask(`/debug/pprof/${path}`);
    expect(asked).toEqual([
      ['cpu', 30_000],
      ['heap', 5_000],
      ['heap', 5_000],
      ['heap', 5_000],
      ['heap', 40_000],
    ]);
  });

  it('refuses spans that are none, and a second profile at a time; who goes away ends his own', async () => {
    const ended = Promise.withResolvers<void>();
    const s = await withProfiler(createProfiler());
    for (const seconds of ['0', '-1', '301', 'x', '1.5', '99999']) {
      expect([seconds, (await s.ask(`/debug/pprof/profile?seconds=${seconds}`)).status]).toEqual([seconds, 400]);
    }
    const real = createProfiler();
    const held = await withProfiler({
      cpu: (ms, signal) => {
        const taken = real.cpu(ms, signal);
        taken.catch(() => ended.resolve());
        return taken;
      },
      heap: (ms, signal) => real.heap(ms, signal),
    });
    const first = held.lab.abandon('/debug/pprof/profile?seconds=300', { client: ann });
    await expect.poll(async () => (await held.ask('/debug/pprof/heap?seconds=1')).status).toBe(429);
    first.goAway();
    await ended.promise;
    await expect.poll(async () => (await held.ask('/debug/pprof/heap?seconds=1')).status).toBe(200);
  });

  it('is not there where it was switched off, each with its own words', async () => {
    const off = await withProfiler(createProfiler(), { profiling: false, debugFlags: false });
    expect(await off.ask('/debug/pprof/')).toMatchObject({ status: 405, body: 'profiling endpoint is disabled.\n' });
    expect(await off.ask('/debug/flags/v', { method: 'PUT', body: '4' })).toMatchObject({
      status: 405,
      body: 'flags endpoint is disabled.\n',
    });
    const none = await withProfiler(createProfiler(), { debugging: false });
    expect(await none.ask('/debug/pprof/')).toMatchObject({ status: 405, body: 'Debug endpoints are disabled.\n' });
    expect((await none.ask('/debug/flags/v', { method: 'PUT', body: '4' })).status).toBe(404);
    const hollow = await start();
    expect((await hollow.ask('/debug/pprof/profile')).status).toBe(501);
  });
});

describe('/debug/flags/v', () => {
  it('sets the verbosity of the log', async () => {
    const set: number[] = [];
    const s = await start({ setVerbosity: (n) => void set.push(n) });
    expect(await s.ask('/debug/flags/v', { method: 'PUT', body: '5\n' })).toMatchObject({
      status: 200,
      body: 'successfully set klog.logging.verbosity to 5\n',
    });
    for (const body of ['', 'x', '-1', '1.5', '99999999999']) {
      expect([body, (await s.ask('/debug/flags/v', { method: 'PUT', body })).status]).toEqual([body, 400]);
    }
    expect((await s.ask('/debug/flags/v')).status).toBe(406);
    expect(set).toEqual([5]);
    const fixed = await start();
    expect((await fixed.ask('/debug/flags/v', { method: 'PUT', body: '5' })).status).toBe(501);
  });
});

describe('/metrics/slis', () => {
  it('tells how each check of health went, and counts them', async () => {
    const s = await start();
    expect((await s.ask('/healthz')).status).toBe(200);
    const text = (await s.ask('/metrics/slis')).body;
    for (const name of ['ping', 'log', 'syncloop', 'device-plugin']) {
      expect(text).toContain(`kubernetes_healthcheck{name="${name}",type="healthz"} 1\n`);
      expect(text).toContain(`kubernetes_healthchecks_total{name="${name}",type="healthz",status="success"} 2\n`);
    }
    expect(text).not.toMatch(/kubelet_|actorlet_/);
  });
});
