/** The flight recorder. */
import { describe, expect, it } from 'vitest';
import { createRecorder } from '../../src/actors/recorder/recorder.ts';

const AT = Date.UTC(2026, 0, 1);
describe('the flight recorder', () => {
  it('writes one line for each kind of event', () => {
    const r = createRecorder();
    r.observe({ kind: 'child.started', atMs: AT, path: 'node/a', incarnation: 1 });
    r.observe({
      kind: 'message',
      atMs: AT,
      to: 'node/a',
      type: 'pod.update',
      key: 'uid',
      causes: [
        { atMs: 1, by: 'node/file', what: 'web.yaml changed' },
        { atMs: 2, by: 'node/config', what: 'UPDATE' },
      ],
    });
    r.observe({ kind: 'transition', atMs: AT, path: 'node/a', from: 'idle', to: 'busy', event: 'pod.update', reason: 'Syncing' });
    r.observe({
      kind: 'child.exited',
      atMs: AT,
      path: 'node/a',
      incarnation: 1,
      reason: { kind: 'error', error: new Error('boom\nat x') },
    });
    r.observe({ kind: 'child.restarting', atMs: AT, path: 'node/a', delayMs: 99.6, restartsInWindow: 2 });
    r.observe({ kind: 'quarantined', atMs: AT, path: 'node/a', error: 'twice' });
    r.observe({ kind: 'supervisor.escalated', atMs: AT, path: 'node', error: 'over' });
    r.observe({ kind: 'dead-letter', atMs: AT, letter: { atMs: AT, to: 'node/b', type: 'x', reason: 'overflow' } });
    expect(r.dump().map((l) => l.replace('2026-01-01T00:00:00.000Z ', ''))).toEqual([
      'child.started node/a incarnation 1',
      'message node/a pod.update uid because node/file: web.yaml changed < node/config: UPDATE',
      'transition node/a idle -> busy on pod.update (Syncing)',
      'child.exited node/a error: boom incarnation 1',
      'child.restarting node/a in 100 ms 2 restarts in the window',
      'quarantined node/a twice',
      'supervisor.escalated node over',
      'dead-letter node/b x (overflow)',
    ]);
  });
  it('keeps the newest and says how many went', () => {
    const r = createRecorder(4);
    for (let i = 0; i < 10; i++) r.observe({ kind: 'child.started', atMs: AT, path: `node/${i}`, incarnation: 1 });
    expect(r.dump().map((l) => /node\/\d/.exec(l)?.[0] ?? l)).toEqual([
      '(6 earlier entries overwritten)',
      'node/6',
      'node/7',
      'node/8',
      'node/9',
    ]);
    expect(r.recorded).toBe(10);
  });
  it('shows one actor and what is below it, and only the newest so many', () => {
    const r = createRecorder();
    for (const path of ['node/pods', 'node/pods/a', 'node/podsmore', 'node/pods/b'])
      r.observe({ kind: 'child.started', atMs: AT, path, incarnation: 1 });
    expect(r.dump({ path: 'node/pods' })).toHaveLength(3);
    expect(r.dump({ path: 'node/pods', limit: 1 })[0]).toContain('node/pods/b');
  });
});
