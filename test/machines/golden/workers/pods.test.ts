/** For every case of the table: what the node does about the pod, and what it says about it. */
import { generatePodStatus } from '../../../../src/machines/pods/status/generate.ts';
import { computePodActions } from '../../../../src/machines/pods/workers/actions/podActions.ts';
import { FACTS, NOW_MS } from '../../pods/fixtures.ts';
import { deciding, goldenTable } from '../table.ts';
import { CASES, type Case } from './cases.ts';

const actionsOf = (c: Case): unknown => computePodActions({ pod: c.pod, status: c.status });
const statusOf = (c: Case): unknown =>
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
  });

for (const [file, of] of [
  ['workers/actions', actionsOf],
  ['workers/statuses', statusOf],
] as const)
  goldenTable(`${file} are as recorded`, file, deciding(Object.fromEntries(CASES), of));
