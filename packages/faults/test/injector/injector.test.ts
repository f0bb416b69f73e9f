/**
 * The injector as a supervised actor in virtual time: windows begin, end and heal in time, also when it is killed,
 * and every one of them is told.
 */

import { address, type Message } from '@actorlet/kubelet/machines/supervision/address.ts';
import { describe, expect, test } from 'vitest';
import { LIVE_SCENARIOS_MAX, planLive } from '../../src/live.ts';
import { injectorAddr } from '../../src/messages.ts';
import { injectorRig, NODE, scenario } from './rig.ts';

const it = test.extend('r', () => injectorRig());

const worker = address<Message>('node/pods/worker');
const slow = { name: 'slow', kind: 'disk.slow', delay: '1s' };
const reasons = (r: Awaited<ReturnType<typeof injectorRig>>) =>
  r.events().map((e) => `${e.reason} ${e.type} ${e.pod === undefined ? 'node' : 'pod'}`);

describe('a scenario in a running daemon', () => {
  const plan = (faults: readonly object[], spec: object = {}) => planLive(scenario(faults, spec), NODE);

  it('lasts ten minutes unless it says otherwise, or as long as what it writes out', () => {
    expect(plan([slow])).toMatchObject({ ok: true, durationMs: 600_000, windows: [{ atMs: 0, endMs: 600_000 }] });
    expect(plan([slow], { duration: '30s' })).toMatchObject({ durationMs: 30_000, windows: [{ endMs: 30_000 }] });
    expect(plan([{ ...slow, for: '30m' }])).toMatchObject({ durationMs: 1_800_000, windows: [{ endMs: 1_800_000 }] });
    const chain = [
      { ...slow, for: '8m' },
      { name: 'then', kind: 'disk.full', after: 'slow', for: '8m' },
    ];
    expect(plan(chain)).toMatchObject({
      windows: [
        { atMs: 0, endMs: 480_000 },
        { atMs: 480_000, endMs: 960_000 },
      ],
    });
    expect(plan([{ name: 'late', kind: 'hints.cut', at: '20m' }])).toMatchObject({ ok: true, windows: [{ atMs: 1_200_000 }] });
  });

  it('is refused beyond a day, with too many windows, when nothing happens in it, and when it is for other nodes', () => {
    const errors = (faults: readonly object[], spec: object = {}) => {
      const p = plan(faults, spec);
      return p.ok ? [] : p.errors.map((e) => `${e.field}: ${e.message}`);
    };
    expect(errors([slow], { duration: '25h' })).toEqual(['spec.duration: must be at most 24h0m0s in a running daemon']);
    expect(errors([{ ...slow, for: '25h' }])).toEqual(['fault slow: would last beyond 24h0m0s, the longest a running daemon allows']);
    const often = Array.from({ length: 3 }, (_, i) => ({ name: `k${i}`, kind: 'hints.cut', every: '1ms' }));
    expect(errors(often)[0]).toContain('windows in 10m0s; at most 20000 are allowed');
    expect(errors([{ ...slow, at: '1m' }], { duration: '10s' })).toEqual([
      'spec.duration: nothing happens within 10s: every fault begins later',
    ]);
    expect(errors([{ ...slow, nodes: ['other-*'] }])).toEqual([`spec.faults: is aimed at other nodes only; this one is ${NODE}`]);
    expect(errors([])).toEqual(['spec.faults: is empty: there is nothing to inject']);
  });
});

