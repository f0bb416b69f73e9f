/** `actorctl logs` and `actorctl exec`. */

import { CtlError, EXIT } from '../../admin/client.ts';
import { printLogs } from '../../admin/logs.ts';
import type { LogFile } from '../../machines/shown/podLogs.ts';
import { type Command, printData, wantsData } from '../asked.ts';
import { checkTerminal, runExec } from '../exec/run.ts';
import { named } from './show/show.ts';

export interface LogsArgs {
  pod: string;
  container: string;
  follow: boolean;
  previous: boolean;
  tail: number | undefined;
  timestamps: boolean;
}
export function logs(args: LogsArgs): Command {
  return async (asked) => {
    const { io, client } = asked;
    if (args.tail !== undefined && !(Number.isInteger(args.tail) && args.tail >= 0)) {
      throw new CtlError(EXIT.usage, '--tail takes a whole number of lines, 0 or more.');
    }
    const query = { pod: named(args.pod, asked), container: args.container, ...(args.previous ? { previous: '' } : {}) };
    const locate = async (uid?: string) =>
      (await client.json('/logs', uid === undefined ? query : { ...query, pod: uid })) as Extract<LogFile, { ok: true }>;
    if (wantsData(asked.format)) {
      printData(asked, await locate());
      return EXIT.ok;
    }
    await printLogs(locate, io.out, { tail: args.tail, follow: args.follow, timestamps: args.timestamps, signal: io.signal });
    return EXIT.ok;
  };
}

export interface ExecArgs {
  pod: string;
  container: string;
  stdin: boolean;
  tty: boolean;
  command: readonly string[];
}
export function exec(args: ExecArgs): Command {
  return async (asked) => {
    if (args.command.length === 0)
      throw new CtlError(EXIT.usage, 'exec: say what to run after --, e.g. actorctl exec web -- sh -c "echo hi".');
    const flags = { stdin: args.stdin, tty: args.tty };
    checkTerminal(asked.io, flags);
    const answer = await asked.client.post('/exec', {
      pod: named(args.pod, asked),
      container: args.container,
      ...flags,
      cmd: args.command,
    });
    return runExec((answer as { url: string }).url, asked.io, flags);
  };
}
