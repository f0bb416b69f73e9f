/** All containers of a pod are taken away, so that they start again in its sandbox. */
import { MIN_CONTAINER_GRACE_SECONDS } from '../../../../machines/pod/runtime/killOrder.ts';
import type { ResetGroup } from '../../../../machines/pod/runtime/seen.ts';
import type { EffectOutcome } from '../../../../machines/pods/workers/container/containerStopMachine.ts';
import type { CriResult } from '../../../../machines/runtime/cri/messages.ts';
import type { CriCall } from '../../../runtime/client.ts';
import { failedWith, removals } from '../outcomes.ts';

interface By {
  say(container: string, message: string): void;
  act(calls: readonly CriCall[]): Promise<readonly CriResult[]>;
}

/** Whatever runs starts again from the beginning: no hook runs, and it gets the least time to end. */
function stops({ stop }: ResetGroup): CriCall[] {
  return stop.map(({ id }) => ({ method: 'StopContainer', request: { containerId: id, timeout: MIN_CONTAINER_GRACE_SECONDS } }));
}

export async function resetContainers(by: By, groups: readonly ResetGroup[]): Promise<EffectOutcome> {
  for (const group of groups) {
    for (const { name } of group.stop) by.say(name, `Container ${name} is stopped: all containers of the pod restart`);
    for (const calls of [stops(group), removals(group.remove)]) {
      const outcome = failedWith('RemoveContainerError', await by.act(calls));
      if (outcome.kind !== 'done') return outcome;
    }
  }
  return { kind: 'done' };
}
