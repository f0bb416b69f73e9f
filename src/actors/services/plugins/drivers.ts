/** CSI drivers that registered through the folder of plugins: the volume manager is told of them by a view. */

import { sameData } from '../../../machines/data/sameData.ts';
import { type CsiDriver, driversView } from '../../../machines/services/plugins/messages.ts';
import { type Admitted, admitDriver } from '../../../machines/services/plugins/rules.ts';
import { volumesAddr } from '../../../machines/services/volumes/messages.ts';
import type { PluginInfo } from '../../../machines/wire/csi.ts';
import type { ActorCtx } from '../../supervision/types.ts';

export class CsiDrivers {
  readonly #ctx: Pick<ActorCtx, 'registry' | 'log' | 'publish'>;
  readonly #drivers: Map<string, CsiDriver>;
  /** Names taken, also of those that are still about to be registered. */
  readonly #names: Map<string, { socket: string; version: string }>;

  constructor(ctx: Pick<ActorCtx, 'registry' | 'log' | 'publish'>) {
    this.#ctx = ctx;
    this.#drivers = new Map(ctx.registry.read(driversView)?.value);
    this.#names = new Map([...this.#drivers].map(([name, { socket, version }]) => [name, { socket, version }]));
  }

  sockets(): string[] {
    return [...this.#drivers.values()].map((d) => d.socket);
  }

  at(socket: string): CsiDriver | undefined {
    return [...this.#drivers.values()].find((d) => d.socket === socket);
  }

  /** Takes its name. Throws with what is wrong. */
  admit(info: PluginInfo, socket: string): Admitted {
    const admitted = admitDriver(info, socket, this.#names);
    if (!admitted.ok) throw new Error(admitted.message);
    const { name, version } = admitted.value;
    this.#names.set(name, { socket, version });
    return admitted.value;
  }

  /** Names that were taken through that socket are free again. */
  release(socket: string): string[] {
    const held = [...this.#names].filter(([, n]) => n.socket === socket).map(([name]) => name);
    for (const name of held) this.#names.delete(name);
    return held;
  }

  /** False: somebody with a higher version took the name while this one was being told. */
  registered(socket: string, driver: CsiDriver): boolean {
    const { name, endpoint, version, nodeId } = driver;
    if (this.#names.get(name)?.socket !== socket) return false;
    // It was only asked again, and says the same.
    if (sameData(this.#drivers.get(name), driver)) return true;
    this.#drivers.set(name, driver);
    this.#ctx.log.info({ driver: name, endpoint, version, nodeId, socket }, 'CSI driver registered');
    this.#publish();
    this.#ctx.registry.send(volumesAddr, { type: 'volumes.retry' });
    return true;
  }

  gone(socket: string): void {
    const left = this.release(socket).filter((name) => this.#drivers.delete(name));
    for (const name of left) this.#ctx.log.info({ driver: name, socket }, 'CSI driver is gone: its socket was taken away');
    if (left.length > 0) this.#publish();
  }

  #publish(): void {
    this.#ctx.publish(driversView, new Map(this.#drivers));
  }
}
