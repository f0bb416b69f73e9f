/** Security contexts of sandboxes and containers for CRI (pod lifecycle 5.4, 5.10). */

import type {
  Container,
  EphemeralContainer,
  PodSecurityContext,
  SELinuxOptions,
  SeccompProfile,
  SecurityContext,
} from '../../../kube/podTable.ts';
import type { Pod } from '../../../kube/types.ts';
import type { NodeFacts } from '../../../nodeFacts.ts';
import { APPARMOR_ANNOTATION, APPARMOR_UNCONFINED } from '../../../pod/names.ts';
import { podDescription } from '../../../pod/podDescription.ts';
import { type Built, built, refused } from '../../../result.ts';
import { quoted } from '../../../text/errorList.ts';
import type {
  Int64Value,
  LinuxContainerSecurityContext,
  LinuxSandboxSecurityContext,
  NamespaceOption,
  SELinuxOption,
  SecurityProfile,
  SupplementalGroupsPolicy,
  UserNamespace,
} from '../../../wire/cri.ts';

/** Beside them, the folders of {@link SecurityFacts}: each machine has others. */
export const MASKED_PATHS = [
  '/proc/asound',
  '/proc/acpi',
  '/proc/interrupts',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/sys/firmware',
  '/sys/devices/virtual/powercap',
];
export const READONLY_PATHS = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'];
/** In 32 bits a larger id is another one: 2^32 is root. */
const USER_MAX = 2_147_483_647;

/** The user an image asks for: a number, a name, or neither. */
export interface ImageUser {
  uid: number | null;
  username: string;
}
export type SecurityFacts = Pick<NodeFacts, 'rootDir' | 'seccompDefault' | 'thermalFolders'>;

function namespaceOptions(pod: Pod, users?: UserNamespace): NamespaceOption {
  const { spec } = pod;
  return {
    network: spec.hostNetwork === true ? 'NODE' : 'POD',
    ipc: spec.hostIPC === true ? 'NODE' : 'POD',
    pid: spec.hostPID === true ? 'NODE' : spec.shareProcessNamespace === true ? 'POD' : 'CONTAINER',
    ...(users === undefined ? {} : { usernsOptions: users }),
  };
}

function int64(value: number | undefined): Int64Value | undefined {
  return value === undefined ? undefined : { value };
}

function selinux(options: SELinuxOptions | undefined): SELinuxOption | undefined {
  return options === undefined
    ? undefined
    : { user: options.user ?? '', role: options.role ?? '', type: options.type ?? '', level: options.level ?? '' };
}

