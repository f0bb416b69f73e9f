/** A container that was created and whose start is of unknown outcome: its late start must not meet its replacement. */
import { expect, it } from 'vitest';
import { pod, virtualNode } from '../../integration/virtualNode.ts';

it.each([true, false])('a start without an answer leaves one instance with restart count 0 (took effect: %s)', async (effect) => {
  await using h = await virtualNode();
  let left = 1;
  h.faults.fault = (method) => (method === 'StartContainer' && left-- > 0 ? { kind: 'timeout', effect, afterMs: 500 } : undefined);
  h.faults.latencyMs.StartContainer = 700;
  await h.run('web', pod('web'));
  await h.advance(30_000);
  expect(h.violations).toEqual([]);
  expect(h.containers('web')).toHaveLength(1);
  expect(h.status('web')?.status.containerStatuses?.[0]).toMatchObject({ restartCount: 0, ready: true });
});

it('an instance that starts and is seen running while its removal is under way counts, for the next daemon too', async () => {
  await using h = await virtualNode();
  let left = 1;
  h.faults.latencyMs = { StartContainer: 3_000, RemoveContainer: 6_000, CreateContainer: 1_000 };
  h.faults.fault = (method) => {
    if (method !== 'StartContainer') return undefined;
    // The start that nobody waits for any more is the only slow one.
    if (left-- > 0) return { kind: 'timeout', effect: true, afterMs: 500 };
    h.faults.latencyMs.StartContainer = 0;
    return undefined;
  };
  const shown = () => h.status('web')?.status.containerStatuses?.[0];
  h.write('web', pod('web'));
  await h.until('the late start is seen', () => shown()?.state.running !== undefined);
  const first = h.containers('web')[0]?.id;
  expect(shown()).toMatchObject({ restartCount: 0 });
  expect(h.calls.filter((c) => c.method === 'RemoveContainer')).toHaveLength(0);
  await h.until('its removal took effect', () => h.containers('web').every((c) => c.id !== first));
  await h.until('web runs again', () => shown()?.state.running !== undefined && h.running('web').length === 1);
  await h.advance(30_000);
  expect(shown()).toMatchObject({ restartCount: 1, ready: true });
  expect(h.containers('web')).toMatchObject([{ attempt: 1, state: 'CONTAINER_RUNNING' }]);
  await h.restart();
  await h.until('the next daemon shows it', () => shown()?.state.running !== undefined);
  expect(shown()).toMatchObject({ restartCount: 1 });
  expect(h.violations).toEqual([]);
});
