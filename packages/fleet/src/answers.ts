/** What commands in hollow containers answer: a script in an annotation of the pod. Pure. */
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { ScriptedContainer } from '@actorlet/runtimes/src/hollow/index.ts';

/** JSON: an object of commands, words joined by a blank, `*` for any other; each a text, or `stdout`, `stderr`, `exit`. */
const EXEC_ANNOTATION = 'actorlet.dev/exec';
/** As a shell says of a command that it does not find. */
const NOT_FOUND = 127;
const NOT_RUN = 126;

export interface ExecAnswer {
  stdout: string;
  stderr: string;
  exitCode: number;
}

/** Undefined: the pod has no script. Never throws: a script that cannot be read is told on stderr. */
export function answerTo({ annotations }: Pick<ScriptedContainer, 'annotations'>, cmd: readonly string[]): ExecAnswer | undefined {
  const text = annotations[EXEC_ANNOTATION];
  if (text === undefined) return undefined;
  let script: unknown;
  try {
    script = JSON.parse(text);
  } catch {
    script = undefined;
  }
  if (!isRecord(script)) return failed(`annotation ${EXEC_ANNOTATION} is no JSON object of commands`, NOT_RUN);
  const name = cmd.join(' ');
  const entry = Object.hasOwn(script, name) ? script[name] : script['*'];
  if (typeof entry === 'string') return { stdout: entry, stderr: '', exitCode: 0 };
  if (!isRecord(entry)) return failed(`annotation ${EXEC_ANNOTATION} has no answer to ${JSON.stringify(name)}`, NOT_FOUND);
  const { stdout, stderr, exit } = entry;
  const words = (value: unknown): string => (typeof value === 'string' ? value : '');
  return { stdout: words(stdout), stderr: words(stderr), exitCode: typeof exit === 'number' ? exit & 255 : 0 };
}

/** To a person: who has scripted nothing is told how. */
export function answerOrHint(container: Pick<ScriptedContainer, 'annotations'>, cmd: readonly string[]): ExecAnswer {
  return answerTo(container, cmd) ?? failed(`no process runs here; annotation ${EXEC_ANNOTATION} of the pod scripts answers`, NOT_FOUND);
}

function failed(why: string, exitCode: number): ExecAnswer {
  return { stdout: '', stderr: `actorlet: ${why}\n`, exitCode };
}
