/** Validation of the security contexts of pods and containers. Pure. */

import { dottedSysctl } from '../../../kube/names.ts';
import type { PodSecurityContext, SeccompProfile, SecurityContext } from '../../../kube/podTable.ts';
import {
  FS_GROUP_CHANGE_POLICIES,
  IDS,
  PROC_MOUNTS,
  PROFILE_TYPES,
  SE_LINUX_CHANGE_POLICIES,
  SUPPLEMENTAL_GROUPS_POLICIES,
} from '../../../kube/words.ts';
import { quoted } from '../../../text/errorList.ts';
import type { Problems } from './problems.ts';

const SYSCTL = /^[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?(?:[./][a-z0-9](?:[-_a-z0-9]*[a-z0-9])?)*$/;

function profile(p: Problems, path: string, value: SeccompProfile | undefined): void {
  if (value === undefined) return;
  p.oneOf(`${path}.type`, value.type ?? '', PROFILE_TYPES);
  const file = value.localhostProfile;
  if (value.type === 'Localhost') {
    if (!file) p.add(`${path}.localhostProfile`, 'required when type is Localhost');
    else if (path.endsWith('seccompProfile') && (file.startsWith('/') || file.split('/').includes('..'))) {
      p.add(`${path}.localhostProfile`, "must be a relative path without '..'");
    }
  } else if (file !== undefined) p.add(`${path}.localhostProfile`, 'may be set only when type is Localhost');
}

function ids(p: Problems, path: string, s: { runAsUser?: number; runAsGroup?: number }): void {
  p.range(`${path}.runAsUser`, s.runAsUser, IDS);
  p.range(`${path}.runAsGroup`, s.runAsGroup, IDS);
}

export function validatePodSecurity(p: Problems, path: string, s: PodSecurityContext | undefined): void {
  if (s === undefined) return;
  ids(p, path, s);
  p.range(`${path}.fsGroup`, s.fsGroup, IDS);
  p.oneOf(`${path}.fsGroupChangePolicy`, s.fsGroupChangePolicy, FS_GROUP_CHANGE_POLICIES);
  p.oneOf(`${path}.supplementalGroupsPolicy`, s.supplementalGroupsPolicy, SUPPLEMENTAL_GROUPS_POLICIES);
  p.oneOf(`${path}.seLinuxChangePolicy`, s.seLinuxChangePolicy, SE_LINUX_CHANGE_POLICIES);
  s.supplementalGroups?.forEach((g, i) => {
    p.range(`${path}.supplementalGroups[${i}]`, g, IDS);
  });
  const names = new Set<string>();
  s.sysctls?.forEach((c, i) => {
    const at = `${path}.sysctls[${i}].name`;
    const name = c.name ?? '';
    if (name === '') p.add(at, 'required');
    else if (name.length > 253 || !SYSCTL.test(name)) p.add(at, `${quoted(name)} is not a sysctl name`);
    else p.unique(at, dottedSysctl(name), names);
  });
  profile(p, `${path}.seccompProfile`, s.seccompProfile);
  profile(p, `${path}.appArmorProfile`, s.appArmorProfile);
}

export function validateContainerSecurity(p: Problems, path: string, s: SecurityContext | undefined): void {
  if (s === undefined) return;
  ids(p, path, s);
  p.oneOf(`${path}.procMount`, s.procMount, PROC_MOUNTS);
  profile(p, `${path}.seccompProfile`, s.seccompProfile);
  profile(p, `${path}.appArmorProfile`, s.appArmorProfile);
  if (s.allowPrivilegeEscalation === false) {
    if (s.privileged === true) p.add(`${path}.allowPrivilegeEscalation`, 'cannot be false when privileged is true');
    const added = s.capabilities?.add ?? [];
    if (added.some((c) => ['CAP_SYS_ADMIN', 'SYS_ADMIN'].includes(c.toUpperCase()))) {
      p.add(`${path}.allowPrivilegeEscalation`, 'cannot be false when the capability SYS_ADMIN is added');
    }
  }
}
