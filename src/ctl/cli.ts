/** actorctl's commands: what a person asks a running daemon. Gets its surroundings as an argument, so tests can run it. */
import { setTimeout as sleep } from 'node:timers/promises';
import yargs from 'yargs';
import type { LogFile } from '../machines/podLogs.ts';
import type { PodSummary } from '../machines/podSummary.ts';
import type { RecordedEvent } from '../machines/protocol.ts';
import type { ActorView } from '../machines/supervision/actorState.ts';
import { clockTime, shortDuration } from '../machines/text/duration.ts';
import { printable } from '../machines/text/table.ts';
import { renderTimeline, type TimelineData } from '../machines/text/timeline.ts';
import { renderTree } from '../machines/text/tree.ts';
import type { Explanation } from '../machines/why.ts';
import { type AdminClient, adminClient, CtlError, EXIT, refusal } from './client.ts';
import { CHART_FORMATS } from './commands/chartFormats.ts';
import { addInjectCommand } from './commands/injectArgs.ts';
import { runExec } from './exec.ts';
import type { CtlIo } from './io.ts';
import { printLogs } from './logs.ts';
import { paint, renderEvents, renderPods } from './render.ts';

/** Where `npm start` keeps the daemon's state. */
const LOCAL_SOCKET = '.actorlet/actorlet.sock';
/** The kubelet's default root directory. */
const HOST_SOCKET = '/var/lib/kubelet/actorlet.sock';

/** `--socket`, else ACTORLET_SOCKET, else the one of `npm start` in this directory, else the host's. */
export function socketPathFrom(flag: string | undefined, io: Pick<CtlIo, 'env' | 'exists'>): string {
  if (flag !== undefined && flag !== '') return flag;
  const fromEnv = io.env.ACTORLET_SOCKET;
  if (fromEnv !== undefined && fromEnv !== '') return fromEnv;
  return io.exists(LOCAL_SOCKET) ? LOCAL_SOCKET : HOST_SOCKET;
}

interface Common {
  socket?: string | undefined;
  json: boolean;
}

