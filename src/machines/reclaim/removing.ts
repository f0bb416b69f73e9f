import { viewKey } from '../supervision/address.ts';

/**
 * UIDs of pods whose directories are being removed just now. The remover publishes a UID first and then asks once more
 * whether the pod is unknown; who wants a pod is known first and then waits until its UID is not in here. So neither takes
 * from the other, also when a static pod comes back under the UID that it had.
 */
export const removingDirs = viewKey<ReadonlySet<string>>('removingDirs');
