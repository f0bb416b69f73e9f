/** What the runtime is told of the sandbox of a pod: of one that is to be made, and of the one that is there. */
import type { Pod } from '../../../../machines/kube/types.ts';
import type { NodeFacts } from '../../../../machines/nodeFacts.ts';
import { generateSandboxConfig, type SandboxConfigResult } from '../../../../machines/pods/workers/config/sandboxConfig.ts';
import type { ActorCtx } from '../../../supervision/types.ts';
import { presentHostDns } from './hostDns.ts';
import { podGroupOf } from './podGroup.ts';
import { runtimeHandler } from './runtimeClass.ts';
import { claimUserNamespace, heldUserNamespace } from './userNamespace.ts';

interface Wanted {
  pod: Pod;
  attempt: number;
  facts: NodeFacts;
}

export async function newSandbox(
  ctx: Pick<ActorCtx, 'ports' | 'registry' | 'signal' | 'log'>,
  { pod, attempt, facts, lastHandler }: Wanted & { lastHandler?: string | undefined },
  signal: AbortSignal,
): Promise<(Extract<SandboxConfigResult, { ok: true }> & { handler: string }) | { ok: false; message: string }> {
  const runtime = await runtimeHandler(ctx, { pod, last: lastHandler }, signal);
  if (!runtime.ok) return runtime;
  const { handler } = runtime;
  const ids = await claimUserNamespace(ctx, { pod, facts, handler, signal });
  if (!ids.ok) return ids;
  const config = generateSandboxConfig(pod, {
    attempt,
    facts: { ...facts, hostDns: await presentHostDns(ctx, facts) },
    ...groupOf(facts, pod),
    ...(ids.value === undefined ? {} : { userNamespace: ids.value }),
  });
  return config.ok ? { ...config, handler } : config;
}

export async function presentSandbox(ctx: Pick<ActorCtx, 'ports'>, { pod, attempt, facts }: Wanted): Promise<SandboxConfigResult> {
  const ids = await heldUserNamespace(ctx, { pod, facts });
  if (!ids.ok) return ids;
  return generateSandboxConfig(pod, {
    attempt,
    facts,
    ...groupOf(facts, pod),
    ...(ids.value === undefined ? {} : { userNamespace: ids.value }),
  });
}

function groupOf(facts: NodeFacts, pod: Pod): { cgroupParent?: string } {
  const cgroupParent = podGroupOf(facts, pod);
  return cgroupParent === undefined ? {} : { cgroupParent };
}
