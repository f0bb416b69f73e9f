/** Ids of the host for user namespaces of pods: what `getsubids` prints, and whether the node can do with it. Pure. */

import { type Built, built, refused } from '../../../result.ts';

const ID_LIMIT = 2 ** 32;

/** One line such as `0: kubelet 65536 2147483648`. */
export function readSubordinateIds(text: string): Built<{ first: number; length: number }> {
  const lines = text.replace(/^\n+|\n+$/g, '').split('\n');
  const [line = ''] = lines;
  if (lines.length !== 1) return refused(`error parsing line ${JSON.stringify(text)}: it must contain only one line`);
  const parts = line.split(/\s+/).filter((part) => part !== '');
  if (parts.length !== 4) return refused(`invalid line ${JSON.stringify(text)}`);
  const [first, length] = parts.slice(2).map((part) => (/^\d{1,10}$/.test(part) && Number(part) < ID_LIMIT ? Number(part) : undefined));
  if (first === undefined || length === undefined) return refused(`error parsing line ${JSON.stringify(text)}: it has no two numbers`);
  return built({ first, length });
}

/** Why the node does not start with these ids, in the kubelet's words. Null: pods get their ids from them. */
export function subordinateIdsRefusal(ids: { first: number; length: number }, o: { idsPerPod: number; maxPods: number }): string | null {
  const { first, length } = ids;
  const { idsPerPod, maxPods } = o;
  if (first % idsPerPod !== 0) return `kubelet user assigned ID ${first} is not a multiple of ${idsPerPod}`;
  // Id 0 is the host's root.
  if (first < idsPerPod) return `kubelet user assigned ID ${first} must be greater or equal to ${idsPerPod}`;
  if (length % idsPerPod !== 0) return `kubelet user assigned IDs length ${length} is not a multiple of ${idsPerPod}`;
  if (Math.floor(length / idsPerPod) < maxPods) return `kubelet user assigned IDs are not enough to support ${maxPods} pods`;
  return null;
}