/** Runs one command and gives the exit code; never rejects. */
export async function runCtl(io: CtlIo): Promise<number> {
  let code: number = EXIT.ok;
  const run = (fn: (client: AdminClient, json: boolean) => Promise<number>) => async (args: Common) => {
    code = await fn(adminClient(socketPathFrom(args.socket, io), io.signal), args.json);
  };
  const parser = yargs([...io.argv])
    .scriptName('actorctl')
    // Our own words are English; a translated half would only confuse.
    .locale('en')
    .usage('$0 <command>\n\nAsks a running actorlet what it does and why.')
    .option('socket', {
      type: 'string',
      describe: `admin socket; default $ACTORLET_SOCKET, else ./${LOCAL_SOCKET} if it is there, else ${HOST_SOCKET}`,
    })
    .option('json', { type: 'boolean', default: false, describe: 'print the daemon’s answer as JSON' })
    .command(
      'tree',
      'the supervision tree: state, age, mailbox, restarts, reason; pods by their names',
      (y) => y.option('watch', { alias: 'w', type: 'boolean', default: false, describe: 'draw it again every second, until Ctrl-C' }),
      (args) => run(args.watch ? watching(io, tree(io)) : tree(io))(args),
    )
    .command('pods', 'the pods of this node', (y) => y, run(pods(io)))
    .command(
      'why <pod>',
      'why a pod is as it is',
      (y) => y.positional('pod', { type: 'string', demandOption: true, describe: 'name, namespace/name, UID or manifest file' }),
      (args) => run(why(io, args.pod))(args),
    )
    .command(
      'timeline <pod>',
      'what a pod went through and how long each part took',
      (y) => y.positional('pod', { type: 'string', demandOption: true, describe: 'name, namespace/name or UID' }),
      (args) => run(timeline(io, args.pod))(args),
    )
    .command(
      'events [pod]',
      'recent events of a pod, or of all',
      (y) => y.positional('pod', { type: 'string', describe: 'name, namespace/name or UID' }),
      (args) => run(events(io, args.pod))(args),
    )
    .command(
      'healthz',
      'every actor, and whether it is well; 1 when one is down, or the runtime or the API server does not answer',
      (y) => y,
      run(healthz(io)),
    )
    .command(
      'recorder [path]',
      'the flight recorder: what happened last, of one actor or of all',
      (y) =>
        y
          .positional('path', { type: 'string', describe: 'actor path, e.g. node/pods' })
          .option('limit', { type: 'number', default: 200, describe: 'newest entries' }),
      (args) => run(recorder(io, { path: args.path, limit: args.limit }))(args),
    )
    .command(
      'logs <pod>',
      'what a container wrote',
      (y) =>
        y
          .positional('pod', { type: 'string', demandOption: true, describe: 'name, namespace/name or UID' })
          .option('container', { alias: 'c', type: 'string', default: '', describe: 'needed when the pod has several' })
          .option('follow', { alias: 'f', type: 'boolean', default: false, describe: 'go on printing, across restarts' })
          .option('previous', { alias: 'p', type: 'boolean', default: false, describe: 'the run before the present one' })
          .option('tail', { type: 'number', describe: 'only the last so many lines' })
          .option('timestamps', { type: 'boolean', default: false, describe: 'the time of each line' }),
      (args) => run(logs(io, args))(args),
    )
    .command(
      'exec <pod>',
      'runs a command in a container: exec POD -- COMMAND ARG...',
      (y) =>
        y
          .positional('pod', { type: 'string', demandOption: true, describe: 'name, namespace/name or UID' })
          .option('container', { alias: 'c', type: 'string', default: '', describe: 'needed when the pod has several' })
          .option('stdin', { alias: 'i', type: 'boolean', default: false, describe: 'pass stdin on' }),
      (args) => run(exec(io, { ...args, command: (args as { '--'?: (string | number)[] })['--']?.map(String) ?? [] }))(args),
    )
    .command(
      'ui',
      'where the inspection page is, with the right to act on it',
      (y) => y.option('open', { type: 'boolean', default: false, describe: 'open it in a browser of this desktop' }),
      async (args) => {
        const { runUi } = await import('./commands/inspect.ts');
        await run((client, json) => runUi(io, client, { json, open: args.open }))(args);
      },
    )
    .command(
      'chart <actor>',
      "the statechart of an actor's machine, for other tools",
      (y) =>
        y
          .positional('actor', { type: 'string', demandOption: true, describe: 'actor path, e.g. pods/podManager' })
          .option('format', {
            choices: CHART_FORMATS,
            default: 'mermaid' as const,
            describe: "stately: a configuration that Stately's editor imports",
          })
          .example('$0 chart pods/podManager', 'a Mermaid diagram')
          .example('$0 chart runtime/cri --format stately > cri.ts', "for Stately's editor"),
      async (args) => {
        const { runChart } = await import('./commands/inspect.ts');
        await run((client) => runChart(io, client, { actor: args.actor, format: args.format }))(args);
      },
    )
    .command('inject', 'causes faults on a node that was started with --actorlet-fault-injection', (y) =>
      addInjectCommand(y, async (request, args) => {
        const { runInject } = await import('./commands/inject.ts');
        await run((client, json) => runInject(io, client, { request, json }))(args);
      }),
    )
    .command(
      'sim',
      'simulates whole nodes under faults; needs no daemon',
      (y) =>
        y
          .option('seed', { type: 'number', describe: 'first seed; default: a fresh one, printed' })
          .option('seeds', { type: 'number', default: 1, describe: 'how many seeds, counting up' })
          .option('minutes', { type: 'number', describe: "virtual minutes of faults a run; default: the scenario's, or 2" })
          .option('pods', { type: 'number', describe: "pods drawn per node; default: the scenario's, or 8" })
          .option('nodes', { type: 'number', describe: "nodes in one world; default: the scenario's, or 1, in some seeds 2" })
          .option('scenario', { type: 'string', describe: 'file with the faults, in place of drawn ones' })
          .option('jobs', { type: 'number', default: 1, describe: 'processes' })
          .option('shrink', { type: 'number', default: 80, describe: 'runs spent on making a failing schedule small' })
          .option('tail', { type: 'number', default: 40, describe: 'last lines of trace, log and recorder in a report' })
          .option('edges', {
            type: 'boolean',
            default: false,
            describe: 'count the edges of every statechart, and name those never taken; slower',
          })
          .option('lines', { type: 'boolean', default: false, hidden: true }),
      async (args) => {
        // Loaded only here: the other commands need nothing of a node.
        const { runSimCommand } = await import('./commands/sim.ts');
        code = await runSimCommand(io, {
          ...args,
          seed: args.seed,
          minutes: args.minutes,
          pods: args.pods,
          nodes: args.nodes,
          scenario: args.scenario,
        });
      },
    )
    .command(
      'try',
      'runs manifests on a throw-away node and checks what becomes of them; needs no daemon',
      (y) =>
        y
          .option('file', { alias: 'f', type: 'string', array: true, default: [], describe: 'manifests: files or folders' })
          .option('expect', { alias: 'e', type: 'string', array: true, default: [], describe: 'what must come true; see below' })
          .option('inject', { type: 'string', describe: 'fault scenario, begun once every pod is ready or has succeeded' })
          .option('settle', { type: 'string', default: '60s', describe: 'how long that may take; 0s: inject at once' })
          .option('runtime', { type: 'string', default: 'process', describe: 'process, hollow or containerd' })
          .option('endpoint', { type: 'string', describe: 'socket of a containerd that holds no pods' })
          .option('keep', { type: 'boolean', default: false, describe: 'leave logs and configuration, and say where' })
          .epilogue(
            'Expectations: [POD] CONDITION [within TIME | for TIME]. CONDITION: phase=NAME[|NAME], ready, unready, gone, restarts=N (also >= <= > <), exit=CODE, reason=WORD, log~REGEXP. Without a pod: all of them. Without a time: within 30s; phase and restarts (but > and >=) must then also hold until the 30s are over. Times count from the beginning of the faults, else of the pods.\nExit codes: 0 all held, 1 one did not, 2 it could not be tried.',
          ),
      async (args) => {
        const { runTry } = await import('./commands/try.ts');
        code = await runTry(io, args);
      },
    )
    .parserConfiguration({ 'populate--': true })
    .demandCommand(1, 'say what to do')
    .recommendCommands()
    .strict()
    .version(false)
    .wrap(io.columns > 0 ? Math.min(120, io.columns) : 100)
    .epilogue(
      'Exit codes: 0 yes, 1 no (not found, not healthy), 2 wrong usage, 3 no daemon, 4 no permission, 5 the daemon cannot answer now.',
    )
    .exitProcess(false)
    .fail((message, error) => {
      // A handler's own error passes through; everything else is a matter of usage.
      throw error ?? new CtlError(EXIT.usage, `${message} (actorctl --help)`);
    });
  try {
    await parser.parseAsync([...io.argv], {}, (_error, _args, output) => {
      if (output !== '') io.out(`${output}\n`);
    });
  } catch (error) {
    if (!(error instanceof CtlError)) {
      io.err(`actorctl: ${error instanceof Error ? error.message : String(error)}\n`);
      return error instanceof Error && error.name === 'YError' ? EXIT.usage : EXIT.failed;
    }
    io.err(`actorctl: ${error.message}\n`);
    return error.exitCode;
  }
  return code;
}

