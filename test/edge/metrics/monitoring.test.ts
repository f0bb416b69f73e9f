/** The dashboard and the alert rules of packaging/monitoring: every metric in them is one that a daemon exports. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import { addNodeMetrics } from '../../../src/actors/edge/metrics/nodeMetrics.ts';
import { createMetrics } from '../../../src/boot/dependencies/metrics/metrics.ts';
import { addRecordingMetrics } from '../../../src/boot/steps/recording.ts';
import { type HollowNode, hollowNode, manifest, until } from '../../integration/hollowNode.ts';

const folder = join(import.meta.dirname, '../../../packaging/monitoring');
const metrics = createMetrics();
let h: HollowNode;
beforeAll(async () => {
  h = await hollowNode({ flags: { faultInjection: true }, ports: (ports) => ({ ...ports, metrics }) });
  const { registry } = h.node.tree;
  // What each server with /metrics adds.
  const build = { major: '1', minor: '36', gitVersion: 'v1.36.0', gitCommit: '', buildDate: '', platform: 'linux/amd64' };
  addNodeMetrics(metrics, { registry, state: () => h.node.tree.state(), nodeName: 'n1', build });
  addRecordingMetrics(metrics, { lost: 0, frames: 0, bytes: 0 });
  h.write('web.json', manifest('web'));
  await until('web runs', () => h.status('web')?.status.phase === 'Running');
});
afterAll(() => h[Symbol.asyncDispose]());

/** Of Prometheus itself. */
const OF_PROMETHEUS = new Set(['up']);
/** Names of metrics in a query: what is neither a function, a label, a keyword nor text. */
function metricsIn(expr: string): string[] {
  const bare = expr
    .replace(/"[^"]*"/g, '')
    .replace(/\{[^}]*\}/g, '')
    .replace(/\b(by|without|on|ignoring)\s*\([^)]*\)/g, '')
    .replace(/\[[^\]]*\]/g, '');
  return [...bare.matchAll(/[a-zA-Z_:][a-zA-Z0-9_:]*(?!\w)(?!\s*\()/g)]
    .map(([name]) => name)
    .filter((name) => name.includes('_') || OF_PROMETHEUS.has(name));
}

async function exported(): Promise<Set<string>> {
  const names = new Set(OF_PROMETHEUS);
  for (const [, name = '', kind] of (await metrics.render()).matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    names.add(name);
    if (kind === 'histogram') for (const part of ['bucket', 'sum', 'count']) names.add(`${name}_${part}`);
  }
  return names;
}

it('the alert rules name metrics of the daemon only', async () => {
  const { groups } = parse(readFileSync(join(folder, 'alerts.yaml'), 'utf8')) as {
    groups: { rules: { alert: string; expr: string; labels: { severity: string }; annotations: { summary: string } }[] }[];
  };
  const rules = groups.flatMap((g) => g.rules);
  expect(rules.length).toBeGreaterThan(8);
  expect(new Set(rules.map((r) => r.alert)).size).toBe(rules.length);
  const known = await exported();
  for (const rule of rules) {
    const names = metricsIn(rule.expr);
    expect(names.length, rule.alert).toBeGreaterThan(0);
    expect(
      names.filter((n) => !known.has(n)),
      rule.alert,
    ).toEqual([]);
    expect(['critical', 'warning', 'info']).toContain(rule.labels.severity);
    expect(rule.annotations.summary).toContain('$labels.instance');
  }
});

it('the dashboard names metrics of the daemon only', async () => {
  const board = JSON.parse(readFileSync(join(folder, 'dashboard.json'), 'utf8')) as {
    panels: { id: number; title: string; targets: { expr: string }[] }[];
  };
  expect(board.panels.length).toBeGreaterThan(12);
  expect(new Set(board.panels.map((p) => p.id)).size).toBe(board.panels.length);
  const known = await exported();
  for (const { title, targets } of board.panels) {
    const names = targets.flatMap((t) => metricsIn(t.expr));
    expect(names.length, title).toBeGreaterThanOrEqual(targets.length);
    expect(
      names.filter((n) => !known.has(n)),
      title,
    ).toEqual([]);
  }
});

it('finds the metrics in a query', () => {
  expect(metricsIn('histogram_quantile(0.99, sum by (le, path_x) (rate(a_b_bucket{path="c_d", e_f!="x"}[5m]))) > 1')).toEqual([
    'a_b_bucket',
  ]);
  expect(metricsIn('up{job="actorlet"} == 0')).toEqual(['up']);
  expect(metricsIn('time() - a_b > on (x_y) c_d')).toEqual(['a_b', 'c_d']);
});
