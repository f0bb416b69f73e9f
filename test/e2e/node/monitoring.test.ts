/** packaging/monitoring in Debian's Prometheus: the rules load and fire, and every query finds what a real daemon exports. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startNode, type TestNode } from '@actorlet/harness/src/index.ts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { freePort } from '../../freePort.ts';
import { until } from '../lab/ports.ts';

const folder = join(import.meta.dirname, '../../../packaging/monitoring');
const rules = join(folder, 'alerts.yaml');
const dir = mkdtempSync(join(tmpdir(), 'actorlet-monitoring-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function promtool(...args: string[]): string {
  return execFileSync('promtool', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

describe('the alert rules', () => {
  it('are what promtool takes', () => {
    expect(promtool('check', 'rules', rules)).toMatch(/SUCCESS: \d+ rules found/);
  });

  it('fire, at the first eviction and the first dropped message too, and stay silent on a node that is well', () => {
    const labels = 'instance="n1",job="actorlet"';
    const test = (
      name: string,
      o: { series: Record<string, string>; at: string; alert: string; fires: Record<string, string> | null },
    ) => ({
      name,
      interval: '1m',
      input_series: Object.entries(o.series).map(([series, values]) => ({ series: series.replace('}', `,${labels}}`), values })),
      alert_rule_test: [
        { eval_time: o.at, alertname: o.alert, exp_alerts: o.fires === null ? [] : [{ exp_labels: { instance: 'n1', ...o.fires } }] },
      ],
    });
    const evictions = 'kubelet_evictions{eviction_signal="memory.available"}';
    const dropped = 'actorlet_mailbox_dropped_total{path="node/pods/config",reason="overflow"}';
    const memory = { eviction_signal: 'memory.available', severity: 'warning' };
    const config = { path: 'node/pods/config', severity: 'warning' };
    const running = (values: string) => ({
      'actorlet_actors{path="node/pods/workers"}': '5x40',
      'actorlet_actors_running{path="node/pods/workers"}': values,
    });
    const tests = [
      test('first eviction', { series: { [evictions]: '_x20 1x9' }, at: '22m', alert: 'KubeletEvicts', fires: memory }),
      test('a later one', { series: { [evictions]: '3x20 4x20' }, at: '25m', alert: 'KubeletEvicts', fires: memory }),
      test('long ago', { series: { [evictions]: '_x5 1x40' }, at: '40m', alert: 'KubeletEvicts', fires: null }),
      test('first loss', { series: { [dropped]: '_x20 1x9' }, at: '22m', alert: 'ActorletMessagesDropped', fires: config }),
      test('an old loss', { series: { [dropped]: '7x40' }, at: '30m', alert: 'ActorletMessagesDropped', fires: null }),
      test('an actor is away', {
        series: running('5x10 4x30'),
        at: '20m',
        alert: 'ActorletActorDown',
        fires: { path: 'node/pods/workers', severity: 'critical' },
      }),
      test('a restart', { series: running('5x10 4x1 5x20'), at: '20m', alert: 'ActorletActorDown', fires: null }),
      test('no daemon', {
        series: { 'up{}': '1x5 0x10' },
        at: '10m',
        alert: 'ActorletDown',
        fires: { job: 'actorlet', severity: 'critical' },
      }),
    ].map((t) => ({ ...t, input_series: t.input_series.map((s) => ({ ...s, series: s.series.replace('{,', '{') })) }));
    // Only whether an alert fires, and for whom, is compared: not its texts.
    const bare = join(dir, 'rules.yaml');
    writeFileSync(bare, readFileSync(rules, 'utf8').replace(/^ {8}annotations:\n(?: {10}.*\n?)+/gm, ''));
    const file = join(dir, 'tests.yaml');
    writeFileSync(file, stringify({ rule_files: [bare], evaluation_interval: '1m', tests }));
    expect(promtool('test', 'rules', file)).toContain('SUCCESS');
  });
});

describe('a Prometheus that scrapes a daemon', () => {
  let node: TestNode;
  let server: ReturnType<typeof spawn>;
  let base = '';
  const api = async (path: string, query: Record<string, string> = {}): Promise<unknown> => {
    const answer = await fetch(`${base}${path}?${new URLSearchParams(query)}`, { signal: AbortSignal.timeout(10_000) });
    const body = (await answer.json()) as { status: string; error?: string; data: unknown };
    if (body.status !== 'success') throw new Error(`${query.query ?? path}: ${body.error}`);
    return body.data;
  };
  beforeAll(async () => {
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec: { containers: [{ name: 'a', image: 'x.test/a:1' }] } };
    node = await startNode({ runtime: 'hollow', readOnlyPort: true, timeoutMs: 60_000, startTimeoutMs: 90_000 });
    await node.apply(pod);
    const port = await freePort();
    base = `http://127.0.0.1:${port}`;
    const config = join(dir, 'prometheus.yaml');
    writeFileSync(
      config,
      stringify({
        global: { scrape_interval: '1s', evaluation_interval: '1s' },
        rule_files: [rules],
        scrape_configs: [{ job_name: 'actorlet', static_configs: [{ targets: [new URL(node.url).host] }] }],
      }),
    );
    const args = [`--config.file=${config}`, `--storage.tsdb.path=${join(dir, 'data')}`, `--web.listen-address=127.0.0.1:${port}`];
    server = spawn('prometheus', [...args, '--log.level=error'], { stdio: ['ignore', 'ignore', 'inherit'] });
    await until('some scrapes', async () => {
      const { result } = (await api('/api/v1/query', { query: 'count_over_time(up[1m])' })) as { result: { value: [number, string] }[] };
      return Number(result[0]?.value[1] ?? 0) > 5;
    });
  });
  afterAll(async () => {
    const ended = new Promise((resolve) => server?.once('exit', resolve));
    if (server?.kill() === true) await ended;
    await node?.dispose();
  });

  it('evaluates every rule, and none fires', async () => {
    const { groups } = (await api('/api/v1/rules')) as { groups: { rules: { name: string; health: string; state: string }[] }[] };
    const all = groups.flatMap((g) => g.rules);
    expect(all.length).toBeGreaterThan(8);
    expect(all.filter((r) => r.health !== 'ok' || r.state !== 'inactive')).toEqual([]);
  });

  it('answers every query of the dashboard; what counts faults and evictions may be empty', async () => {
    const board = JSON.parse(readFileSync(join(folder, 'dashboard.json'), 'utf8')) as {
      panels: { title: string; targets: { expr: string }[] }[];
    };
    const empty: string[] = [];
    for (const { title, targets } of board.panels) {
      for (const { expr } of targets) {
        const query = expr.replace(/\$__(rate_interval|interval|range)/g, '1m').replace(/\$\{?instance\}?/g, '.*');
        const { result } = (await api('/api/v1/query', { query })) as { result: unknown[] };
        if (result.length === 0) empty.push(title);
      }
    }
    const OF_FAULTS = ['Actors that do not run', 'Actor restarts per minute', 'Messages dropped per second', 'Runtime errors per second'];
    const may = [...OF_FAULTS, 'Evictions and refusals per hour', 'Recording'];
    expect([...new Set(empty)].filter((title) => !may.includes(title))).toEqual([]);
  });
});