type Command = (client: AdminClient, json: boolean) => Promise<number>;

function print(io: CtlIo, lines: readonly string[]): void {
  const colour = io.columns > 0 && (io.env.NO_COLOR ?? '') === '';
  io.out(
    paint(lines, colour)
      .map((l) => `${l}\n`)
      .join(''),
  );
}
function printJson(io: CtlIo, value: unknown): void {
  io.out(`${JSON.stringify(value, null, 2)}\n`);
}

function tree(io: CtlIo): Command {
  return async (client, json) => {
    const state = (await client.json('/statez')) as ActorView;
    if (json) printJson(io, state);
    else print(io, renderTree(state, { widthMax: io.columns, podNames: await podNames(client) }));
    return EXIT.ok;
  };
}

/** By UID; empty while the daemon has no list of pods. */
async function podNames(client: AdminClient): Promise<ReadonlyMap<string, string>> {
  const answer = await client.get('/pods');
  if (answer.status !== 200) return new Map();
  const { pods: list } = JSON.parse(answer.body) as { pods: readonly PodSummary[] };
  return new Map(list.map((p) => [p.uid, p.name]));
}

const WATCH_EVERY_MS = 1_000;
const CLEAR_SCREEN = '\u001b[H\u001b[2J';

/** Runs a command again and again until Ctrl-C, on a terminal in the same place. */
function watching(io: CtlIo, command: Command): Command {
  return async (client, json) => {
    while (!io.signal.aborted) {
      if (io.columns > 0) io.out(CLEAR_SCREEN);
      const code = await command(client, json);
      if (code !== EXIT.ok) return code;
      await sleep(WATCH_EVERY_MS, undefined, { signal: io.signal }).catch(() => undefined);
    }
    return EXIT.ok;
  };
}

