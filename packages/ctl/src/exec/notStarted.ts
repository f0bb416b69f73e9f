/** A command that did not start, told from one that ended: with the exit codes of a shell. */
import { CtlError } from '@actorlet/admin/src/client.ts';

const NOT_FOUND = 127;
const NOT_RUNNABLE = 126;
const REASONS: readonly (readonly [RegExp, number, string])[] = [
  [/executable file not found|no such file or directory|ENOENT/i, NOT_FOUND, 'there is no such program in the container'],
  [/permission denied|exec format error|is a directory|EACCES|ENOEXEC/i, NOT_RUNNABLE, 'this file of the container cannot be run'],
];

/** Null: the words of the runtime tell of something else. */
export function notStarted(words: string, program: string): CtlError | null {
  // Runtimes name the program in the same breath; others say so of their own files.
  if (!words.includes(program)) return null;
  const found = REASONS.find(([says]) => says.test(words));
  return found === undefined ? null : new CtlError(found[1], `exec: ${program}: ${found[2]}.`);
}
