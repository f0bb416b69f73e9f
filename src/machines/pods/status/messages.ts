/** Messages of the status manager, and the statuses that it shows. */
import type { Container } from '../../kube/podTable.ts';
import type { Pod, PodStatus, ResourceStatus } from '../../kube/types.ts';
import type { PodRef } from '../../pod/names.ts';
import { address, type Message, viewKey } from '../../supervision/address.ts';

/** Health of the devices that a container has. */
export type DeviceHealthOf = (pod: Pod, container: Container) => readonly ResourceStatus[];

export type StatusEvent = Message &
  (
    | {
        type: 'status.set';
        pod: PodRef;
        /** Which life of the pod it is about. */
        life: number;
        status: PodStatus;
        restartPolicy: string;
        deleting: boolean;
        /** Nothing of it runs, and nothing starts again. Absent: as `finished`. */
        stopped?: boolean;
        /** Its volumes are down too: its worker has nothing more to do. */
        finished?: boolean;
        /** Names of containers that may start again under any policy of the pod. */
        restartable?: readonly string[];
      }
    /** What was said of that life and of those before it. */
    | { type: 'status.forget'; uid: string; life: number }
  );

export interface StatusEntry {
  status: PodStatus;
  /** Which life of the pod it is about. */
  life: number;
  /** Grows with each accepted change of what is to be written, and is never given twice on one node. */
  version: number;
  /** Nothing of it runs, and nothing starts again: the API may hear of its end. */
  stopped: boolean;
  /** Nothing of it is left to do: the API may forget it. */
  finished: boolean;
}

export type StatusView = ReadonlyMap<string, StatusEntry>;
export const statusAddr = address<StatusEvent>('node/pods/status');
export const statusesView = viewKey<StatusView>('statuses');
