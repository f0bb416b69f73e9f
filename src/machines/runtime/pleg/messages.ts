/** Messages of the PLEG, and the listing that it shows. */

import type { RuntimePodsView } from '../../pod/runtime/seen.ts';
import { address, type Message, viewKey } from '../../supervision/address.ts';

export type PlegEvent = Message &
  (
    | { type: 'pleg.relist'; why: string }
    | { type: 'cri.ready' }
    | { type: 'cri.lost' }
    /** Something about this container or sandbox id changed (already attributed when podUid is set). */
    | { type: 'pleg.hint'; id: string; podUid?: string; kind: string }
    | { type: 'pleg.resync' }
  );

export const plegAddr = address<PlegEvent>('node/runtime/pleg');
export const runtimePodsView = viewKey<RuntimePodsView>('runtimePods');
