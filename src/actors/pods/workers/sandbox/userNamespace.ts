/**
 * The ids of a pod that has a user namespace of its own (pod lifecycle 5.4, CRI reference 3): claimed once, kept in the
 * pod's directory, and released by housekeeping when the pod has ended, or its directory is gone.
 *
 * A claim is a link in a folder beside those of the pods, named by the first id, that points at the pod's directory.
 * Making a link that is there already fails, so that no two pods get the same ids, even when asked for at the same time; and it
 * is on the disk before the pod's own file, which is there before the runtime is told.
 */

import type { Pod } from '../../../../machines/kube/types.ts';
import type { NodeFacts } from '../../../../machines/nodeFacts.ts';
import { isPathName, pathName } from '../../../../machines/pod/pathName.ts';
import { podDir } from '../../../../machines/pod/volumes/volumePaths.ts';
import {
  asksForUserNamespace,
  firstIds,
  type HeldIds,
  heldIds,
  IDS_PER_POD,
  type IdRanges,
  isHeld,
  mappingFrom,
  mappingText,
  namespaceFrom,
  userNamespaceRefusal,
} from '../../../../machines/pods/workers/config/userNamespace.ts';
import { MAPPING_FILE, userNamespaceClaims } from '../../../../machines/reclaim/userNamespaces.ts';
import { type Built, built, refused } from '../../../../machines/result.ts';
import { criView } from '../../../../machines/runtime/cri/messages.ts';
import { codeOf, messageOf } from '../../../../machines/text/errors.ts';
import type { UserNamespace } from '../../../../machines/wire/cri.ts';
import { ifThere, listIfThere, textIfThere } from '../../../../ports/ifThere.ts';
import { LastingFolder } from '../../../../ports/lastingFolder.ts';
import type { HostFs } from '../../../../ports/ports.ts';
import type { ActorCtx } from '../../../supervision/types.ts';

const MAPPING_BYTES_MAX = 4_096;
const CLAIMS_MODE = 0o750;
const MAPPING_MODE = 0o600;

type Facts = Pick<NodeFacts, 'rootDir' | 'capacity' | 'userNamespaceIds' | 'subordinateIds'>;

function rangesOf({ capacity, userNamespaceIds, subordinateIds }: Facts): IdRanges {
  const ranges = { idsPerPod: userNamespaceIds ?? IDS_PER_POD, podsMax: Number(capacity.pods ?? 0) };
  return subordinateIds === undefined ? ranges : { ...ranges, within: subordinateIds };
}

/** What the sandbox of the pod is to get; undefined: the users of the host. Claims ids at first. */
export async function claimUserNamespace(
  { ports, registry }: Pick<ActorCtx, 'ports' | 'registry'>,
  { pod, facts, handler, signal }: { pod: Pod; facts: Facts; handler: string; signal: AbortSignal },
): Promise<Built<UserNamespace | undefined>> {
  if (!asksForUserNamespace(pod)) return built(undefined);
  const refusal = userNamespaceRefusal(registry.read(criView)?.value.handlers ?? [], handler);
  if (refusal !== null) return refused(refusal);
  return attempt(() => claim(ports.fs, { uid: pod.metadata.uid, facts, signal }));
}

/** What the sandbox got that is there. Refused when nobody knows any more. */
export async function heldUserNamespace(
  { ports }: Pick<ActorCtx, 'ports'>,
  { pod, facts }: { pod: Pod; facts: Facts },
): Promise<Built<UserNamespace | undefined>> {
  if (!asksForUserNamespace(pod)) return built(undefined);
  return attempt(async () => {
    const ranges = rangesOf(facts);
    const written = await mapping(ports.fs, { uid: pod.metadata.uid, facts, ranges });
    // Its directory may have gone and been made anew; the claim outlives that.
    const first = written ?? (await ownClaim(ports.fs, { uid: pod.metadata.uid, facts }));
    if (first === null) return refused('user namespace: the ids of this pod are written down no more; its sandbox has to be made anew');
    return first.ok ? built(namespaceFrom(first.value, ranges.idsPerPod)) : first;
  });
}

async function attempt<T>(act: () => Promise<Built<T>>): Promise<Built<T>> {
  try {
    return await act();
  } catch (error) {
    return refused(`create user namespace: ${messageOf(error)}`);
  }
}

interface Place {
  uid: string;
  facts: Facts;
}

