/** What is said to and published by the device manager. */

import type { Container, Pod } from '../../k8s.ts';
import type { Built } from '../../pods/workers/config/result.ts';
import { type Address, address, type Message, type ReplyTo, viewKey } from '../../supervision/address.ts';
import type { AllocationEvent } from '../messages.ts';
import type { NodeDevices } from './inventory.ts';
import type { PluginShare } from './responses.ts';
import type { DeviceLedger, PluginOptions } from './types.ts';

export type DevicesEvent =
  | AllocationEvent
  | (Message &
      /** A container of it is about to be created: what comes with its devices. */
      (
        | { type: 'devices.start'; pod: Pod; container: Container; replyTo: ReplyTo<Built<PluginShare>> }
        /** The view of watched plugins has changed. */
        | { type: 'devices.watched' }
      ));

export const devicesAddr: Address<DevicesEvent> = address<DevicesEvent>('node/allocation/devices');

export interface DevicesView extends NodeDevices {
  /** Which devices there are, and who holds them. */
  ledger: DeviceLedger;
  /** No record of an earlier daemon was found: what an earlier node of this name said of such resources is not true. */
  recreated: boolean;
}
/** Absent where there are no device plugins, and before the records were read. */
export const devicesView = viewKey<DevicesView>('devices');

/** Device plugins that registered through the folder of plugins, by their socket there. */
export interface WatchedPlugin {
  resource: string;
  endpoint: string;
  options: PluginOptions;
  /** Another one each time that it registered. */
  stamp: string;
}
export const watchedPluginsView = viewKey<ReadonlyMap<string, WatchedPlugin>>('devicePlugins');
