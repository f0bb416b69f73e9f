/** Address of the fault injector. */
import { address } from '@actorlet/kubelet/machines/supervision/address.ts';
import type { InjectorEvent } from './live.ts';

/** Only in a node that was started with `--actorlet-fault-injection`. */
export const injectorAddr = address<InjectorEvent>('node/foundation/injector');
