/** What the acts of one worker touched since its last inspection began: a partial inspection goes by these alone. */

import type { CriResult } from '../../../machines/runtime/cri/messages.ts';
import type { CriMethod } from '../../../machines/wire/criCalls.ts';
import type { CriCall } from '../../runtime/client.ts';

export interface Touched {
  sandboxIds: readonly string[];
  containerIds: readonly string[];
  /** Sandboxes that were stopped: nothing is to be read of them. */
  stoppedIds: readonly string[];
}
type Touch = (call: { request: unknown; value: unknown }) => { sandboxId?: string; containerId?: string; stoppedId?: string };

/** What one successful act made, started or stopped. Other acts, and those that did not succeed, may have changed anything. */
const TOUCHES: Partial<Record<CriMethod, Touch>> = {
  RunPodSandbox: ({ value }) => ({ sandboxId: (value as { podSandboxId: string }).podSandboxId }),
  CreateContainer: ({ value }) => ({ containerId: (value as { containerId: string }).containerId }),
  StartContainer: ({ request }) => ({ containerId: (request as { containerId: string }).containerId }),
  StopContainer: ({ request }) => ({ containerId: (request as { containerId: string }).containerId }),
  StopPodSandbox: ({ request }) => ({ stoppedId: (request as { podSandboxId: string }).podSandboxId }),
};

export class OwnActs {
  #sandboxIds = new Set<string>();
  #containerIds = new Set<string>();
  #stoppedIds = new Set<string>();
  #unsure = true;
  #underWay = 0;
  #began = false;

  /** There was one, whatever came of it. */
  get any(): boolean {
    return this.#began;
  }

  /** What has come of each is known here. One that was given up may have ended before its asker hears of it. */
  get settled(): boolean {
    return this.#underWay === 0;
  }

  /** Nothing was touched since the last inspection began, and all of it is known. */
  get none(): boolean {
    return this.settled && !this.#unsure && this.#sandboxIds.size + this.#containerIds.size + this.#stoppedIds.size === 0;
  }

  /** Of a worker that slept: it had seen what came of each. */
  resume(): void {
    this.#began = true;
    this.#unsure = false;
  }

  begin(): void {
    this.#began = true;
    this.#underWay += 1;
  }

  ended(calls: readonly CriCall[], results: readonly CriResult[]): void {
    this.#underWay -= 1;
    calls.forEach(({ method, request }, i) => {
      const result = results[i];
      const touches = TOUCHES[method];
      if (result?.ok !== true || touches === undefined) {
        this.#unsure = true;
        return;
      }
      const { sandboxId, containerId, stoppedId } = touches({ request, value: result.value });
      if (sandboxId !== undefined) this.#sandboxIds.add(sandboxId);
      if (stoppedId !== undefined) this.#stoppedIds.add(stoppedId);
      if (containerId !== undefined) this.#containerIds.add(containerId);
    });
  }

  /** The next inspection must be whole. */
  unsure(): void {
    this.#unsure = true;
  }

  /** Made or started by an act that the next inspection answers for. */
  get ids(): ReadonlySet<string> {
    return new Set([...this.#sandboxIds, ...this.#containerIds]);
  }

  /** Everything since the last call; null when that is not known. Counts anew from here. */
  take(): Touched | null {
    const stoppedIds = [...this.#stoppedIds];
    const sandboxIds = [...this.#sandboxIds].filter((id) => !this.#stoppedIds.has(id));
    const touched = { sandboxIds, containerIds: [...this.#containerIds], stoppedIds };
    const known = !this.#unsure;
    this.#sandboxIds = new Set();
    this.#containerIds = new Set();
    this.#stoppedIds = new Set();
    this.#unsure = false;
    return known ? touched : null;
  }
}
