/** For every case of the table: what the node does about the pod, and what it says about it. */
import { afterAll, describe, expect, it } from 'vitest';
import { generatePodStatus } from '../../../../src/machines/pods/status/generate.ts';
import { computePodActions } from '../../../../src/machines/pods/workers/actions/podActions.ts';
import { FACTS, NOW_MS } from '../../pods/fixtures.ts';
import { plain, readGolden, updating, writeGolden } from '../golden.ts';
import { CASES, type Case } from './cases.ts';

const actionsOf = (c: Case): unknown => plain(computePodActions({ pod: c.pod, status: c.status }));
const statusOf = (c: Case): unknown =>
  plain(
    generatePodStatus({
      pod: c.pod,
      status: c.status,
      ...(c.old === undefined ? {} : { old: c.old }),
      failures: new Map(Object.entries(c.failures ?? {})),
      facts: FACTS,
      nowWallMs: NOW_MS,
      podIsTerminal: c.podIsTerminal ?? false,
      ...(c.deadlineExceeded === undefined ? {} : { deadlineExceeded: c.deadlineExceeded }),
      ...(c.override === undefined ? {} : { override: c.override }),
    }),
  );

describe.each([
  ['workers/actions', actionsOf],
  ['workers/statuses', statusOf],
] as const)('%s are as recorded', (file, of) => {
  const golden = updating ? {} : readGolden(file);
  it.each([...CASES.keys()])('%s', (name) => {
    const found = CASES.get(name);
    if (found === undefined) throw new Error(`no case ${name}`);
    const result = of(found);
    if (updating) golden[name] = result;
    expect(result).toEqual(golden[name]);
  });
  it('holds no case that is gone', () => {
    expect(Object.keys(golden).filter((name) => !CASES.has(name))).toEqual([]);
  });
  afterAll(() => {
    if (updating) writeGolden(file, golden);
  });
});
