/** A session on the system bus, as far as systemd-logind is concerned: its properties, its announcements, its presence. */
import { type Message, type MessageBus, variantValue } from 'dbus-native';
import { connectBus } from '../messageBus.ts';

const NAME = 'org.freedesktop.login1';
const PATH = '/org/freedesktop/login1';
const MANAGER = 'org.freedesktop.login1.Manager';
const SYSTEMD = {
  destination: 'org.freedesktop.systemd1',
  path: '/org/freedesktop/systemd1',
  interface: 'org.freedesktop.systemd1.Manager',
};
const DBUS = 'org.freedesktop.DBus';
const LOGIND_UNIT = 'systemd-logind.service';
const SIGHUP = 1;
const MATCHES = [
  `type='signal',sender='${NAME}',path='${PATH}',interface='${MANAGER}',member='PrepareForShutdown'`,
  `type='signal',sender='${DBUS}',interface='${DBUS}',member='NameOwnerChanged',arg0='${NAME}'`,
];
const SIGNAL = 4;

export class LogindBus {
  readonly #bus: MessageBus;
  readonly #ended: PromiseWithResolvers<Error>;
  readonly #heard: boolean[] = [];
  #listener: ((shuttingDown: boolean) => void) | null = null;

  constructor({ socket, callMs }: { socket: string; callMs: number }) {
    const { bus, ended } = connectBus({ socket, callMs }, (message) => this.#hear(message));
    this.#bus = bus;
    this.#ended = ended;
  }

  /** Resolves once, with the reason: the connection is gone, or logind has left the bus. */
  get ended(): Promise<Error> {
    return this.#ended.promise;
  }

  /** Until then nothing is heard of logind. */
  open(): Promise<void> {
    return this.#orEnded(async () => {
      await this.#bus.invokeDbus({ member: 'Hello' });
      for (const match of MATCHES) await this.#bus.addMatch(match);
    });
  }

  /** Microseconds in its word. */
  async delayMs(): Promise<number> {
    const us = Number(await this.#property('InhibitDelayMaxUSec'));
    if (!(us >= 0)) throw new Error('logind names no longest delay of a shutdown');
    return us / 1000;
  }

  async shuttingDown(): Promise<boolean> {
    return (await this.#property('PreparingForShutdown')) === true;
  }

  /** logind reads its configuration again, some time later. */
  async reload(): Promise<void> {
    await this.#orEnded(() => this.#bus.invoke({ ...SYSTEMD, member: 'KillUnit', signature: 'ssi', body: [LOGIND_UNIT, 'all', SIGHUP] }));
  }

  /** Announcements that came before there was a listener are told at once. */
  onShutdown(listener: (shuttingDown: boolean) => void): void {
    this.#listener = listener;
    for (const shuttingDown of this.#heard.splice(0)) listener(shuttingDown);
  }

  close(): void {
    this.#listener = null;
    this.#ended.resolve(new Error('the connection was closed'));
    this.#bus.connection.stream.destroy();
  }

  #property(name: string): Promise<unknown> {
    const message: Message = {
      ...{ destination: NAME, path: PATH, interface: 'org.freedesktop.DBus.Properties', member: 'Get' },
      ...{ signature: 'ss', body: [MANAGER, name] },
    };
    return this.#orEnded(async () => variantValue(await this.#bus.invoke(message)));
  }

  async #orEnded<T>(ask: () => PromiseLike<T>): Promise<T> {
    const lost = this.ended.then((error) => Promise.reject(error));
    lost.catch(() => {});
    const asked = (async () => await ask())();
    asked.catch(() => {});
    return await Promise.race([asked, lost]);
  }

  #hear({ type, member, body }: Message): void {
    if (type !== SIGNAL) return;
    if (member === 'NameOwnerChanged' && body?.[0] === NAME) {
      this.#ended.resolve(new Error(body[2] === '' ? 'systemd-logind has ended' : 'systemd-logind has started again'));
      return;
    }
    const [shuttingDown] = body ?? [];
    if (member !== 'PrepareForShutdown' || typeof shuttingDown !== 'boolean') return;
    if (this.#listener === null) this.#heard.push(shuttingDown);
    else this.#listener(shuttingDown);
  }
}
