/** Where what actorlet does with volumes of drivers may differ from what the reference was recorded to do, and where it differs besides. */
import type { CsiCase } from './cases.ts';
import { STAGE_UNSTAGE } from './cases.ts';

export type Call = readonly [method: string, request: object];

/** Where nothing is staged, the reference names a path for a device all the same. */
function withOwnPaths(calls: readonly Call[], of: CsiCase): Call[] {
  const stages = [of.capabilities, of.returns].some((c) => c?.includes(STAGE_UNSTAGE));
  return calls.map(([method, request]) => {
    // It asks how full a device is by the path at which it has bound it once more.
    const text = JSON.stringify(request).replaceAll(/volumeDevices\/([^/"]+)\/dev\/UID/g, 'volumeDevices/publish/$1/UID');
    const { stagingTargetPath, ...rest } = JSON.parse(text) as { stagingTargetPath?: string };
    return [method, stages && stagingTargetPath !== undefined ? { ...rest, stagingTargetPath } : rest];
  });
}

/** A call that could be meant by nobody: the reference leaves it out where it knows that nothing was published. */
function withoutNeedlessUnpublish(calls: readonly Call[], theirs: readonly Call[]): Call[] {
  const theyDo = theirs.some(([method]) => method === 'NodeUnpublishVolume');
  return theyDo ? [...calls] : calls.filter(([method]) => method !== 'NodeUnpublishVolume');
}

/** A call, or two in turn, again and again are one attempt: how often an agent tries is its own choice. */
function attempts(lines: readonly string[]): string[] {
  const kept: string[] = [];
  for (const line of lines) {
    kept.push(line);
    for (const length of [1, 2]) {
      const [last, before] = [kept.slice(-length), kept.slice(-2 * length, -length)];
      if (before.length === length && last.every((l, at) => l === before[at])) kept.length -= length;
    }
  }
  return kept;
}

/** Lines in order. */
export function comparable(calls: readonly Call[], theirs: readonly Call[], of: CsiCase): string[] {
  const lines = withOwnPaths(withoutNeedlessUnpublish(calls, theirs), of).map(
    ([method, request]) => `${method} ${JSON.stringify(sorted(request))}`,
  );
  return attempts(lines);
}
function sorted(value: unknown): unknown {
  if (Array.isArray(value) || typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, v]) => [key, sorted(v)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

/** A step on the way. The recorder looks each 100 ms, and can miss one. */
const PASSING = /NodeResize(Pending|InProgress), FileSystemResizePending=True$/;
/** The reference notes what may still be under way as an error. */
const UNSURE = /NodeResizeError.*code = DeadlineExceeded/;

/** What the status of a claim goes through, in order. */
export function comparableSteps(steps: readonly string[], theirs: readonly string[]): string[] {
  return steps.filter((step) => (theirs.includes(step) || !PASSING.test(step)) && !UNSURE.test(step));
}
