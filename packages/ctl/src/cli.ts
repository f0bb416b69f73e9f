/** actorctl's commands: what a person asks a running daemon. Gets its surroundings as an argument, so tests can run it. */

import { adminClient, CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { remoteFrom } from '@actorlet/admin/src/remote.ts';
import { FLEET_SOCKET, HOST_SOCKET, LOCAL_SOCKET, socketPathFrom } from '@actorlet/admin/src/socketPath.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { didYouMean } from '@actorlet/kubelet/machines/text/nearest.ts';
import { GIT_VERSION } from '@actorlet/kubelet/machines/version.ts';
import yargs, { type Argv } from 'yargs';
import type { Asked, Format, Runner } from './asked.ts';
import { addActCommands } from './commands/acts/acts.ts';
import { addPodCommands, addShowCommands } from './commands/show/shown.ts';
import { addToolCommands } from './commands/tools.ts';
import { inOwnWords } from './habits.ts';
import type { CtlIo } from './io.ts';
import { labelSelector } from './labelSelector.ts';

/** How the scripts of `actorctl completion` ask. */
const ASKS_WHAT_FOLLOWS = '--get-yargs-completions';

/** Runs one command and gives the exit code; never rejects. */
export async function runCtl(io: CtlIo): Promise<number> {
  let code: number = EXIT.ok;
  const runner: Runner = {
    io,
    setCode(given) {
      code = given;
    },
    run: (command) => async (args) => {
      const format = (args.json ? 'json' : (args.output ?? 'text')) as Format;
      const namespace = args['all-namespaces'] === true ? '' : (args.namespace ?? '');
      const fits = labelSelector(args.selector ?? '');
      const chooses: Asked['chooses'] = (pod) => (namespace === '' || pod.namespace === namespace) && fits(pod.labels ?? {});
      const asked = { format, namespace, chooses, headers: args.headers !== false };
      if (args.recording === undefined) {
        if (args.at !== undefined) throw new CtlError(EXIT.usage, '--at is a moment of a recording: give --recording FILE, too.');
        const { server, socket, node } = args;
        const at = remoteFrom({ server, socket, tokenFile: args['token-file'] }, io) ?? socketPathFrom(socket, io, node);
        code = await command({ io, client: adminClient(at, io.signal, node), ...asked });
        return;
      }
      if (args.selector !== undefined)
        throw new CtlError(EXIT.usage, 'a recording holds no labels, so --selector chooses nothing in it; -n chooses a namespace.');
      const { openRecording } = await import('./commands/recording/recording.ts');
      const { client, atMs, remarks } = await openRecording(args.recording, args.at ?? '');
      for (const remark of remarks) io.err(`${remark}\n`);
      code = await command({ io: { ...io, nowMs: () => atMs }, client, ...asked });
    },
  };
  try {
    if (io.argv[0] === ASKS_WHAT_FOLLOWS) {
      const { completions } = await import('./commands/complete.ts');
      // The word after the option is this program's name.
      const found = await completions(io.argv.slice(2), (flag) => socketPathFrom(flag, io));
      if (found !== null) {
        for (const name of found) io.out(`${name}\n`);
        return EXIT.ok;
      }
    }
    await parserOf(runner).parseAsync(io.argv.length === 0 ? ['--help'] : inOwnWords(io.argv), {}, (_error, _args, output) => {
      if (output !== '') io.out(`${output}\n`);
    });
  } catch (error) {
    if (!(error instanceof CtlError)) {
      io.err(`actorctl: ${messageOf(error)}\n`);
      return error instanceof Error && error.name === 'YError' ? EXIT.usage : EXIT.failed;
    }
    io.err(`actorctl: ${error.message}\n`);
    return error.exitCode;
  }
  return code;
}

function parserOf(runner: Runner) {
  const { io } = runner;
  const options = yargs([...io.argv])
    .scriptName('actorctl')
    // Our own words are English; a translated half would only confuse.
    .locale('en')
    .usage('$0 <command>\n\nAsks a running actorlet what it does and why. Many nodes on one machine: actorlet fleet --help.')
    .option('socket', {
      type: 'string',
      describe: `admin socket; default $ACTORLET_SOCKET, else ./${LOCAL_SOCKET} if it is there, else ${HOST_SOCKET}`,
    })
    .option('server', { type: 'string', describe: 'an observer at a forwarded port, http://127.0.0.1:10261; default $ACTORLET_SERVER' })
    .option('token-file', { type: 'string', describe: 'its token; default $ACTORLET_TOKEN_FILE' })
    .option('node', { type: 'string', describe: `node of a fleet; its default socket is ./${FLEET_SOCKET}` })
    .option('recording', { type: 'string', describe: 'ask a recording (--actorlet-record of the daemon) in place of a daemon' })
    .option('at', { type: 'string', describe: 'moment of the recording: a time, or how long before its end; default its end' })
    .option('output', {
      alias: 'o',
      choices: ['json', 'yaml', 'wide', 'name'] as const,
      describe: 'as data, text that is not cut, or names alone',
    })
    .option('headers', { type: 'boolean', default: true, describe: 'titles above the columns; --no-headers: none' })
    .option('json', { type: 'boolean', default: false, describe: 'the same as -o json' })
    .option('namespace', { alias: 'n', type: 'string', describe: 'only pods of this namespace' })
    .option('all-namespaces', { alias: 'A', type: 'boolean', default: false, describe: 'pods of every namespace, as without -n' })
    .option('selector', { alias: 'l', type: 'string', describe: 'only pods with these labels: app=web,!canary,zone in (a,b)' });
  const lists = () => new Set((options as unknown as { getOptions(): { array: readonly string[] } }).getOptions().array);
  const parser = addToolCommands(addPodCommands(addActCommands(addShowCommands(options, runner), runner), runner), runner);
  return parser
    .parserConfiguration({ 'populate--': true })
    .middleware((args) => lastSaid(args, lists()), true)
    .demandCommand(1, 'say what to do')
    .strict()
    .alias('help', 'h')
    .version(GIT_VERSION)
    .completion('completion-of-yargs', false)
    .wrap(io.columns > 0 ? Math.min(120, io.columns) : 100)
    .epilogue(
      'Exit codes: 0 yes, 1 no (not found, not healthy), 2 wrong usage, 3 no daemon, 4 no permission, 5 the daemon cannot answer now, 130 Ctrl-C.',
    )
    .exitProcess(false)
    .fail((message, error, y) => {
      // A handler's own error passes through; everything else is a matter of usage.
      throw error ?? new CtlError(EXIT.usage, lacking(message, y) ?? `${message}${meant(message, y, io.argv)} (actorctl --help)`);
    });
}

/** Of an option that is given twice the last one holds, as with kubectl. */
function lastSaid(args: Record<string, unknown>, lists: ReadonlySet<string>): void {
  for (const [name, value] of Object.entries(args))
    if (Array.isArray(value) && name !== '_' && name !== '--' && !lists.has(name)) args[name] = value.at(-1);
}

/** Which argument a command lacks, in place of yargs' count of arguments; null: it lacks none. */
function lacking(message: string, y: Argv): string | null {
  if (!message.startsWith('Not enough non-option arguments')) return null;
  const help = (y as unknown as { help(): string }).help();
  const [usage = '', name = ''] = /^actorctl (?:[\w-]+ )*[\w-]+ <(\w+)>.*$/m.exec(help) ?? [];
  if (name === '') return null;
  const example = /^Examples:\n\s*(actorctl .*?)(?: {2,}|$)/m.exec(help)?.[1] ?? usage;
  const command = usage.slice(0, usage.indexOf('<')).trim();
  return `${command.slice('actorctl '.length)}: say which ${name}, for example: ${example} (${command} --help)`;
}

/** Words of other tools, and what they are here. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  ...{ ps: 'pods', ls: 'pods', list: 'pods', containers: 'pods', status: 'healthz', health: 'healthz', log: 'logs', stats: 'top' },
  ...{ sh: 'exec', run: 'try', attach: 'exec', explain: 'why', history: 'timeline', state: 'tree', actors: 'tree', dashboard: 'ui' },
};

/** Which option, or command below the one that was found, was meant by a word that is not known. */
function meant(message: string, y: Argv, argv: readonly string[]): string {
  const unknown = /^Unknown (?:arguments?|commands?): ([^,\s]+)/.exec(message)?.[1];
  if (unknown === undefined) return '';
  // What yargs gives here is its usage, whatever its types say: it describes the options of the command that was found.
  const usage = y as unknown as { getDescriptions(): Readonly<Record<string, unknown>>; getCommands(): readonly (readonly unknown[])[] };
  const below = usage.getCommands().map(
    ([command]) =>
      String(command)
        .replace(/[[<].*/, '')
        .trim()
        .split(' ')
        .at(-1) ?? '',
  );
  const other = below.includes('pods') ? OTHER_WORDS[unknown.toLowerCase()] : undefined;
  if (other !== undefined) return ` (did you mean ${other}?)`;
  const command = didYouMean(unknown, below);
  if (command !== '') return command;
  // A word by itself is no option that was misspelt.
  if (argv.includes(unknown)) return argv.includes('exec') ? '; what is to run comes after --, as in: actorctl exec POD -- ls /' : '';
  const known = usage.getDescriptions();
  return didYouMean(
    unknown,
    Object.keys(known).filter((name) => name.length > 1),
    // `--no-header` is an option without its `no-`.
    argv.includes(`--no-${unknown}`) ? '--no-' : '--',
  );
}
