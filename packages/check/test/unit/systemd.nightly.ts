/** `recorded.json`, which the check is compared with, is what a real systemd does today. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { hasMachine } from '../../../../test/e2e/vm/machine.ts';
import { CASES } from './cases.ts';
import { started } from './record.ts';

it('systemd starts each unit with the words that are recorded', { timeout: 1_200_000 }, () => {
  if (!hasMachine) throw new Error('the machine of this test is not there: npm run e2e:setup');
  const recorded = JSON.parse(readFileSync(join(import.meta.dirname, 'recorded.json'), 'utf8')) as Record<string, string[] | null>;
  const answers = started('unit-cases');
  expect(Object.fromEntries(CASES.map(({ name }, i) => [name, answers[i]?.argv ?? null]))).toEqual(recorded);
});
