/** A container that was created and whose start is of unknown outcome: its late start must not meet its replacement. */
import { expect, it } from 'vitest';
import { pod, virtualNode } from '../integration/virtualNode.ts';

it.each([true, false])('a start without an answer leaves one instance with restart count 0 (took effect: %s)', async (effect) => {
  await using h = await virtualNode();
  let left = 1;
  h.faults.fault = (method) => (method === 'StartContainer' && left-- > 0 ? { kind: 'timeout', effect, afterMs: 500 } : undefined);
  h.faults.latencyMs.StartContainer = 700;
  h.write('web', pod('web'));
  await h.until('web runs', () => h.phase('web') === 'Running');
  await h.advance(30_000);
  expect(h.violations).toEqual([]);
  expect(h.containers('web')).toHaveLength(1);
  expect(h.status('web')?.status.containerStatuses?.[0]).toMatchObject({ restartCount: 0, ready: true });
});
