/**
 * What is being done with volumes of drivers, for as long as the daemon lives. A device may serve several pods: whatever is
 * done to it, or to what a pod has of it, is done one after the other (trap 45).
 */

/** Which volumes must stay attached, and by what name. */
export class CsiLedger {
  readonly #last = new Map<string, Promise<void>>();
  readonly #inUse = new Map<string, string>();
  /** Devices that this daemon has seen staged. */
  readonly staged = new Set<string>();
  /** Volumes of pods, by key, that could not be grown, and nothing is under way. */
  readonly refusedGrowth = new Set<string>();
  /** SELinux label that the pod of each volume asks for, by key. */
  readonly labels = new Map<string, string>();
  /** Values of gauges that only grow. */
  readonly counts = new Map<string, number>();

  /** After all that was begun on that device before, however it ended. */
  async run<T>(device: string, signal: AbortSignal, operation: () => Promise<T>): Promise<T> {
    const before = this.#last.get(device);
    const work = async (): Promise<T> => {
      await before;
      signal.throwIfAborted();
      return operation();
    };
    const done = work();
    const nothing = () => undefined;
    const over = done.then(nothing, nothing);
    this.#last.set(device, over);
    try {
      return await done;
    } finally {
      if (this.#last.get(device) === over) this.#last.delete(device);
    }
  }

  /** `volume`: the key of one pod's volume. True: that is news. */
  use(volume: string, uniqueName: string): boolean {
    if (this.#inUse.get(volume) === uniqueName) return false;
    this.#inUse.set(volume, uniqueName);
    return true;
  }
  /** What was in use for a volume under one key is so under another. */
  pass(from: string, to: string): void {
    const name = this.#inUse.get(from);
    if (name === undefined || from === to) return;
    this.#inUse.delete(from);
    this.#inUse.set(to, name);
  }
  release(volume: string): boolean {
    return this.#inUse.delete(volume);
  }
  inUse(): string[] {
    return [...new Set(this.#inUse.values())].sort();
  }
}
