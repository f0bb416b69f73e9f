/** How the observer shares the processor with the kubelet. */
import { readdirSync, readlinkSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';

/** Work of the kubelet, the runtime and the pods goes first. */
export const NICE_DEFAULT: number = constants.priority.PRIORITY_LOW;
export const NICE_MAX: number = constants.priority.PRIORITY_LOW;

/**
 * Linux keeps a priority for each thread, and a thread begins with that of the one that made it. Those that are there already are
 * looked up. A /proc of other process numbers is not asked: they would be those of other processes. Answers why it stays as it is;
 * null: it is set.
 */
export function setNice(nice: number): string | null {
  const isOwn = linkOf('/proc/self') === String(process.pid);
  for (const thread of isOwn ? readdirSync('/proc/self/task') : ['0']) {
    try {
      setPriority(Number(thread), nice);
    } catch (error) {
      // It ended meanwhile.
      if ((error as { info?: { code?: string } }).info?.code !== 'ESRCH') return messageOf(error);
    }
  }
  return null;
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