function pods(io: CtlIo): Command {
  return async (client, json) => {
    const answer = (await client.json('/pods')) as { stale: string; sourcesReady: boolean; pods: PodSummary[] };
    if (json) printJson(io, answer);
    else {
      print(io, renderPods(answer.pods, { widthMax: io.columns }));
      if (answer.stale !== '') io.err(`This list may be old: ${printable(answer.stale)}.\n`);
      if (!answer.sourcesReady) io.err('Not every configured source has reported yet; more pods may come.\n');
    }
    return EXIT.ok;
  };
}

function why(io: CtlIo, pod: string): Command {
  return async (client, json) => {
    const answer = (await client.json('/why', { pod })) as Explanation;
    if (json) printJson(io, answer);
    else print(io, answer.lines);
    return answer.found ? EXIT.ok : EXIT.no;
  };
}

function timeline(io: CtlIo, pod: string): Command {
  return async (client, json) => {
    const answer = (await client.json('/timeline', { pod })) as TimelineData;
    if (json) printJson(io, answer);
    else print(io, renderTimeline(answer, { nowMs: io.nowMs(), widthMax: io.columns }));
    return EXIT.ok;
  };
}

function events(io: CtlIo, pod: string | undefined): Command {
  return async (client, json) => {
    const answer = (await client.json('/events', pod === undefined ? {} : { pod })) as { events: RecordedEvent[]; sinceMs?: number };
    if (json) printJson(io, answer.events);
    else {
      print(io, renderEvents(answer.events, io.nowMs(), { widthMax: io.columns }));
      const { sinceMs } = answer;
      if (sinceMs !== undefined)
        io.err(`Kept since this daemon started, ${shortDuration(io.nowMs() - sinceMs)} ago at ${clockTime(sinceMs)}.\n`);
    }
    return EXIT.ok;
  };
}

function healthz(io: CtlIo): Command {
  return async (client, json) => {
    const answer = await client.get('/healthz', { verbose: '' });
    if (answer.status !== 200 && answer.status !== 500) throw refusal(answer);
    const lines = answer.body.trimEnd().split('\n').map(printable);
    if (json) printJson(io, { healthy: answer.status === 200, lines });
    else print(io, lines);
    return answer.status === 200 ? EXIT.ok : EXIT.no;
  };
}

function recorder(io: CtlIo, o: { path: string | undefined; limit: number }): Command {
  return async (client, json) => {
    const answer = await client.get('/recorder', { limit: String(o.limit), ...(o.path === undefined ? {} : { path: o.path }) });
    if (answer.status !== 200) throw refusal(answer);
    const lines = answer.body === '' ? [] : answer.body.trimEnd().split('\n').map(printable);
    if (lines.length === 0) io.err(`Nothing was recorded${o.path === undefined ? '' : ` of ${printable(o.path)}`} yet.\n`);
    if (json) printJson(io, lines);
    else print(io, lines);
    return EXIT.ok;
  };
}

interface LogsArgs {
  pod: string;
  container: string;
  follow: boolean;
  previous: boolean;
  tail: number | undefined;
  timestamps: boolean;
}
function logs(io: CtlIo, args: LogsArgs): Command {
  return async (client, json) => {
    if (args.tail !== undefined && !(Number.isInteger(args.tail) && args.tail >= 0)) {
      throw new CtlError(EXIT.usage, '--tail takes a whole number of lines, 0 or more.');
    }
    const query = { pod: args.pod, container: args.container, ...(args.previous ? { previous: '' } : {}) };
    const locate = async () => (await client.json('/logs', query)) as Extract<LogFile, { ok: true }>;
    if (json) {
      printJson(io, await locate());
      return EXIT.ok;
    }
    await printLogs(locate, io.out, { tail: args.tail, follow: args.follow, timestamps: args.timestamps, signal: io.signal });
    return EXIT.ok;
  };
}

interface ExecArgs {
  pod: string;
  container: string;
  stdin: boolean;
  command: readonly string[];
}
function exec(io: CtlIo, args: ExecArgs): Command {
  return async (client) => {
    if (args.command.length === 0)
      throw new CtlError(EXIT.usage, 'exec: say what to run after --, e.g. actorctl exec web -- sh -c "echo hi".');
    const answer = await client.post('/exec', { pod: args.pod, container: args.container, stdin: args.stdin, cmd: args.command });
    return runExec((answer as { url: string }).url, io, { stdin: args.stdin });
  };
}
