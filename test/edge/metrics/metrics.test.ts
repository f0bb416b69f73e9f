/** The real Metrics port. */
import { setTimeout } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { createMetrics } from '../../../src/boot/dependencies/metrics/metrics.ts';

const it = test.extend('m', () => createMetrics());

describe('metrics', () => {
  it('renders counters, gauges and histograms, and keeps instances apart', async () => {
    const [a, b] = [createMetrics(), createMetrics()];
    a.counter('c_total', 'c', ['x']).inc({ x: '1' }, 3);
    a.gauge('g', 'g').set(2.5);
    const h = a.histogram('h_seconds', 'h', [0.1, 1]);
    h.observe(0.5);
    const text = await a.render();
    expect(text).toContain('c_total{x="1"} 3\n');
    expect(text).toContain('g 2.5\n');
    expect(text).toContain('h_seconds_bucket{le="1"} 1\n');
    expect(await b.render()).not.toContain('c_total');
  });
  it('gives a restarted actor the metric it had, and refuses another meaning of the name', async ({ m }) => {
    m.counter('c_total', 'c', ['x', 'y']).inc({ x: '1', y: '1' });
    m.counter('c_total', 'c', ['y', 'x']).inc({ x: '1', y: '1' });
    expect(await m.render()).toContain('c_total{x="1",y="1"} 2\n');
    expect(() => m.gauge('c_total', 'c', ['x', 'y'])).toThrow('metric c_total is registered as counter{x,y}');
    expect(() => m.counter('c_total', 'c')).toThrow(/asked for as counter\{\}/);
  });
  it('removes one series of a gauge', async ({ m }) => {
    const g = m.gauge('g', 'g', ['p']);
    g.set(1, { p: 'a' });
    g.set(1, { p: 'b' });
    g.remove({ p: 'a' });
    expect((await m.render()).match(/^g\{.*$/gm)).toEqual(['g{p="b"} 1']);
  });
  it('renders those families only that are wanted', async ({ m }) => {
    m.gauge('prober_a', 'a').set(1);
    m.gauge('other', 'o').set(1);
    m.gauge('prober_b', 'b').set(2);
    expect(await m.render((family) => family.startsWith('prober_'))).toBe(
      '# HELP prober_a a\n# TYPE prober_a gauge\nprober_a 1\n\n# HELP prober_b b\n# TYPE prober_b gauge\nprober_b 2\n',
    );
  });
  it('replaces a collector of the same key and survives one that throws', async ({ m }) => {
    const g = m.gauge('g', 'g');
    let old = 0;
    m.onCollect(() => void old++, 'mine');
    m.onCollect(() => g.set(7), 'mine');
    m.onCollect(() => {
      throw new Error('broken');
    }, 'bad');
    const text = await m.render();
    expect(old).toBe(0);
    expect(text).toContain('\ng 7\n');
    expect(text).toContain('actorlet_metrics_collect_errors_total{collector="bad"} 1\n');
  });
  it('tells what Node has of a process, where it is the registry of one', async () => {
    expect(await createMetrics().render()).not.toContain('nodejs_');
    const text = await createMetrics({ ofProcess: true }).render();
    for (const name of [
      'nodejs_heap_size_used_bytes',
      'nodejs_eventloop_lag_p99_seconds',
      'process_open_fds',
      'process_max_fds',
      'nodejs_active_resources_total',
    ])
      expect([name, Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1])]).toEqual([name, expect.any(Number)]);
    expect(text).toContain('# TYPE nodejs_gc_duration_seconds histogram\n');
    expect(text).toContain('nodejs_version_info{version="v');
  });
  it('counts under frozen labels what it counts under others, also after a series was removed', async () => {
    const figures = [0.05, 0.1, 0.7, 1, 12];
    const rendered = async (freeze: boolean): Promise<string> => {
      const m = createMetrics();
      const h = m.histogram('h_seconds', 'h', [0.1, 1], ['path', 'way']);
      const labels = ['a', 'b'].map((path) => ({ path, way: 'x' })).map((l) => (freeze ? Object.freeze(l) : l));
      for (const l of labels) for (const figure of figures) h.observe(figure, l);
      h.remove({ path: 'a', way: 'x' });
      for (const l of labels) for (let i = 0; i < 3; i++) h.observe(0.2, l);
      return (await m.render())
        .split('\n')
        .filter((line) => line.startsWith('h_seconds'))
        .join('\n');
    };
    expect(await rendered(true)).toBe(await rendered(false));
    expect(await rendered(true)).toContain('h_seconds_count{path="b",way="x"} 8');
  });
  it('tells how late the event loop was, without the time between its looks, and wakes the process few times for it', async () => {
    const metrics = createMetrics({ ofProcess: true });
    const max = async (): Promise<number> => {
      const text = await metrics.render((name) => name === 'nodejs_eventloop_lag_max_seconds');
      return Number(/^nodejs_eventloop_lag_max_seconds (.*)$/m.exec(text)?.[1]);
    };
    expect(await max()).toBe(0);
    // It looks four times a second, and a look after a reset only begins a time.
    const stalled = async (): Promise<number> => {
      await setTimeout(600);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 700);
      await setTimeout(50);
      return max();
    };
    await expect.poll(stalled).toBeGreaterThan(0.3);
  });
  it('tells the cheap facts about its process', async () => {
    const text = await createMetrics().render();
    for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'process_start_time_seconds']) {
      expect(Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1])).toBeGreaterThan(0);
    }
  });
});
