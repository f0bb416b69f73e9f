/** Deadlines of calls for volumes, and the mode of the directories that hold them. */

import type { MountCall } from '../../../../ports/machine/mounter.ts';

/** A mount or unmount of a local file system takes milliseconds; longer means that something is stuck. */
const MOUNT_TIMEOUT_MS = 60_000;
/** The same of a path whose server may not answer: its pod can be deleted meanwhile, and is to be gone 30 s later. */
const SERVER_TIMEOUT_MS = 25_000;
/** One look at a path that somebody else has made. */
const LOOK_TIMEOUT_MS = 10_000;
/** A journal is replayed when its file system is mounted. */
const DEVICE_TIMEOUT_MS = 120_000;
/** fsck and mkfs of a large disk. */
const FORMAT_TIMEOUT_MS = 1_800_000;
/** A walk through a tree of many files that gets no further. */
const GROUP_TIMEOUT_MS = 600_000;
/** A large file system takes its time, and its pod runs on meanwhile. */
const GROW_TIMEOUT_MS = 600_000;
/** Mode of directories that hold volumes, markers and links. */
export const DIR_MODE = 0o750;

export const mountCall = (signal: AbortSignal): MountCall => ({ timeoutMs: MOUNT_TIMEOUT_MS, signal });
export const serverCall = (signal: AbortSignal): MountCall => ({ timeoutMs: SERVER_TIMEOUT_MS, signal });
export const deviceCall = (signal: AbortSignal): MountCall => ({ timeoutMs: DEVICE_TIMEOUT_MS, signal });
export const formatCall = (signal: AbortSignal): MountCall => ({ timeoutMs: FORMAT_TIMEOUT_MS, signal });
export const lookCall = (signal: AbortSignal): MountCall => ({ timeoutMs: LOOK_TIMEOUT_MS, signal });
export const growCall = (signal: AbortSignal): MountCall => ({ timeoutMs: GROW_TIMEOUT_MS, signal });
export const groupCall = (signal: AbortSignal, progress: (files: number) => void): MountCall => ({
  timeoutMs: GROUP_TIMEOUT_MS,
  signal,
  progress,
});

export const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/'));
