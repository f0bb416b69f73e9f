/**
 * What a node in virtual time asks of CSI drivers, compared with what the reference kubelet 1.36.2 was recorded to ask, request by
 * request (`record.ts` records, on a real cluster; `cases.ts` says of what).
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { rotating } from '../../rotation.ts';
import { CASES, FS_GROUP } from './cases.ts';
import { type Call, comparable, comparableSteps } from './compare.ts';
import { virtualCalls } from './virtual.ts';

const RECORDED = JSON.parse(readFileSync(join(import.meta.dirname, '../recorded/csi136.json'), 'utf8')) as Record<
  string,
  { calls: Call[]; claim?: string[]; publishes?: number; seen?: string }
>;
/** The simulated drivers count nothing. */
const COUNTS = ['stats', 'stats-block'];

describe('a volume of a driver', () => {
  const compared = Object.entries(CASES).filter(([name]) => !COUNTS.includes(name));
  it.each(rotating('volumes of drivers', compared, 3))('%s', async (name, of) => {
    const theirs = RECORDED[name]?.calls ?? [];
    const ours = await virtualCalls(name);
    expect(comparable(ours.calls, theirs, of)).toEqual(comparable(theirs, theirs, of));
    if (of.twice !== undefined) expect(ours.publishes).toBe(RECORDED[name]?.publishes);
    const steps = RECORDED[name]?.claim ?? [];
    if (of.growth !== undefined) expect(comparableSteps(ours.claim, steps)).toEqual(comparableSteps(steps, steps));
    expect(ours.given).toBe(RECORDED[name]?.seen?.includes(`:${FS_GROUP} `) ?? false);
  });

  it('has a recording for each case, and no other', () => {
    expect(Object.keys(RECORDED)).toEqual(Object.keys(CASES));
  });
});
