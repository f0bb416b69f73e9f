/** What the node shutdown manager publishes, and the words it uses. */
import { viewKey } from '../../supervision/address.ts';

/** Reason and message of a pod that a shutdown of the node ended. */
export const TERMINATED = 'Terminated';
export const TERMINATED_MESSAGE = 'Pod was terminated in response to imminent node shutdown.';
/** Reason and message of a pod that came during the shutdown. */
export const NOT_ADMITTED = 'NodeShutdown';
export const NOT_ADMITTED_MESSAGE = 'Pod was rejected as the node is shutting down.';
/** Reason of the node's events. */
export const SHUTDOWN_EVENT = 'Shutdown';
export const DETECTED_MESSAGE = 'Shutdown manager detected shutdown event';
export const CANCELLED_MESSAGE = 'Shutdown manager detected shutdown cancellation';

export interface NodeShutdownView {
  /** The machine is going down: the node is not Ready and admits no pod. */
  active: boolean;
  /** When that began; null while it is not going down. */
  startedWallMs: number | null;
  startedMonoMs: number | null;
}
/** Absent where the node waits for no shutdown. */
export const nodeShutdownView = viewKey<NodeShutdownView>('nodeShutdown');
