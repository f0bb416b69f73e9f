/** Messages of the probe manager, and the results that it shows. */

import type { ProbeLedger } from '../../pod/probes/probes.ts';
import { address, type Message, viewKey } from '../../supervision/address.ts';

/** To the probe manager: this pod's definition or status may have changed, or with null anybody's; the views tell. */
export type ProbesEvent = Message & { type: 'probes.look'; uid: string | null };

export const probesAddr = address<ProbesEvent>('node/services/probes');

/** Last probe results by container id; an instance that is not in it has had none yet. */
export const probesView = viewKey<ProbeLedger>('probes');
