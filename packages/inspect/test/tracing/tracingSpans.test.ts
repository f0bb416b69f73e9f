/** From facts to spans: a pure function. */
import { expect, it } from 'vitest';
import type { PodTrace, Span } from '../../src/tracing/model.ts';
import { spansOf } from '../../src/tracing/spans.ts';

const cause = (atMs: number, by: string) => ({ atMs, by: `node/pods/${by}`, what: 'hunter2-planted' });
function facts(o: Partial<PodTrace> = {}): PodTrace {
  return {
    ...{ kind: 'start', traceId: 'a'.repeat(32), pod: { uid: 'u', name: 'web', namespace: 'default', source: 'file' } },
    ...{ beganAtMs: 100, endedAtMs: 500, error: '', causes: [], steps: [], calls: [], writes: [], events: [], left: 0 },
    ...o,
  };
}
function spans(o: Partial<PodTrace>): Span[] {
  let next = 0;
  return spansOf(facts(o), () => String(next++));
}
/** `name START-END in PARENT`. */
function drawn(list: readonly Span[]): string[] {
  const name = new Map(list.map((s) => [s.spanId, s.name]));
  return list.map((s) => `${s.name} ${s.startMs}-${s.endMs}${s.parentSpanId === '' ? '' : ` in ${name.get(s.parentSpanId)}`}`);
}

it('takes source and admission from the last causes that tell them, and begins there', () => {
  const causes = [
    ...[cause(1, 'sources/file'), cause(2, 'config'), cause(3, 'podManager'), cause(50, 'sources/file'), cause(60, 'config')],
    ...[cause(90, 'podManager'), cause(95, 'workers/u')],
  ];
  const made = spans({ causes });
  expect(drawn(made)).toEqual(['pod adoption 50-500', 'source 50-60 in pod adoption', 'admission 60-90 in pod adoption']);
  expect(JSON.stringify(made)).not.toContain('hunter2');
  expect(drawn(spans({ causes: [cause(60, 'config'), cause(90, 'podManager')] })).slice(1)).toEqual(['admission 60-90 in pod adoption']);
  for (const part of [[cause(90, 'podManager')], [cause(60, 'config')], [cause(90, 'podManager'), cause(95, 'config')]])
    expect(drawn(spans({ causes: part }))).toEqual(['pod adoption 100-500']);
});

it('puts each call into the innermost state or pull in which it was made', () => {
  const made = spans({
    steps: [
      { atMs: 100, state: 'syncing.mountingVolumes', reason: 'MountingVolumes' },
      { atMs: 120, state: 'syncing.creatingSandbox', reason: '' },
      { atMs: 200, state: 'syncing.settled', reason: 'Synced' },
    ],
    events: [
      { atMs: 210, reason: 'Pulling', fieldPath: 'spec.containers{a}' },
      { atMs: 220, reason: 'Pulling', fieldPath: 'spec.containers{b}' },
      { atMs: 300, reason: 'Failed', fieldPath: 'spec.containers{b}' },
      { atMs: 320, reason: 'Pulled', fieldPath: 'spec.containers{a}' },
      { atMs: 600, reason: 'Unhealthy', fieldPath: '' },
    ],
    calls: [
      { spanId: 'c1', method: 'RunPodSandbox', about: '', startMs: 120, endMs: 199, code: 0 },
      { spanId: 'c2', method: 'PullImage', about: 'b:1', startMs: 221, endMs: 299, code: 5 },
      { spanId: 'c3', method: 'StartContainer', about: 'id', startMs: 400, endMs: null, code: 0 },
    ],
  });
  expect(drawn(made)).toEqual([
    'pod start 100-500',
    'volumes 100-120 in pod start',
    'pod sandbox 120-200 in pod start',
    'image pull 210-320 in pod start',
    'image pull 220-300 in pod start',
    'runtime.v1.RuntimeService/RunPodSandbox 120-199 in pod sandbox',
    'runtime.v1.ImageService/PullImage 221-299 in image pull',
    'runtime.v1.RuntimeService/StartContainer 400-500 in pod start',
  ]);
  expect(made.map((s) => s.error)).toEqual(['', '', '', '', 'Failed', '', 'NOT_FOUND', '']);
  expect(made.find((s) => s.spanId === 'c2')?.parentSpanId).toBe(made[4]?.spanId);
  expect(made[0]?.events.map((e) => e.name)).toEqual(['Pulling', 'Pulling', 'Failed', 'Pulled']);
  expect(made.at(-1)?.attributes).toMatchObject({ 'container.id': 'id', 'actorlet.unfinished': true });
});

it('holds every span in its root, also those that end later and those during which the wall clock was set back', () => {
  const made = spans({
    kind: 'stop',
    steps: [
      { atMs: 100, state: 'terminating.stopping', reason: '' },
      { atMs: 40, state: 'terminated', reason: '' },
      { atMs: 60, state: 'finished', reason: '' },
    ],
    writes: [
      { startMs: 490, endMs: 520, failed: true },
      { startMs: 530, endMs: null, failed: false },
    ],
    calls: [{ spanId: 'c1', method: 'StopContainer', about: '', startMs: 100, endMs: 30, code: 99 }],
  });
  expect(drawn(made)).toEqual([
    'pod stop 40-530',
    'stop containers 100-100 in pod stop',
    'volumes teardown 40-60 in pod stop',
    'status write 490-520 in pod stop',
    'status write 530-530 in pod stop',
    'runtime.v1.RuntimeService/StopContainer 100-100 in stop containers',
  ]);
  expect(made.at(-1)?.error).toBe('99');
});