async function claim(fs: HostFs, { uid, facts, signal }: Place & { signal: AbortSignal }): Promise<Built<UserNamespace>> {
  const ranges = rangesOf(facts);
  const written = await mapping(fs, { uid, facts, ranges });
  if (written?.ok === false) return written;
  const first = written === null ? await claimFree(fs, { uid, facts, ranges }) : await claimAgain(fs, { uid, facts, first: written.value });
  if (!first.ok) return first;
  if (written === null) {
    const dir = podDir(facts.rootDir, pathName(uid));
    // Under another name first: a file that was cut short would be taken for one that nobody can have written.
    await fs.writeFile(`${dir}/.${MAPPING_FILE}`, mappingText(first.value, ranges.idsPerPod), { mode: MAPPING_MODE, fsync: true });
    // Another incarnation may have claimed since, and told the runtime.
    signal.throwIfAborted();
    await fs.rename(`${dir}/.${MAPPING_FILE}`, `${dir}/${MAPPING_FILE}`);
    await fs.fsyncDir(dir);
  }
  return built(namespaceFrom(first.value, ranges.idsPerPod));
}

/** First id of the range that the pod's file names. Null: the pod has no such file. */
async function mapping(fs: HostFs, { ranges, ...place }: Place & { ranges: IdRanges }): Promise<Built<number> | null> {
  const text = await mappingOnDisk(fs, place);
  return text === null ? null : mappingFrom(text, ranges);
}
function mappingOnDisk(fs: HostFs, { uid, facts }: Place): Promise<string | null> {
  return textIfThere(fs, `${podDir(facts.rootDir, pathName(uid))}/${MAPPING_FILE}`, MAPPING_BYTES_MAX);
}

async function claimFree(fs: HostFs, { uid, facts, ranges }: Place & { ranges: IdRanges }): Promise<Built<number>> {
  const { dir, target } = userNamespaceClaims(facts.rootDir);
  await new LastingFolder(fs, dir, { mode: CLAIMS_MODE, root: facts.rootDir }).make();
  const held = await claimForOthers(fs, { facts, ranges });
  const taken = new Set(await fs.readdir(dir));
  // A claim of its own, made by an act that got no further.
  const own = await ownClaim(fs, { uid, facts });
  if (own !== null) return own;
  for (const first of firstIds(ranges)) {
    if (taken.has(String(first)) || isHeld(held, first, ranges)) continue;
    if (!(await link(fs, { target: target(uid), path: `${dir}/${first}` }))) continue;
    await fs.fsyncDir(dir);
    return built(first);
  }
  return refused('create user namespace: could not find an empty slot to allocate a user namespace');
}

/**
 * The kubelet makes no claims: a pod that it started has its own file alone, and gets its claim here. Returns what all pods
 * have by their files, since a run of another length may be written there.
 */
async function claimForOthers(fs: HostFs, { facts, ranges }: { facts: Facts; ranges: IdRanges }): Promise<HeldIds[]> {
  const { dir, target } = userNamespaceClaims(facts.rootDir);
  const links = await Promise.all((await fs.readdir(dir)).map((name) => ifThere(fs.readlink(`${dir}/${name}`))));
  const held: HeldIds[] = [];
  for (const uid of (await listIfThere(fs, `${facts.rootDir}/pods`)).filter(isPathName)) {
    const text = await mappingOnDisk(fs, { uid, facts });
    if (text === null) continue;
    held.push(...heldIds(text));
    const first = mappingFrom(text, ranges);
    // A claim that goes just now is not made again.
    if (first.ok && !links.includes(target(uid))) await link(fs, { target: target(uid), path: `${dir}/${first.value}` });
  }
  return held;
}

/** First id of the range whose link leads to the pod. Null: the pod has no link. */
async function ownClaim(fs: HostFs, { uid, facts }: Place): Promise<Built<number> | null> {
  const { dir, target } = userNamespaceClaims(facts.rootDir);
  for (const name of await listIfThere(fs, dir)) if ((await fs.readlink(`${dir}/${name}`)) === target(uid)) return built(Number(name));
  return null;
}

/** What is written counts only while the claim stands: it may have been taken away by hand. */
async function claimAgain(fs: HostFs, { uid, facts, first }: Place & { first: number }): Promise<Built<number>> {
  const { dir, target } = userNamespaceClaims(facts.rootDir);
  await fs.mkdirp(dir, CLAIMS_MODE);
  const path = `${dir}/${first}`;
  if (await link(fs, { target: target(uid), path })) await fs.fsyncDir(dir);
  else if ((await fs.readlink(path)) !== target(uid)) return refused(`user namespace: range picked for pod "${uid}" already taken`);
  return built(first);
}

/** False: there is one already. */
async function link(fs: HostFs, { target, path }: { target: string; path: string }): Promise<boolean> {
  try {
    await fs.symlink(target, path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}
