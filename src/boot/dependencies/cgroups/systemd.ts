/** Slices of systemd over D-Bus. One connection, made when it is first needed, and again after it was lost. */

import type { DBusError, Message, MessageBus } from 'dbus-native';
import type { UnitProperty } from '../../../machines/allocation/cgroups/units.ts';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import { connectBus } from '../messageBus.ts';

export interface Slices {
  /** systemd's version; rejects where it does not answer. */
  version(): Promise<number>;
  /** Also where it is there already: then nothing of it is changed. */
  start(slice: string, properties: readonly UnitProperty[]): Promise<void>;
  /** Until the machine starts anew. */
  set(slice: string, properties: readonly UnitProperty[]): Promise<void>;
  /** With all that is in it. One that is not there is no error. */
  stop(slice: string): Promise<void>;
  close(): void;
}

export interface SlicesOptions {
  /** The system bus; where it cannot be reached, systemd's own socket, which only root may use. */
  bus?: string;
  own?: string;
  /** A call of systemd is an answer from memory; the reference has no limit. */
  callMs?: number;
  /** As the reference waits for a unit to be made or gone. */
  jobMs?: number;
}

const PATH = '/org/freedesktop/systemd1';
const MANAGER = 'org.freedesktop.systemd1.Manager';
const PROPERTIES = 'org.freedesktop.DBus.Properties';
const NAME = 'org.freedesktop.systemd1';
const EXISTS = 'org.freedesktop.systemd1.UnitExists';
const NO_UNIT = 'org.freedesktop.systemd1.NoSuchUnit';
const JOBS = `type='signal',sender='${NAME}',interface='${MANAGER}',member='JobRemoved'`;
const SIGNAL = 4;

const DEFAULTS = { bus: '/run/dbus/system_bus_socket', own: '/run/systemd/private', callMs: 10_000, jobMs: 30_000 };

export function createSlices(o: SlicesOptions = {}): Slices {
  return new SystemdSlices({ ...DEFAULTS, ...o });
}

/** An answer that is an error, or none in time: `code` is the name of the first, ETIMEDOUT of the second. */
function failed(what: string, error: unknown): Error {
  return Object.assign(new Error(`systemd: ${what}: ${messageOf(error)}`), { code: answerOf(error) ?? codeOf(error) });
}

/** The name of an error that systemd or the bus answered with; undefined: there was no answer, whose outcome is unknown. */
function answerOf(error: unknown): string | undefined {
  return codeOf(error) === '' ? (error as Partial<DBusError>).dbusName : undefined;
}

class SystemdSlices implements Slices {
  readonly #o: Required<SlicesOptions>;
  #link: Promise<Link> | null = null;

  constructor(o: Required<SlicesOptions>) {
    this.#o = o;
  }

  async version(): Promise<number> {
    const text = await this.#ask('its version', {
      ...{ interface: PROPERTIES, member: 'Get' },
      ...{ signature: 'ss', body: [MANAGER, 'Version'] },
    });
    // `257.9-1~deb13u1`, `v249`.
    return Number(/\d+/.exec(String(text))?.[0] ?? 0);
  }

  async start(slice: string, properties: readonly UnitProperty[]): Promise<void> {
    const what = `${slice} could not be made`;
    const body = [slice, 'replace', wire(properties), []];
    await this.#job(what, { member: 'StartTransientUnit', signature: 'ssa(sv)a(sa(sv))', body }).catch((error: unknown) => {
      if (codeOf(error) !== EXISTS) throw error;
    });
  }

  async set(slice: string, properties: readonly UnitProperty[]): Promise<void> {
    if (properties.length === 0) return;
    const what = `limits of ${slice} could not be set`;
    await this.#ask(what, { member: 'SetUnitProperties', signature: 'sba(sv)', body: [slice, true, wire(properties)] });
  }

  async stop(slice: string): Promise<void> {
    await this.#job(`${slice} could not be removed`, { member: 'StopUnit', signature: 'ss', body: [slice, 'replace'] }).catch(
      (error: unknown) => {
        if (codeOf(error) !== NO_UNIT) throw error;
      },
    );
  }

  close(): void {
    this.#link?.then(
      (link) => link.close(),
      () => {},
    );
    this.#link = null;
  }

  async #ask(what: string, message: Message): Promise<unknown> {
    const link = await this.#connect();
    try {
      return await link.invoke(message);
    } catch (error) {
      // An answer that comes late would be taken for nobody's; one that is dialled anew may find a bus that works.
      if (answerOf(error) === undefined) link.close();
      throw failed(what, error);
    }
  }

  async #job(what: string, message: Message): Promise<void> {
    const link = await this.#connect();
    using jobs = link.watchJobs();
    const job = await this.#ask(what, message);
    const result = await jobs.result(String(job), this.#o.jobMs).catch((error: unknown) => {
      throw failed(what, error);
    });
    if (result !== 'done') throw failed(what, new Error(`the job ended as ${JSON.stringify(result)}`));
  }

  #connect(): Promise<Link> {
    if (this.#link !== null) return this.#link;
    const mine = this.#dial();
    this.#link = mine;
    const forget = (): void => {
      if (this.#link === mine) this.#link = null;
    };
    mine.then((link) => link.closed.then(forget), forget);
    return mine;
  }

  async #dial(): Promise<Link> {
    const { bus, own, callMs } = this.#o;
    const reasons: string[] = [];
    for (const o of [
      { socket: bus, direct: false },
      { socket: own, direct: true },
    ]) {
      const link = new Link({ ...o, callMs });
      try {
        await link.open();
        return link;
      } catch (error) {
        link.close();
        reasons.push(`${o.socket}: ${messageOf(error)}`);
      }
    }
    throw Object.assign(new Error(`systemd cannot be reached over D-Bus (${reasons.join('; ')})`), { code: 'ECONNREFUSED' });
  }
}

