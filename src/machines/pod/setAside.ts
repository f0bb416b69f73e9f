/** Pods and documents over which the daemon died: when they are set aside, and what a pod looks like then. Pure. */
import type { Pod } from '../kube/types.ts';

/** Deaths over one definition before it is set aside: one may be chance, a slow host or a `kill -9`. */
const STRIKES_MAX = 2;
/** Deaths further apart than this have nothing to do with each other. A daemon that stalls at each start dies every 30 s or so. */
export const STRIKES_WITHIN_MS = 3_600_000;
/** Subjects remembered; the oldest goes. */
export const SUBJECTS_MAX = 256;
/** Longest subject, in bytes: `pod UID`, or a path and a digest. */
export const SUBJECT_BYTES_MAX = 2048;

/** On a pod that is set aside, for admission: why. */
export const SET_ASIDE_ANNOTATION = 'actorlet.dev/set-aside';

/** On a pod that cannot be read or handled: why. The pod manager leaves its containers as they are. */
export const LEFT_ALONE_ANNOTATION = 'actorlet.dev/left-alone';

export interface Strike {
  atMs: number;
  /** What the daemon died of. */
  how: string;
}
export interface Suspect {
  /** `pod UID`, `file PATH DIGEST` or `url DIGEST`. */
  subject: string;
  strikes: readonly Strike[];
  /** Digest of the pod's definition that the strikes are for; absent until the pod was seen again. */
  digest?: string;
}

export function strike(suspect: Suspect | undefined, subject: string, now: Strike): Suspect {
  const recent = (suspect?.strikes ?? []).filter((s) => now.atMs - s.atMs < STRIKES_WITHIN_MS && s.atMs <= now.atMs);
  return { ...suspect, subject, strikes: [...recent, now].slice(-STRIKES_MAX) };
}

export function isSetAside({ strikes }: Suspect): boolean {
  return strikes.length >= STRIKES_MAX;
}

/** `file`: where it is remembered. */
export function whyAside({ strikes }: Suspect, file: string): string {
  const last = strikes.at(-1);
  const when = new Date(last?.atMs ?? 0).toISOString();
  return `the daemon died ${strikes.length} times while it handled this, last at ${when} (${last?.how ?? ''}); it is tried again when its definition changes, or after ${file} is removed and the daemon restarted`;
}

export function isSuspect(value: unknown): value is Suspect {
  if (typeof value !== 'object' || value === null) return false;
  const { subject, strikes, digest } = value as Record<string, unknown>;
  const isStrike = (s: unknown) => typeof s === 'object' && s !== null && 'atMs' in s && Number.isFinite(s.atMs) && 'how' in s;
  return (
    typeof subject === 'string' && Array.isArray(strikes) && strikes.every(isStrike) && (digest === undefined || typeof digest === 'string')
  );
}

/**
 * The definition as text: what a controller makes anew of the same template gives the same, its token's volume included. A
 * copy in another namespace does not: nobody can have the pods of others set aside.
 */
export function definitionText(pod: Pod): string {
  return JSON.stringify([pod.metadata.namespace, pod.spec]).replaceAll(/kube-api-access-[a-z0-9]{5}/g, 'kube-api-access');
}

/** The pod that a message is about: the one that it names, if it is one alone. */
export function podOfMessage(message: object): string | null {
  const { uid, pod, pods } = message as { uid?: unknown; pod?: unknown; pods?: unknown };
  if (typeof uid === 'string') return uid;
  const only = pod ?? (Array.isArray(pods) && pods.length === 1 ? pods[0] : undefined);
  const found = (only as Partial<Pod> | null | undefined)?.metadata?.uid;
  return typeof found === 'string' ? found : null;
}

const NAME_CHARS_MAX = 253;
const IMAGE_CHARS_MAX = 255;

/**
 * What stands for it everywhere: who it is, and none of what this node could choke on. Admission refuses it; or `annotation` says
 * that the pod manager leaves it alone.
 */
export function shellOf(pod: Pod, why: string, annotation = SET_ASIDE_ANNOTATION): Pod {
  const { name, namespace, uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, annotations } = pod.metadata;
  const source = annotations?.['kubernetes.io/config.source'];
  const hash = annotations?.['kubernetes.io/config.hash'];
  const mirror = annotations?.['kubernetes.io/config.mirror'];
  const first = pod.spec.containers[0];
  const short = (text: unknown, max: number): string =>
    typeof text === 'string' && text !== '' && text.length <= max ? text : 'set-aside';
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace,
      uid,
      ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
      ...(deletionGracePeriodSeconds === undefined ? {} : { deletionGracePeriodSeconds }),
      annotations: {
        ...(source === undefined ? {} : { 'kubernetes.io/config.source': source }),
        ...(hash === undefined ? {} : { 'kubernetes.io/config.hash': hash }),
        ...(mirror === undefined ? {} : { 'kubernetes.io/config.mirror': mirror }),
        [annotation]: why,
      },
    },
    spec: {
      restartPolicy: 'Never',
      ...(pod.spec.nodeName === undefined ? {} : { nodeName: pod.spec.nodeName }),
      containers: [{ name: short(first?.name, NAME_CHARS_MAX), image: short(first?.image, IMAGE_CHARS_MAX) }],
    },
    status: pod.status.phase === undefined ? {} : { phase: pod.status.phase },
  } as Pod;
}
