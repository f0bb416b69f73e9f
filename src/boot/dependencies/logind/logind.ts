/** The real inhibitor: systemd-logind over D-Bus, and a lock that `systemd-inhibit` holds. */

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { messageOf } from '../../../machines/text/errors.ts';
import { ifThere } from '../../../ports/ifThere.ts';
import type { Inhibitor, InhibitorSession } from '../../../ports/machine/inhibitor.ts';
import type { Logger } from '../../../ports/ports.ts';
import { LogindBus } from './bus.ts';
import { type Lock, takeLock } from './lock.ts';

export interface InhibitorOptions {
  log: Logger;
  /** The system bus. */
  bus?: string;
  callMs?: number;
  /** The kubelet's own file, so that a node that changes its agent has one. */
  dropIn?: string;
  /** logind reads its configuration this long after it was asked to, at most. */
  reloadMs?: number;
  lock?: () => Promise<Lock>;
}

const DEFAULTS = {
  bus: '/run/dbus/system_bus_socket',
  callMs: 10_000,
  dropIn: '/etc/systemd/logind.conf.d/99-kubelet.conf',
  reloadMs: 10_000,
  lock: () => takeLock(),
};
const LOOK_EVERY_MS = 100;
const DIR_MODE = 0o755;
const FILE_MODE = 0o644;

export function createInhibitor(o: InhibitorOptions): Inhibitor {
  return new LogindInhibitor({ ...DEFAULTS, ...o });
}

class LogindInhibitor implements Inhibitor {
  readonly #o: Required<InhibitorOptions>;
  #lock: Lock | null = null;
  readonly #released = new WeakSet<Lock>();

  constructor(o: Required<InhibitorOptions>) {
    this.#o = o;
  }

  async open({ delayMs, signal }: { delayMs: number; signal: AbortSignal }): Promise<InhibitorSession> {
    const { bus: socket, callMs } = this.#o;
    const bus = new LogindBus({ socket, callMs });
    const close = (): void => bus.close();
    signal.addEventListener('abort', close, { once: true });
    try {
      await bus.open();
      const shuttingDown = await this.#prepare(bus, delayMs);
      return this.#session(bus, shuttingDown);
    } catch (error) {
      bus.close();
      throw new Error(`systemd-logind: ${messageOf(error)}`);
    } finally {
      signal.removeEventListener('abort', close);
    }
  }

  release(): void {
    if (this.#lock === null) return;
    this.#released.add(this.#lock);
    this.#lock.drop();
    this.#lock = null;
  }

  /** True: the machine is going down already. */
  async #prepare(bus: LogindBus, delayMs: number): Promise<boolean> {
    if (await bus.shuttingDown()) return true;
    if ((await bus.delayMs()) < delayMs) await this.#raise(bus, delayMs);
    if (this.#lock !== null) return false;
    try {
      const lock = await this.#o.lock();
      // An opening that was given up may have taken one meanwhile.
      if (this.#lock !== null) {
        lock.drop();
        return false;
      }
      this.#lock = lock;
      void lock.ended.then(() => {
        if (this.#lock === lock) this.#lock = null;
      });
      return false;
    } catch (error) {
      // logind gives no lock while the machine is going down.
      if (await bus.shuttingDown()) return true;
      throw error;
    }
  }

  async #raise(bus: LogindBus, delayMs: number): Promise<void> {
    const { dropIn, reloadMs, log } = this.#o;
    const seconds = Math.ceil(delayMs / 1000);
    const text = `# Written by actorlet: a shutdown waits for pods.\n[Login]\nInhibitDelayMaxSec=${seconds}\n`;
    const there = await ifThere(readFile(dropIn, 'utf8'));
    if (there !== text) {
      await mkdir(dirname(dropIn), { recursive: true, mode: DIR_MODE });
      await writeFile(dropIn, text, { mode: FILE_MODE });
      log.info({ file: dropIn, seconds }, 'systemd-logind is asked to let a shutdown wait longer');
    }
    await bus.reload();
    let now = await bus.delayMs();
    for (let waitedMs = 0; now < delayMs && waitedMs < reloadMs; waitedMs += LOOK_EVERY_MS) {
      await setTimeout(LOOK_EVERY_MS);
      now = await bus.delayMs();
    }
    if (now < delayMs)
      throw new Error(`InhibitDelayMaxSec is ${now / 1000} s after ${dropIn} asked for ${seconds} s: does another file set it?`);
  }

  #session(bus: LogindBus, shuttingDown: boolean): InhibitorSession {
    const lock = this.#lock;
    // A lock that this node dropped itself is not lost.
    const lost = lock === null ? [] : [lock.ended.then((error) => (this.#released.has(lock) ? new Promise<never>(() => {}) : error))];
    return {
      shuttingDown,
      held: lock !== null,
      onShutdown: (listener) => bus.onShutdown(listener),
      ended: Promise.race([bus.ended, ...lost]),
      [Symbol.dispose]: () => bus.close(),
    };
  }
}
