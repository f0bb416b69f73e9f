/** Drivers of dynamic resources that registered through the folder of plugins: the manager of ResourceClaims reads them from a view. */
import { claimsAddr, type DraDriver, draDriversView } from '../../../machines/allocation/claims/messages.ts';
import { admitDraDriver } from '../../../machines/services/plugins/draRules.ts';
import type { Registered } from '../../../machines/services/plugins/messages.ts';
import type { PluginInfo } from '../../../machines/wire/csi.ts';
import type { ActorCtx } from '../../supervision/types.ts';

type Ctx = Pick<ActorCtx, 'ports' | 'registry' | 'log' | 'publish' | 'incarnation'>;

export class DraDrivers {
  readonly #ctx: Ctx;
  #count = 0;
  readonly #drivers: Map<string, DraDriver>;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    this.#drivers = new Map(ctx.registry.read(draDriversView)?.value);
  }

  sockets(): string[] {
    return [...this.#drivers.keys()];
  }

  /** Throws with what is wrong. */
  admit(info: PluginInfo, socket: string): Registered {
    if (this.#ctx.ports.dra === undefined) throw new Error(`no handler registered for plugin type "${info.type}" at socket ${socket}`);
    const others = [...this.#drivers].filter(([at]) => at !== socket).map(([, driver]) => driver);
    const admitted = admitDraDriver(info, { socket, others });
    if (!admitted.ok) throw new Error(admitted.message);
    this.#count += 1;
    return { name: info.name, dra: { ...admitted.value, stamp: `dra ${this.#ctx.incarnation}.${this.#count}` } };
  }

  registered(socket: string, driver: DraDriver): void {
    this.#ctx.log.info({ ...driver, socket }, 'DRA driver registered');
    this.#drivers.set(socket, driver);
    this.#tell();
  }

  gone(socket: string): void {
    if (this.#drivers.delete(socket)) this.#tell();
  }

  #tell(): void {
    this.#ctx.publish(draDriversView, new Map(this.#drivers));
    this.#ctx.registry.send(claimsAddr, { type: 'claims.drivers' });
  }
}
