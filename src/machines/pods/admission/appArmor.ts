/** Whether a pod wants a profile of AppArmor, which not every kernel enforces. Pure. */
import type { Pod } from '../../k8s.ts';

/** How pods named their profiles before there was a field: this, and the name of the container. */
export const APPARMOR_ANNOTATION = 'container.apparmor.security.beta.kubernetes.io/';
export const APPARMOR_UNCONFINED = 'unconfined';

/** True where the pod, one of its containers or an annotation names a profile other than none at all. */
export function wantsAppArmor({ metadata, spec }: Pod): boolean {
  const containers = [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])];
  const types = [spec, ...containers].map((one) => one.securityContext?.appArmorProfile?.type ?? 'Unconfined');
  if (types.some((type) => type !== 'Unconfined')) return true;
  return Object.entries(metadata.annotations ?? {}).some(
    ([key, value]) => key.startsWith(APPARMOR_ANNOTATION) && value !== APPARMOR_UNCONFINED && value !== '',
  );
}
