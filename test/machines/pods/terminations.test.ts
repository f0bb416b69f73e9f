/** Which ends of containers a status shows for the first time. */
import { expect, it } from 'vitest';
import type { ContainerStatus, PodStatus } from '../../../src/machines/kube/types.ts';
import { newEnds, terminationOf } from '../../../src/machines/pods/status/terminations.ts';

const ended = (id: string, exitCode = 1) => ({ terminated: { exitCode, reason: 'Error', containerID: id } });
const UP = { running: { startedAt: 'x' } };
const DOWN = { waiting: { reason: 'CrashLoopBackOff' } };
const status = (state: object, lastState: object = {}): PodStatus => ({
  containerStatuses: [{ name: 'main', state, lastState } as unknown as ContainerStatus],
});
const end = (exit_code = '1') => ({ container_type: 'container', exit_code, reason: 'Error' });

it.each<[string, PodStatus | undefined, PodStatus, object[]]>([
  ['the first status', undefined, status(ended('a')), [end()]],
  ['the first status, which an earlier daemon has counted in part', undefined, status(UP, ended('a')), []],
  ['a container that ran', status(UP), status(ended('a', 137)), [end('137')]],
  ['the same once more', status(ended('a')), status(ended('a')), []],
  ['it waits now', status(ended('b'), ended('a')), status(DOWN, ended('b')), []],
  ['it is shown as ended again before it starts', status(DOWN, ended('b')), status(ended('b'), ended('a')), []],
  ['it runs again', status(ended('a')), status(UP, ended('a')), []],
  ['its end was hidden by a wait', status(UP, ended('a')), status(DOWN, ended('b')), [end()]],
  ['its end was hidden by a new start', status(UP, ended('a')), status(UP, ended('b')), [end()]],
  ['it ended unseen, and ended again', status(UP, ended('a')), status(ended('c'), ended('b')), [end(), end()]],
  ['the end of which nothing is known', status(UP), status({ terminated: { exitCode: 137, reason: 'Error' } }), [end('137')]],
])('%s', (_, before, now, expected) => {
  expect(newEnds(before, now).map(terminationOf)).toEqual(expected);
});

it('tells kinds of containers apart', () => {
  const { containerStatuses = [] } = status(ended('a'));
  const now = { initContainerStatuses: containerStatuses, ephemeralContainerStatuses: containerStatuses };
  expect(
    newEnds(undefined, now)
      .map(terminationOf)
      .map((t) => t.container_type),
  ).toEqual(['init_container', 'ephemeral_container']);
});