describe('the injector', () => {
  it('begins and ends windows in time, and says so as event, log line, record, metric and list', async ({ r }) => {
    const id = await r.begin([{ ...slow, at: '10s', for: '20s', every: '1m', count: 2 }]);
    expect(id).toBe('test-1');
    expect(await r.list()).toMatchObject([
      { id, endsInMs: 90_000, faults: [{ name: 'slow', phase: 'waiting', windows: 0, changesInMs: 10_000 }] },
    ]);
    expect(r.activeFaults.size).toBe(0);
    await r.base.advance(10_000);
    expect(r.activeFaults.size).toBe(1);
    expect(await r.metric('actorlet_faults_active 1')).toBe(true);
    expect(await r.list()).toMatchObject([{ faults: [{ phase: 'active', windows: 1, changesInMs: 20_000 }] }]);
    expect(reasons(r)).toEqual(['FaultInjected Warning node']);
    expect(r.records.some((l) => l.includes('FaultInjected: slow of test-1: disk.slow 1s'))).toBe(true);
    expect(
      r.base.lines.some((l) => l.level === 'warn' && l.msg === 'slow of test-1: disk.slow 1s' && l.fields.reason === 'FaultInjected'),
    ).toBe(true);
    await r.base.advance(20_000);
    expect(r.activeFaults.size).toBe(0);
    expect(reasons(r)).toEqual(['FaultInjected Warning node', 'FaultHealed Normal node']);
    await r.base.advance(40_000);
    expect(r.activeFaults.size).toBe(1);
    await r.base.advance(20_000);
    expect([r.activeFaults.size, (await r.list()).length]).toEqual([0, 0]);
    expect(await r.metric('actorlet_faults_active 0')).toBe(true);
  });

  it('heals one injection, or all, when told to', async ({ r }) => {
    const a = await r.begin([slow]);
    const b = await r.begin([{ kind: 'disk.full' }, { ...slow, name: 'later', at: '1h', for: '1s' }]);
    expect(await r.stop('no-such')).toEqual([]);
    expect(await r.stop(a)).toEqual([a]);
    expect([r.activeFaults.of('disk.slow').length, r.activeFaults.of('disk.full').length]).toEqual([0, 1]);
    expect(await r.stop()).toEqual([b]);
    expect([r.activeFaults.size, (await r.list()).length]).toEqual([0, 0]);
    await r.base.advance(2 * 3_600_000);
    expect(r.activeFaults.size).toBe(0);
  });

  it('heals everything when it is killed, says so when it is back, and injects nothing again', async ({ r }) => {
    await r.begin([
      slow,
      { name: 'full', kind: 'disk.full', at: '1s' },
      { name: 'mail', kind: 'mailbox', action: 'delay', delay: '1h', select: { actors: 'pods/worker' } },
    ]);
    const active = r.activeFaults.of('disk.slow')[0];
    r.tree.registry.send(worker, { type: 'pod.dirty' });
    await r.base.settle();
    expect([active?.healed.aborted, r.heard]).toEqual([false, []]);
    expect(r.tree.kill(injectorAddr.path, 'the test')).toBe(true);
    await r.base.settle();
    expect([active?.healed.aborted, r.activeFaults.size]).toEqual([true, 0]);
    expect(r.heard).toEqual(['pod.dirty']);
    await r.base.advance(10_000);
    expect([r.activeFaults.size, (await r.list()).length]).toEqual([0, 0]);
    const last = r.events().at(-1);
    expect(last?.reason).toBe('FaultHealed');
    expect(last?.message).toContain('the fault injector ended; what it had injected was healed: slow (disk.slow 1s); mail (');
    expect(await r.begin([slow])).toBe('test-2.1');
  });

  it('kills actors by path and by pattern, and says when nothing is there', async ({ r }) => {
    const incarnation = (path: string) =>
      r.tree
        .state()
        .children.flatMap((c) => c.children)
        .find((c) => c.path === path)?.incarnation;
    await r.begin([{ kind: 'actor.kill', select: { actors: 'pods/worker' } }]);
    await r.base.advance(5_000);
    expect([incarnation('node/pods/worker'), incarnation('node/pods/other')]).toEqual([2, 1]);
    await r.begin([{ kind: 'actor.kill', pick: 'all', select: { actors: 'pods/*' } }]);
    await r.base.advance(5_000);
    expect([incarnation('node/pods/worker'), incarnation('node/pods/other')]).toEqual([3, 2]);
    expect(await r.metric('actorlet_faults_injected_total{kind="actor.kill"} 3')).toBe(true);

    const nothing = await r.inject([{ name: 'k', kind: 'actor.kill', select: { actors: 'pods/nobody' } }]);
    expect(nothing).toMatchObject({ ok: false, status: 404 });
    expect(nothing.ok ? '' : nothing.message).toContain(
      'fault k: is aimed at nothing: actor.kill; actors node/pods/nobody fits no actor of this node now',
    );
    // The root has nothing above it, and a pattern spares the injector.
    expect(await r.inject([{ kind: 'actor.kill', select: { actors: 'node' } }])).toMatchObject({ ok: false, status: 404 });
    await r.begin([{ kind: 'actor.kill', pick: 'all', select: { actors: 'foundation/*' } }]);
    await r.base.advance(5_000);
    expect([incarnation('node/foundation/telemetry'), incarnation('node/foundation/injector')]).toEqual([2, 1]);
    // Later it may be there: accepted with a warning; it says when it hit nothing.
    const later = await r.inject([{ name: 'k', kind: 'actor.kill', at: '1s', every: '1m', count: 2, select: { actors: 'pods/nobody' } }]);
    expect(later).toMatchObject({ ok: true, warnings: [expect.stringContaining('is aimed at nothing')] });
    await r.base.advance(2_000);
    expect(await r.list()).toMatchObject([{ faults: [{ windows: 1, hits: 0, missed: 'no actor of this node fits it now' }] }]);
    expect(r.events().at(-1)?.reason).toBe('FaultMissed');
  });

  it('refuses what can do nothing on this node', async ({ r }) => {
    for (const [fault, why] of [
      [{ kind: 'http.down', action: 'error' }, 'no HTTP source'],
      [{ kind: 'api.partition' }, 'no cluster'],
      [{ kind: 'pressure.memory', available: '1Mi' }, 'no eviction threshold'],
    ] as const) {
      const answer = await r.inject([fault]);
      expect(answer.ok ? '' : answer.message).toContain(why);
    }
    expect(r.activeFaults.size).toBe(0);
  });

  it('makes memory seem short where some eviction threshold is about it, until healed', async () => {
    const host = { memory: () => ({ capacityBytes: 100, availableBytes: 50 }) };
    const r = await injectorRig({ host }, { looksAtMemory: true });
    await r.begin([{ kind: 'pressure.memory', available: '7' }]);
    expect(r.ports.host.memory?.()).toEqual({ capacityBytes: 100, availableBytes: 7 });
    await r.stop();
    expect(r.ports.host.memory?.()).toEqual({ capacityBytes: 100, availableBytes: 50 });
  });

  it('takes a bounded number of scenarios', async ({ r }) => {
    for (let i = 0; i < LIVE_SCENARIOS_MAX; i++) await r.begin([slow]);
    expect(await r.inject([slow])).toMatchObject({ ok: false, status: 429 });
    await r.stop();
    expect(await r.inject([slow])).toMatchObject({ ok: true });
  });

  it('drops, delays and reorders mail, never its own', async ({ r }) => {
    const send = (type: string) => r.tree.registry.send(worker, { type });
    await r.begin([{ kind: 'mailbox', action: 'drop', select: { actors: '**', events: ['pod.*', 'faults.*'] } }]);
    send('pod.dirty');
    send('other.event');
    await r.base.settle();
    expect(r.heard).toEqual(['other.event']);
    expect(r.tree.registry.deadLetters().byReason).toEqual({ injected: 1 });
    // Its own mail arrives all the same, so that it can be stopped.
    expect(await r.stop()).toHaveLength(1);
    await r.begin([{ kind: 'mailbox', action: 'reorder', times: 1, select: { actors: 'pods/worker' } }]);
    send('first');
    send('second');
    await r.base.settle();
    expect(r.heard.slice(1)).toEqual(['second', 'first']);
    await r.stop();
    await r.begin([{ kind: 'mailbox', action: 'delay', delay: '5s', select: { actors: 'pods/worker' } }]);
    send('late');
    await r.base.advance(4_000);
    expect(r.heard).not.toContain('late');
    await r.base.advance(1_000);
    expect(r.heard).toContain('late');
  });
});
