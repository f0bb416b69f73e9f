/** What is asked about a pod that goes on, and reasons to stop a container of it. */

import type { Container } from '../../../kube/podTable.ts';
import type { Pod } from '../../../kube/types.ts';
import type { ProbeResults } from '../../../pod/probes/probes.ts';
import { type AskedRestarts, askedMessage } from '../../../pod/restart/asked.ts';
import type { KillContainer, PodRuntimeStatus } from '../../../pod/runtime/seen.ts';

export interface PodActionsInput {
  pod: Pod;
  status: PodRuntimeStatus;
  liveness?: ProbeResults;
  startup?: ProbeResults;
  /** Names of containers whose postStart hook has not ended: what waits for one of them waits on. */
  hookAhead?: ReadonlySet<string>;
  /** Names of running containers that get other resources, which takes a restart. */
  resizeRestarts?: ReadonlySet<string>;
  /** Instances whose restart a person asked for. */
  asked?: AskedRestarts;
  /** All containers restart, and some are still to be taken away: nothing starts before that. Default false. */
  restartingAll?: boolean;
}

export type Kill = Pick<KillContainer, 'message' | 'reason'>;

export function unknownKill(who: string): Kill {
  return { message: `${who} is in unknown state, try killing it before restart`, reason: 'Unknown' };
}

/** A person asked for a restart of this instance. */
export function askedKill({ name }: Container, id: string, { asked }: PodActionsInput): Kill | undefined {
  const over = asked?.get(id);
  return over === undefined ? undefined : { message: askedMessage(name, over), reason: 'restartAsked' };
}

export function resizeKill({ name }: Container, { resizeRestarts }: PodActionsInput): Kill | undefined {
  if (resizeRestarts?.has(name) !== true) return undefined;
  return { message: `Container ${name} resize requires restart`, reason: 'definitionChanged' };
}
