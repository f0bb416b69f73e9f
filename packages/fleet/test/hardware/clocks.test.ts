/** Clocks of nodes that are apart: by their group, or by a step, for a while. */
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { describe, expect, it } from 'vitest';
import { decodeFleet } from '../../src/file.ts';
import { apiServer, runnable } from '../adopt/rig.ts';

const HEAD = 'apiVersion: actorlet.dev/v1alpha1\nkind: Fleet\nmetadata: { name: demo }\nspec:\n';
const HOUR_MS = 3_600_000;

describe('the clock of a node', { timeout: 60_000 }, () => {
  it('is what it writes: into leases, conditions, statuses of pods and events', async () => {
    const api = apiServer();
    const run = runnable(
      `${HEAD}  groups:
    - { name: late, count: 1, clock: { behind: 2h } }
    - { name: early, count: 8, clock: { ahead: { from: 1h, to: 9h } } }
    - { name: right, count: 1 }
  steps:
    - { at: 1500ms, do: inject, clock: { ahead: 3h, for: 2s }, nodes: { groups: [right] } }
  expect:
    - { nodesReady: 10, after: 4s, within: 30s }
`,
      api,
    );
    const { store } = api.kube;
    const pod = {
      metadata: { name: 'p' },
      spec: { nodeName: 'late-0', serviceAccountName: 'default', containers: [{ name: 'a', image: 'x' }] },
    };
    api.kube.handle({ verb: 'POST', path: '/api/v1/namespaces/default/pods', body: pod });
    const ending = run.toTheEnd();
    const aheadMs = (time: unknown): number => Date.parse(String(time)) - Date.now();
    const heartbeat = (name: string): number => {
      const status = run.nodes().find((n) => n.metadata.name === name)?.status;
      const conditions = isRecord(status) && Array.isArray(status.conditions) ? status.conditions.filter(isRecord) : [];
      return aheadMs(conditions.find((c) => c.type === 'Ready')?.lastHeartbeatTime);
    };
    await expect.poll(() => heartbeat('late-0')).toBeCloseTo(-2 * HOUR_MS, -5);
    const renewed = (): unknown => store.list('leases').find((l: KubeObject) => l.metadata.name === 'late-0')?.spec;
    await expect.poll(() => aheadMs((renewed() as { renewTime?: string } | undefined)?.renewTime)).toBeCloseTo(-2 * HOUR_MS, -5);
    const started = (): unknown => (store.list('pods')[0]?.status as { startTime?: string } | undefined)?.startTime;
    await expect.poll(() => aheadMs(started())).toBeCloseTo(-2 * HOUR_MS, -5);
    const ofPods = (): KubeObject[] =>
      store.list('events').filter((e: KubeObject) => isRecord(e.involvedObject) && e.involvedObject.kind === 'Pod');
    await expect.poll(() => aheadMs(ofPods()[0]?.firstTimestamp)).toBeCloseTo(-2 * HOUR_MS, -5);
    const drawn = Array.from({ length: 8 }, (_, i) => heartbeat(`early-${i}`));
    expect(drawn.every((ms) => ms > 0.99 * HOUR_MS && ms < 9.01 * HOUR_MS)).toBe(true);
    expect(new Set(drawn.map((ms) => Math.round(ms / 60_000))).size).toBeGreaterThan(5);
    const report = await ending;
    await run.stop();
    expect(report.steps.map(({ what, count }) => [what, count])).toEqual([
      ['inject clock ahead', 1],
      ['clocks as before', 1],
    ]);
    expect(report.expect.every((e) => e.metMs !== null)).toBe(true);
  });

  it.each([
    ['groups: [{ name: a, count: 1, clock: {} }]', 'clock: needs ahead or behind, and not both'],
    ['groups: [{ name: a, count: 1, clock: { ahead: 1s, behind: 1s } }]', 'clock: needs ahead or behind, and not both'],
    ['groups: [{ name: a, count: 1, clock: { for: 1s, ahead: 1s } }]', 'for'],
    ['groups: [{ name: a, count: 1, clock: { ahead: 40h } }]', 'ahead'],
    ['groups: [{ name: a, count: 1 }]\n  steps: [{ at: 0s, do: restart, clock: { ahead: 1s } }]', 'clock: belongs to inject'],
    [
      'groups: [{ name: a, count: 1 }]\n  steps: [{ at: 0s, do: inject, api: { fault: slow }, clock: { ahead: 1s } }]',
      'clock: stands beside api',
    ],
    ['groups: [{ name: a, count: 1 }]\n  steps: [{ at: 0s, do: inject }]', 'scenario: is missing'],
  ])('is refused where the file says %s', (spec, why) => {
    const read = decodeFleet(`${HEAD}  ${spec}\n`);
    expect(read.ok ? '' : read.errors.map((e) => `${e.field}: ${e.message}`).join('\n')).toContain(why);
  });
});
