/** Parts of a pod's page that need nothing of a running node. Pure. */
import type { RecorderEntry } from '@actorlet/kubelet/machines/recorder/recorderEntry.ts';
import type { PodFrame } from './frames.ts';

export const MESSAGES_MAX = 160;

/** What is shown of a pod that only its history knows. */
export function nothingKnown(uid: string, path: string): Omit<NonNullable<PodFrame['pod']>, 'history' | 'messages'> {
  return {
    namespace: '',
    name: uid,
    source: '',
    seenAtMs: 0,
    phase: 'gone',
    reason: '',
    message: `${path} has ended`,
    worker: null,
    conditions: [],
    containers: [],
    probes: [],
    volumes: [],
    causes: [],
    why: [],
    events: [],
  };
}

/** A message about the pod. */
export function isAbout(e: RecorderEntry, uid: string): boolean {
  return e.kind === 'message' && (e.detail.includes(uid) || e.path.includes(uid) || e.from.includes(uid));
}
