/** `actorctl logs` and `actorctl exec`. */

import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { printLogs } from '@actorlet/admin/src/logs.ts';
import type { LogFile } from '@actorlet/kubelet/machines/edge/podLogs.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import type { PodSummary } from '@actorlet/shown/src/pods/podSummary.ts';
import { type Asked, type Command, printData, wantsData } from '../asked.ts';
import { notStarted } from '../exec/notStarted.ts';
import { runSpdy } from '../exec/remote.ts';
import { checkTerminal } from '../exec/run.ts';
import { named, uidOf } from './show/show.ts';

export interface LogsArgs {
  /** '': those that `--selector` chooses. */
  pod: string;
  container: string;
  allContainers: boolean;
  follow: boolean;
  previous: boolean;
  tail: number | undefined;
  timestamps: boolean;
  prefix: boolean;
  /** Only what was written in the last so many milliseconds. */
  sinceMs: number;
  selector?: string | undefined;
}
type Found = Extract<LogFile, { ok: true }>;

/** Logs followed at once; each is a file that is looked at five times a second. */
const FOLLOWED_MAX = 64;

export function logs(args: LogsArgs): Command {
  return async (asked) => {
    const { io, client } = asked;
    if (args.tail !== undefined && !(Number.isInteger(args.tail) && args.tail >= 0)) {
      throw new CtlError(EXIT.usage, '--tail takes a whole number of lines, 0 or more.');
    }
    const of = await containersMeant(asked, args);
    const places = of.map(({ pod, container }) => async (uid?: string): Promise<Found> => {
      const query = { pod: uid ?? pod, container, ...(args.previous ? { previous: '' } : {}) };
      return (await client.json('/logs', query)) as Found;
    });
    if (wantsData(asked.format)) {
      const found = await Promise.all(places.map((locate) => locate()));
      printData(asked, args.allContainers || args.pod === '' ? found : found[0]);
      return EXIT.ok;
    }
    const fromMs = io.nowMs() - args.sinceMs;
    const { tail, follow, timestamps } = args;
    const print = (locate: (typeof places)[number], i: number) => {
      const name = args.prefix ? `[${of[i]?.shown ?? ''}] ` : '';
      return printLogs(locate, io.out, { tail, follow, timestamps, fromMs, prefix: name, signal: io.signal });
    };
    // A container that has written nothing yet does not hide what the others wrote.
    const each = async (locate: (typeof places)[number], i: number): Promise<void> => {
      await print(locate, i).catch((error: unknown) => {
        if (!(error instanceof CtlError) || places.length === 1) throw error;
        io.err(`actorctl: ${of[i]?.shown ?? ''}: ${error.message}\n`);
      });
    };
    if (follow) await Promise.all(places.map(each));
    else for (const [i, locate] of places.entries()) await each(locate, i);
    return EXIT.ok;
  };
}

/** The containers that the words choose, as `/logs` is asked for them. @throws CtlError */
async function containersMeant(asked: Asked, args: LogsArgs): Promise<{ pod: string; container: string; shown: string }[]> {
  if (args.pod === '' && (args.selector ?? '') === '')
    throw new CtlError(EXIT.usage, 'logs: say which pod, for example: actorctl logs web -f --tail 20 (actorctl logs --help)');
  if (args.pod !== '' && !args.allContainers) {
    const pod = named(args.pod, asked);
    return [{ pod, container: args.container, shown: args.container === '' ? args.pod : `${args.pod}/${args.container}` }];
  }
  const { pods } = (await asked.client.json('/pods', { full: '' })) as {
    pods: (PodSummary & { labels?: Readonly<Record<string, string>>; pod?: Pod })[];
  };
  const chosen = args.pod === '' ? pods.filter((p) => asked.chooses(p)) : pods.filter((p) => p.uid === uidOf(named(args.pod, asked), pods));
  if (chosen.length === 0) throw new CtlError(EXIT.no, 'no pod of this node has these labels.');
  const of = chosen.flatMap((p) => {
    const { containers = [], initContainers = [], ephemeralContainers = [] } = p.pod?.spec ?? {};
    const all = [...initContainers, ...containers, ...ephemeralContainers].map((c) => c.name);
    const wanted = args.allContainers ? all : args.container === '' ? containers.map((c) => c.name).slice(0, 1) : [args.container];
    return wanted.map((container) => ({ pod: p.uid, container, shown: `${p.name}/${container}` }));
  });
  if (args.follow && of.length > FOLLOWED_MAX)
    throw new CtlError(EXIT.usage, `these are ${of.length} containers; at most ${FOLLOWED_MAX} can be followed at once.`);
  return of;
}

/** The words of the embedded runtimes. */
const NO_TERMINAL = /with a terminal is not supported/;
function withoutTerminal({ stdin, pod, command }: ExecArgs): CtlError {
  const instead = `actorctl exec ${stdin ? '-i ' : ''}${pod} -- ${command.join(' ')}`;
  return new CtlError(EXIT.usage, `exec: the embedded runtime has no terminals; leave -t out: ${instead}`);
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
    const ask = { pod: named(args.pod, asked), container: args.container, ...flags, cmd: args.command };
    const answer = await asked.client.post('/exec', ask).catch((error: unknown) => {
      throw error instanceof CtlError && NO_TERMINAL.test(error.message) ? withoutTerminal(args) : error;
    });
    return runSpdy((answer as { url: string }).url, asked.io, flags).catch((error: unknown) => {
      throw (error instanceof CtlError ? notStarted(error.message, args.command[0] ?? '') : null) ?? error;
    });
  };
}
