/** Where what actorlet does with volumes of drivers may differ from what the reference was recorded to do, and where it differs besides. */

import type { CsiCase } from './cases.ts';
import { STAGE_UNSTAGE } from './cases.ts';

export type Call = readonly [method: string, request: object];

/** Paths of block devices are of each agent's own choice. Where nothing is staged, the reference names a path for a device all the same. */
function withOwnPaths(calls: readonly Call[], of: CsiCase): Call[] {
  const stages = [of.capabilities, of.returns].some((c) => c?.includes(STAGE_UNSTAGE));
  return calls.map(([method, request]) => {
    const text = JSON.stringify(request)
      .replaceAll(/ROOT\/plugins\/kubernetes\.io\/csi\/(volumeDevices\/staging\/VOLUME|[^/"]+\/HASH\/globalmount)/g, 'STAGING')
      .replaceAll(/ROOT\/plugins\/kubernetes\.io\/csi\/volumeDevices\/(publish\/VOLUME|[^/"]+\/dev)\/UID/g, 'DEVICE');
    const { stagingTargetPath, ...rest } = JSON.parse(text) as { stagingTargetPath?: string };
    return [method, stages && stagingTargetPath !== undefined ? { ...rest, stagingTargetPath } : rest];
  });
}

/** A call that could be meant by nobody: the reference leaves it out where it knows that nothing was published. */
function withoutNeedlessUnpublish(calls: readonly Call[], theirs: readonly Call[]): Call[] {
  const theyDo = theirs.some(([method]) => method === 'NodeUnpublishVolume');
  return theyDo ? [...calls] : calls.filter(([method]) => method !== 'NodeUnpublishVolume');
}

/** Lines in order: the same call twice in a row is one. */
export function comparable(calls: readonly Call[], theirs: readonly Call[], of: CsiCase): string[] {
  const lines = withOwnPaths(withoutNeedlessUnpublish(calls, theirs), of).map(
    ([method, request]) => `${method} ${JSON.stringify(sorted(request))}`,
  );
  return lines.filter((line, at) => line !== lines[at - 1]);
}
function sorted(value: unknown): unknown {
  if (Array.isArray(value) || typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, v]) => [key, sorted(v)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}
