/** What a worker asks about the cgroup of its pod. On a node without any it asks nobody. */

import { type CgroupsEvent, cgroupsAddress, type GroupAnswer } from '../../../../machines/allocation/cgroups/messages.ts';
import { groupPath, plainParent, podGroupName } from '../../../../machines/allocation/cgroups/names.ts';
import type { Pod } from '../../../../machines/kube/types.ts';
import type { NodeFacts } from '../../../../machines/nodeFacts.ts';
import type { ReplyTo } from '../../../../machines/supervision/address.ts';
import type { ActorCtx } from '../../../supervision/types.ts';

/** A few files are written; systemd has 30 s to make a slice (`dependencies/cgroups/systemd.ts`). */
const ANSWER_MS = 45_000;

type Facts = Pick<NodeFacts, 'kubepods' | 'cgroupRoot' | 'cgroupDriver'>;

/** What the runtime puts the pod below, in the form of its driver; undefined: it chooses. */
export function podGroupOf({ kubepods, cgroupRoot = '', cgroupDriver }: Facts, pod: Pod): string | undefined {
  if (cgroupDriver === undefined) return undefined;
  return kubepods === undefined ? plainParent(cgroupRoot, cgroupDriver) : groupPath(podGroupName(kubepods, pod), cgroupDriver);
}

/** Why there is no group. `later`: those of the node are not made yet. */
export interface GroupTrouble {
  message: string;
  later?: { failing: boolean };
}

/** Makes the pod's cgroup. Null: the group is there; else why not. */
export async function ensurePodGroup(ctx: Pick<ActorCtx, 'registry' | 'signal'>, facts: Facts, pod: Pod): Promise<GroupTrouble | null> {
  if (facts.kubepods === undefined) return null;
  return asked(ctx, (replyTo) => ({ type: 'cgroups.ensure' as const, pod, replyTo }), ctx.signal);
}

/** Writes new values into the pod's cgroup. Null: they hold; else why not, or perhaps not. */
export async function resizePodGroup(
  ctx: Pick<ActorCtx, 'registry'>,
  { facts, pod, how }: { facts: Facts; pod: Pod; how: 'raise' | 'exact' },
  signal: AbortSignal,
): Promise<GroupTrouble | null> {
  if (facts.kubepods === undefined) return null;
  return asked(ctx, (replyTo) => ({ type: 'cgroups.resize' as const, pod, how, replyTo }), signal);
}

async function asked(
  { registry }: Pick<ActorCtx, 'registry'>,
  question: (replyTo: ReplyTo<GroupAnswer>) => CgroupsEvent,
  signal: AbortSignal,
): Promise<GroupTrouble | null> {
  const answer = await registry.ask(cgroupsAddress, question, { timeoutMs: ANSWER_MS, signal });
  if (answer.kind !== 'reply') return { message: answer.reason };
  return answer.value.ok ? null : answer.value;
}
