/** systemd-logind of a simulated machine: it outlives daemons, announces shutdowns, and waits for a lock no longer than it may. */
import type { KubeletConfiguration } from '@actorlet/kubelet/machines/config/config.ts';
import type { Inhibitor, InhibitorSession } from '@actorlet/kubelet/ports/machine/inhibitor.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';

/** How long pods are waited for. */
export type ShutdownTuning = Pick<
  KubeletConfiguration,
  'shutdownGracePeriod' | 'shutdownGracePeriodCriticalPods' | 'shutdownGracePeriodByPodPriority'
>;

const DEFAULT_DELAY_MS = 5_000;
const CALL_MS = 5;

interface Listener {
  announce(shuttingDown: boolean): void;
  end(why: string): void;
}

export class SimLogind {
  /** Each call takes this long. */
  callMs = CALL_MS;
  /** Another program has a lock too, which it keeps. */
  otherLock = false;
  /** InhibitDelayMaxSec cannot be raised above this. */
  delayMaxMs = Number.POSITIVE_INFINITY;
  delayMs = DEFAULT_DELAY_MS;
  /** The machine is going down, or has gone down. */
  shuttingDown = false;
  /** Mono ms at which the machine went down; null: it did not. */
  downAtMs: number | null = null;
  /** Shutdowns so far that began. */
  shutdowns = 0;
  /** Runs when the machine goes down. */
  onDown = (): void => {};
  /** A daemon is about to drop its lock, while the machine goes down. */
  onRelease = (): void => {};
  readonly #clock: Pick<Clock, 'monoMs' | 'setTimeout' | 'clearTimeout'>;
  readonly #sessions = new Set<Listener>();
  #reachable = true;
  /** The daemon whose lock it is. */
  #holder: { on: boolean } | null = null;
  #deadline: unknown;

  constructor(clock: Pick<Clock, 'monoMs' | 'setTimeout' | 'clearTimeout'>) {
    this.#clock = clock;
  }

  /** False: nobody answers on the bus, and sessions end. */
  get reachable(): boolean {
    return this.#reachable;
  }
  set reachable(now: boolean) {
    this.#reachable = now;
    if (!now) this.#endSessions('the connection was closed');
  }
  /** A lock ends with its process. */
  get held(): boolean {
    return this.#holder?.on === true;
  }

  shutDown(): void {
    if (this.shuttingDown) return;
    this.shuttingDown = true;
    this.shutdowns += 1;
    for (const session of this.#sessions) session.announce(true);
    this.#deadline = this.#clock.setTimeout(() => this.#down(), this.delayMs);
    this.#look();
  }
  /** Also of a machine that would be down by now. */
  cancel(): void {
    if (!this.shuttingDown) return;
    this.#clock.clearTimeout(this.#deadline);
    this.shuttingDown = false;
    this.downAtMs = null;
    for (const session of this.#sessions) session.announce(false);
  }
  /** logind ends and starts again: sessions end, locks stay. */
  restart(): void {
    this.#endSessions('systemd-logind has ended');
  }
  /** What holds the lock is killed. */
  breakLock(): void {
    this.#holder = null;
    this.#endSessions('systemd-inhibit ended by signal SIGKILL');
    this.#look();
  }
  /** A daemon has ended, and its lock with it. */
  daemonEnded(): void {
    this.#look();
  }
  /** The machine has gone down and started again. */
  reboot(): void {
    this.#clock.clearTimeout(this.#deadline);
    this.#holder = null;
    this.shuttingDown = false;
    this.downAtMs = null;
  }
  #down(): void {
    if (this.downAtMs !== null || !this.shuttingDown) return;
    this.downAtMs = this.#clock.monoMs();
    this.onDown();
  }
  /** No lock: nothing is waited for. */
  #look(): void {
    if (this.shuttingDown && !this.held && !this.otherLock) this.#down();
  }
  #endSessions(why: string): void {
    for (const session of this.#sessions) session.end(why);
    this.#sessions.clear();
  }

  connect({ clock, power }: { clock: Clock; power: { on: boolean } }): Inhibitor {
    const call = () => new Promise<void>((resolve) => void clock.setTimeout(resolve, this.callMs));
    return {
      open: async ({ delayMs, signal }) => {
        await call();
        if (signal.aborted) throw new Error('systemd-logind: the connection was closed');
        if (!this.#reachable) throw new Error('systemd-logind: connect ECONNREFUSED /run/dbus/system_bus_socket');
        if (!this.shuttingDown) {
          if (this.delayMs < delayMs) this.delayMs = Math.min(delayMs, this.delayMaxMs);
          if (this.delayMs < delayMs) throw new Error(`systemd-logind: InhibitDelayMaxSec is ${this.delayMs / 1000} s`);
          this.#holder = power;
        }
        return this.#session(power);
      },
      release: () => {
        if (this.#holder !== power) return;
        if (this.shuttingDown) this.onRelease();
        this.#holder = null;
        this.#look();
      },
    };
  }

  #session(power: { on: boolean }): InhibitorSession {
    const ended = Promise.withResolvers<Error>();
    let tell = (_: boolean): void => {};
    const listener: Listener = {
      announce: (shuttingDown) => {
        if (power.on) tell(shuttingDown);
      },
      end: (why) => {
        if (power.on) ended.resolve(new Error(`systemd-logind: ${why}`));
      },
    };
    this.#sessions.add(listener);
    return {
      shuttingDown: this.shuttingDown,
      held: this.#holder === power,
      onShutdown: (heard) => {
        tell = heard;
      },
      ended: ended.promise,
      [Symbol.dispose]: () => void this.#sessions.delete(listener),
    };
  }
}
