/** Tolerations under pressure. `golden/reclaim/eviction.test.ts` has who goes first, with which words, and who else may come in. */
import { expect, it } from 'vitest';
import { pressureRefusal } from '../../../src/machines/reclaim/eviction/admission.ts';
import { pod } from '../pods/fixtures.ts';

const tolerant = (toleration: object) => pod({ tolerations: [toleration] });
const key = 'node.kubernetes.io/memory-pressure';

it.each([
  [{ key, operator: 'Exists', effect: 'NoSchedule' }, true],
  [{ key, operator: 'Exists' }, true],
  [{ operator: 'Exists' }, true],
  [{ key, value: '' }, true],
  [{ key, value: 'x' }, false],
  [{ key, operator: 'Exists', effect: 'NoExecute' }, false],
  [{ key: 'node.kubernetes.io/disk-pressure', operator: 'Exists' }, false],
])('takes toleration %j as one of memory pressure: %s', (toleration, admitted) => {
  expect(pressureRefusal(tolerant(toleration), ['MemoryPressure']) === null).toBe(admitted);
});
