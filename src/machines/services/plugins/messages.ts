/** What is published of plugins that registered themselves beside this node. */

import type { DraDriver } from '../../allocation/claims/messages.ts';
import type { WatchedPlugin } from '../../allocation/devices/messages.ts';
import { address, type Message, viewKey } from '../../supervision/address.ts';

export interface CsiDriver {
  name: string;
  /** The socket it registered through. */
  socket: string;
  /** Path of the socket on which it serves volumes. */
  endpoint: string;
  /** The newest version of the interface that both sides speak. */
  version: string;
  /** What its cluster side calls this node. */
  nodeId: string;
  /** 0 = it names no limit. */
  volumesMax: number;
  /** Where this node is, as the driver sees it. */
  topology: Readonly<Record<string, string>>;
}
/** What came of a plugin's registration: one of these, by its type. */
export type Registered = { name: string } & ({ driver: CsiDriver } | { device: WatchedPlugin } | { dra: DraDriver });

export type DriversView = ReadonlyMap<string, CsiDriver>;
export const driversView = viewKey<DriversView>('csiDrivers');

/** Ask this driver again what it says of the node: how many volumes it can take changes. */
export type PluginsEvent = Message & { type: 'plugins.renew'; driver: string };
export const pluginsAddr = address<PluginsEvent>('node/services/plugins');
