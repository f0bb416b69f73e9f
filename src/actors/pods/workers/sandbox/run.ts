/** Sandboxes of one pod are made and stopped. */

import type { Pod } from '../../../../machines/kube/types.ts';
import type { PodRuntimeStatus } from '../../../../machines/pod/runtime/seen.ts';
import type { EffectOutcome } from '../../../../machines/pods/workers/container/containerStopMachine.ts';
import type { ActOutcome } from '../../../../machines/pods/workers/container/startJob.ts';
import type { SandboxInput } from '../../../../machines/pods/workers/io.ts';
import type { SandboxesInput } from '../../../../machines/pods/workers/stopMachine.ts';
import type { CriResult } from '../../../../machines/runtime/cri/messages.ts';
import type { Acts } from '../acts.ts';
import { failedBecause, failedWith, removals, unknownOr } from '../outcomes.ts';
import { ensurePodGroup } from './podGroup.ts';
import { newSandbox } from './sandbox.ts';

/** Reason of a pod that waits until the cgroups of its node are made. */
const AWAITING_CGROUPS = 'AwaitingCgroups';

export class Sandboxes {
  readonly #acts: Acts;
  /** Sandboxes of this pod that are known to be stopped; those no longer there are forgotten. */
  readonly #stopped = new Set<string>();

  constructor(acts: Acts) {
    this.#acts = acts;
  }

  async run(input: SandboxInput, signal: AbortSignal): Promise<ActOutcome<{ id: string }>> {
    const acts = this.#acts;
    const { pod, status } = input;
    const cleared = await this.#clear(pod, status, signal);
    if (cleared !== null) return cleared;
    const group = await this.#ensureGroup(pod);
    if (group !== null) return group;
    const wanted = { pod, attempt: input.actions.attempt, facts: acts.facts(), lastHandler: status.sandboxes[0]?.handler };
    const config = await newSandbox(acts.ctx, wanted, signal);
    if (signal.aborted) return { kind: 'unknown', details: 'cancelled before the sandbox was asked for' };
    if (!config.ok) return this.#refused(pod, config.message);
    for (const w of config.warnings) acts.event(pod, 'Warning', w.reason, w.message);
    const handler = config.handler === '' ? {} : { runtimeHandler: config.handler };
    const result = await acts.one(pod, { method: 'RunPodSandbox', request: { config: config.config, ...handler } }, signal);
    if (result.ok) return { kind: 'done', value: { id: (result.value as { podSandboxId: string }).podSandboxId } };
    acts.inspector.doubt();
    if (!signal.aborted) this.#sayFailed(pod, result.error.details);
    return unknownOr(result.error, 'CreatePodSandboxError');
  }

  async stop({ pod, status, forSandbox }: SandboxesInput, signal: AbortSignal): Promise<EffectOutcome> {
    const ids = status.sandboxes.map((s) => s.id);
    const results = [...(await this.#stopAll(pod, ids, signal)), ...(forSandbox ? await this.#removeInits(pod, status, signal) : [])];
    return failedWith('FailedKillPod', results);
  }

  /** A sandbox that died by itself still has its addresses and host ports: they are released before they are asked for again. */
  async #clear(pod: Pod, status: PodRuntimeStatus, signal: AbortSignal): Promise<ActOutcome<never> | null> {
    const earlier = status.sandboxes.map((s) => s.id);
    for (const id of this.#stopped) if (!earlier.includes(id)) this.#stopped.delete(id);
    const fresh = earlier.filter((id) => !this.#stopped.has(id));
    for (const r of await this.#stopAll(pod, fresh, signal)) if (!r.ok) return unknownOr(r.error, 'KillPodSandboxError');
    const [purge] = (await this.#removeInits(pod, status, signal)).filter((r) => !r.ok);
    return purge?.ok === false ? unknownOr(purge.error, 'CreatePodSandboxError') : null;
  }

  async #ensureGroup(pod: Pod): Promise<ActOutcome<never> | null> {
    const group = await ensurePodGroup(this.#acts.ctx, this.#acts.facts(), pod);
    if (group === null) return null;
    const message = `unable to ensure pod container exists: ${group.message}`;
    if (group.later?.failing !== false) this.#acts.event(pod, 'Warning', 'FailedCreatePodContainer', message);
    if (group.later !== undefined) return failedBecause(AWAITING_CGROUPS, group.message, 'later');
    return failedBecause('FailedCreatePodContainer', message);
  }

  #refused(pod: Pod, message: string): ActOutcome<never> {
    this.#sayFailed(pod, message);
    return failedBecause('CreatePodSandboxError', message);
  }

  #sayFailed(pod: Pod, why: string): void {
    this.#acts.event(pod, 'Warning', 'FailedCreatePodSandBox', `Failed to create pod sandbox: ${why}`);
  }

  async #stopAll(pod: Pod, ids: readonly string[], signal: AbortSignal): Promise<readonly CriResult[]> {
    const results = await this.#acts.all(
      pod,
      ids.map((id) => ({ method: 'StopPodSandbox', request: { podSandboxId: id } })),
      signal,
    );
    ids.forEach((id, i) => {
      if (results[i]?.ok === true) this.#stopped.add(id);
    });
    return results;
  }

  /** What ran to its end in an old sandbox says nothing about a new one. */
  #removeInits(pod: Pod, status: PodRuntimeStatus, signal: AbortSignal): Promise<readonly CriResult[]> {
    const inits = new Set((pod.spec.initContainers ?? []).map((c) => c.name));
    return this.#acts.all(pod, removals(status.containers.flatMap((c) => (inits.has(c.name) ? [c.id] : []))), signal);
  }
}
