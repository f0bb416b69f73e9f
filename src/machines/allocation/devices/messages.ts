/** What is said to and published by the device manager. */

import type { Container } from '../../kube/podTable.ts';
import type { Pod } from '../../kube/types.ts';
import type { Built } from '../../result.ts';
import { type Address, address, type Message, type ReplyTo, viewKey } from '../../supervision/address.ts';
import type { AllocationEvent, ContainerShare, NodeResources } from '../messages.ts';
import type { DeviceLedger, PluginOptions } from './types.ts';

export type DevicesEvent =
  | AllocationEvent
  | (Message &
      /** A container of it is about to be created: what comes with its devices. */
      (
        | { type: 'devices.start'; pod: Pod; container: Container; replyTo: ReplyTo<Built<ContainerShare>> }
        /** The view of watched plugins has changed. */
        | { type: 'devices.watched' }
      ));

/** Its reason while device plugins cannot register. */
export const SOCKET_FAILED = 'SocketFailed';

export const devicesAddr: Address<DevicesEvent> = address<DevicesEvent>('node/allocation/devices');

export interface DevicesView extends NodeResources {
  /** Which devices there are, and who holds them. */
  ledger: DeviceLedger;
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
