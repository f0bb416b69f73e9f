/** Whether a pod wants a profile of AppArmor, which not every kernel enforces. Pure. */

import type { Pod } from '../../../kube/types.ts';
import { APPARMOR_ANNOTATION, APPARMOR_UNCONFINED } from '../../../pod/names.ts';

/** True where the pod, one of its containers or an annotation names a profile other than none at all. */
export function wantsAppArmor({ metadata, spec }: Pod): boolean {
  const containers = [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])];
  const types = [spec, ...containers].map((one) => one.securityContext?.appArmorProfile?.type ?? 'Unconfined');
  if (types.some((type) => type !== 'Unconfined')) return true;
  return Object.entries(metadata.annotations ?? {}).some(
    ([key, value]) => key.startsWith(APPARMOR_ANNOTATION) && value !== APPARMOR_UNCONFINED && value !== '',
  );
}