function wire(properties: readonly UnitProperty[]): [string, [string, unknown]][] {
  return properties.map(([name, { type, value }]) => [name, [type, value]]);
}

interface Jobs extends Disposable {
  /** How it ended; rejects when nothing is heard of it in time. */
  result(job: string, withinMs: number): Promise<string>;
}

class Link {
  readonly #bus: MessageBus;
  readonly #direct: boolean;
  readonly #ended: PromiseWithResolvers<Error>;
  /** Results of jobs that ended while somebody may be about to ask: systemd may say so before it has answered the call. */
  readonly #done = new Map<string, string>();
  readonly #waiting = new Map<string, PromiseWithResolvers<string>>();
  #watchers = 0;
  #isEnded = false;

  constructor({ socket, direct, callMs }: { socket: string; direct: boolean; callMs: number }) {
    this.#direct = direct;
    const { bus, ended } = connectBus({ socket, callMs }, (message) => this.#heard(message));
    this.#bus = bus;
    this.#ended = ended;
    void this.closed.then((error) => {
      this.#isEnded = true;
      for (const heard of this.#waiting.values()) heard.reject(error);
    });
  }

  /** Resolves once, with the reason. */
  get closed(): Promise<Error> {
    return this.#ended.promise;
  }

  async open(): Promise<void> {
    const lost = this.closed.then((error) => Promise.reject(error));
    // A second answer is heard by nobody.
    lost.catch(() => {});
    const opened = (async () => {
      // systemd's own socket has no bus that greets and matches.
      if (!this.#direct) {
        await this.#bus.invokeDbus({ member: 'Hello' });
        await this.#bus.addMatch(JOBS);
      }
      await this.invoke({ member: 'Subscribe' });
    })();
    opened.catch(() => {});
    await Promise.race([opened, lost]);
  }

  async invoke(message: Message): Promise<unknown> {
    const to = this.#direct ? {} : { destination: NAME };
    return await this.#bus.invoke({ ...to, path: PATH, interface: MANAGER, ...message });
  }

  watchJobs(): Jobs {
    this.#watchers += 1;
    return {
      result: async (job, withinMs) => {
        const known = this.#done.get(job);
        if (known !== undefined) return known;
        if (this.#isEnded) throw new Error('the connection was lost');
        const heard = Promise.withResolvers<string>();
        this.#waiting.set(job, heard);
        const late = Object.assign(new Error(`nothing was heard of it within ${withinMs / 1000} s`), { code: 'ETIMEDOUT' });
        const timer = setTimeout(() => heard.reject(late), withinMs);
        try {
          return await heard.promise;
        } finally {
          clearTimeout(timer);
          this.#waiting.delete(job);
        }
      },
      [Symbol.dispose]: () => {
        this.#watchers -= 1;
        if (this.#watchers === 0) this.#done.clear();
      },
    };
  }

  close(): void {
    this.#ended.resolve(new Error('the connection was closed'));
    this.#bus.connection.stream.destroy();
  }

  #heard({ type, member, body }: Message): void {
    if (type !== SIGNAL || member !== 'JobRemoved') return;
    const [, job, , result] = body ?? [];
    if (typeof job !== 'string' || typeof result !== 'string') return;
    this.#waiting.get(job)?.resolve(result);
    if (this.#watchers > 0) this.#done.set(job, result);
  }
}