/** Drops the members that are undefined: an absent message differs from an empty one on the wire. */
function present<T extends object>(fields: { [K in keyof T]?: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}

function supplementalGroups(context: PodSecurityContext | undefined, ofVolumes: readonly number[] = []): number[] {
  const own = context?.supplementalGroups ?? [];
  const more = [...new Set(ofVolumes)].filter((group) => !own.includes(group));
  return [...(context?.fsGroup === undefined ? [] : [context.fsGroup]), ...own, ...more];
}

/** Merge is what a runtime does that is not told, or does not know of it. */
function groupsPolicy(context: PodSecurityContext | undefined): SupplementalGroupsPolicy | undefined {
  return context?.supplementalGroupsPolicy === 'Strict' ? 'Strict' : undefined;
}

export function sandboxSecurity(pod: Pod, users?: UserNamespace): LinuxSandboxSecurityContext {
  const { spec } = pod;
  const context = spec.securityContext;
  const all = [...spec.containers, ...(spec.initContainers ?? []), ...(spec.ephemeralContainers ?? [])];
  return present<LinuxSandboxSecurityContext>({
    namespaceOptions: namespaceOptions(pod, users),
    selinuxOptions: selinux(context?.seLinuxOptions),
    runAsUser: int64(context?.runAsUser),
    runAsGroup: int64(context?.runAsGroup),
    supplementalGroups: supplementalGroups(context),
    supplementalGroupsPolicy: groupsPolicy(context),
    privileged: all.some((c) => c.securityContext?.privileged === true),
    seccomp: { profileType: 'RuntimeDefault' },
  });
}

/** The container's own values over the pod's, field by field, for those fields that a pod has too. */
export function effectiveSecurity(pod: Pod, container: Container): SecurityContext {
  const outer = pod.spec.securityContext;
  const own = container.securityContext ?? {};
  return present<SecurityContext>({
    ...own,
    seLinuxOptions: own.seLinuxOptions ?? outer?.seLinuxOptions,
    runAsUser: own.runAsUser ?? outer?.runAsUser,
    runAsGroup: own.runAsGroup ?? outer?.runAsGroup,
    runAsNonRoot: own.runAsNonRoot ?? outer?.runAsNonRoot,
    seccompProfile: own.seccompProfile ?? outer?.seccompProfile,
    appArmorProfile: own.appArmorProfile ?? outer?.appArmorProfile,
  });
}

/** Refuses a container that must not run as root and would, or of which that cannot be told. `user` null: the image's user is not known. */
export function verifyRunAsNonRoot(effective: SecurityContext, user: ImageUser | null, who: string): Built<null> {
  if (effective.runAsNonRoot !== true) return built(null);
  if (effective.runAsUser !== undefined) {
    return effective.runAsUser === 0 ? refused(`container's runAsUser breaks non-root policy (${who})`) : built(null);
  }
  if (user === null) return refused(`container has runAsNonRoot and the user of the image is not known; set runAsUser (${who})`);
  const numeric = user.uid ?? (user.username === '' || /^\d+$/.test(user.username) ? Number(user.username) : null);
  if (numeric === null) {
    return refused(`container has runAsNonRoot and image has non-numeric user (${user.username}), cannot verify user is non-root (${who})`);
  }
  if (numeric === 0) return refused(`container has runAsNonRoot and image will run as root (${who})`);
  if (numeric > 0 && numeric <= USER_MAX) return built(null);
  const range = `(Must be 1-(${USER_MAX})): must be between 0 and ${USER_MAX}, inclusive`;
  return refused(`container has runAsNonRoot and image has an invalid user id (${numeric}). ${range} (${who})`);
}

function seccomp(profile: SeccompProfile | undefined, facts: SecurityFacts, who: string): Built<SecurityProfile> {
  if (profile === undefined) return built({ profileType: facts.seccompDefault ? 'RuntimeDefault' : 'Unconfined' });
  const type: string = profile.type;
  if (type === 'RuntimeDefault' || type === 'Unconfined') return built({ profileType: type });
  // A newer API server may know of more: no container runs without the profile that it asks for (kubernetes/kubernetes#141958).
  if (type !== 'Localhost') return refused(`${who}: invalid seccompProfile.type ${quoted(type)}: Localhost, RuntimeDefault or Unconfined`);
  if (!profile.localhostProfile) return refused(`${who}: seccompProfile.type Localhost needs localhostProfile`);
  if (profile.localhostProfile.split('/').includes('..')) return refused(`${who}: localhostProfile must not contain ".."`);
  return built({ profileType: 'Localhost', localhostRef: `${facts.rootDir}/seccomp/${profile.localhostProfile}` });
}

function appArmor(pod: Pod, container: Container, profile: SeccompProfile | undefined): Built<SecurityProfile | undefined> {
  const who = `container "${container.name}"`;
  if (profile !== undefined) {
    const type: string = profile.type;
    if (type === 'RuntimeDefault' || type === 'Unconfined') return built({ profileType: type });
    if (type !== 'Localhost') return refused(`${who}: unknown apparmor profile type: ${quoted(type)}`);
    if (!profile.localhostProfile) return refused(`${who}: appArmorProfile.type Localhost needs localhostProfile`);
    return built({ profileType: 'Localhost', localhostRef: profile.localhostProfile });
  }
  const annotation = pod.metadata.annotations?.[`${APPARMOR_ANNOTATION}${container.name}`];
  if (annotation === undefined || annotation === '') return built(undefined);
  if (annotation === 'runtime/default') return built({ profileType: 'RuntimeDefault' });
  if (annotation === APPARMOR_UNCONFINED) return built({ profileType: 'Unconfined' });
  if (annotation.startsWith('localhost/')) return built({ profileType: 'Localhost', localhostRef: annotation.slice('localhost/'.length) });
  return refused(`${who}: annotation ${APPARMOR_ANNOTATION}${container.name} has the unknown value "${annotation}"`);
}

/** The runtime's user: asked for, or the image's; an image without a user runs as root. */
function runAs(effective: SecurityContext, user: ImageUser | null): { runAsUser?: Int64Value; runAsUsername?: string } {
  if (effective.runAsUser !== undefined) return { runAsUser: { value: effective.runAsUser } };
  // Unknown, not absent: then the runtime applies what the image says.
  if (user === null) return {};
  if (user.uid !== null) return { runAsUser: { value: user.uid } };
  return user.username === '' ? { runAsUser: { value: 0 } } : { runAsUsername: user.username };
}

export function containerSecurity(input: {
  pod: Pod;
  container: Container;
  imageUser: ImageUser | null;
  facts: SecurityFacts;
  /** Container whose processes an ephemeral container is to see. */
  targetContainerId?: string | undefined;
  /** The sandbox's. */
  userNamespace?: UserNamespace | undefined;
  volumeGroups?: readonly number[] | undefined;
}): Built<LinuxContainerSecurityContext> {
  const { pod, container, facts, imageUser } = input;
  const who = `container "${container.name}"`;
  const effective = effectiveSecurity(pod, container);
  const verified = verifyRunAsNonRoot(effective, imageUser, `pod: "${podDescription(pod)}", container: ${container.name}`);
  if (!verified.ok) return verified;
  const seccompProfile = seccomp(effective.seccompProfile, facts, who);
  if (!seccompProfile.ok) return seccompProfile;
  const apparmor = appArmor(pod, container, effective.appArmorProfile);
  if (!apparmor.ok) return apparmor;
  const policy: string = pod.spec.securityContext?.supplementalGroupsPolicy ?? 'Merge';
  if (policy !== 'Merge' && policy !== 'Strict') return refused(`unsupported supplementalGroupsPolicy: ${policy}`);
  const namespaces = namespaceOptions(pod, input.userNamespace);
  const target = (container as EphemeralContainer).targetContainerName;
  if (target) {
    if (input.targetContainerId === undefined) return refused(`${who}: target container "${target}" has no instance`);
    if (namespaces.pid === 'CONTAINER') {
      namespaces.pid = 'TARGET';
      namespaces.targetId = input.targetContainerId;
    }
  }
  const unmasked = effective.procMount === 'Unmasked';
  const { capabilities } = effective;
  return built(
    present<LinuxContainerSecurityContext>({
      ...runAs(effective, imageUser),
      runAsGroup: int64(effective.runAsGroup),
      capabilities:
        capabilities === undefined ? undefined : { addCapabilities: capabilities.add ?? [], dropCapabilities: capabilities.drop ?? [] },
      privileged: effective.privileged ?? false,
      namespaceOptions: namespaces,
      selinuxOptions: selinux(effective.seLinuxOptions),
      readonlyRootfs: effective.readOnlyRootFilesystem ?? false,
      supplementalGroups: supplementalGroups(pod.spec.securityContext, input.volumeGroups),
      supplementalGroupsPolicy: groupsPolicy(pod.spec.securityContext),
      noNewPrivs: effective.allowPrivilegeEscalation === false,
      maskedPaths: unmasked ? [] : [...MASKED_PATHS, ...(facts.thermalFolders ?? [])],
      readonlyPaths: unmasked ? [] : [...READONLY_PATHS],
      seccomp: seccompProfile.value,
      apparmor: apparmor.value,
    }),
  );
}
