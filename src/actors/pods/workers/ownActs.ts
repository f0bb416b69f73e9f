/** What the acts of one worker touched since its last inspection began: a partial inspection reads these alone. */
import type { CriMethod } from '../../../machines/cri.ts';
import type { CriResult } from '../../../machines/protocol.ts';
import type { CriCall } from '../../runtime/client.ts';

export interface Touched {
  sandboxIds: readonly string[];
  containerIds: readonly string[];
}

/** What one successful act made or started. Other acts, and those that did not succeed, may have changed anything. */
const TOUCHES: Partial<Record<CriMethod, (call: { request: unknown; value: unknown }) => { sandboxId?: string; containerId?: string }>> = {
  RunPodSandbox: ({ value }) => ({ sandboxId: (value as { podSandboxId: string }).podSandboxId }),
  CreateContainer: ({ value }) => ({ containerId: (value as { containerId: string }).containerId }),
  StartContainer: ({ request }) => ({ containerId: (request as { containerId: string }).containerId }),
};

export class OwnActs {
  #sandboxIds = new Set<string>();
  #containerIds = new Set<string>();
  #unsure = true;

  ended(calls: readonly CriCall[], results: readonly CriResult[]): void {
    calls.forEach(({ method, request }, i) => {
      const result = results[i];
      const touches = TOUCHES[method];
      if (result?.ok !== true || touches === undefined) {
        this.#unsure = true;
        return;
      }
      const { sandboxId, containerId } = touches({ request, value: result.value });
      if (sandboxId !== undefined) this.#sandboxIds.add(sandboxId);
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
    const touched = { sandboxIds: [...this.#sandboxIds], containerIds: [...this.#containerIds] };
    const known = !this.#unsure;
    this.#sandboxIds = new Set();
    this.#containerIds = new Set();
    this.#unsure = false;
    return known ? touched : null;
  }
}
