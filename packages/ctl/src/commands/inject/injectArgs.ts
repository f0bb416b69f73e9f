/** The command line of `actorctl inject`; what it does is in inject.ts, loaded only when it is wanted. */

import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import type { Argv } from 'yargs';
import type { FaultEntry, InjectRequest } from './inject.ts';

interface Common {
  socket?: string | undefined;
  json: boolean;
}
type Run = (request: InjectRequest, args: Common) => Promise<void>;

const LIST = { type: 'string', array: true } as const;

/** Flags every lasting fault has. */
function lasting<T>(y: Argv<T>) {
  return y
    .option('probability', { type: 'number', describe: 'of each hit, from 0 to 1; default 1' })
    .option('times', { type: 'number', describe: 'hits after which it does nothing more' })
    .option('for', { type: 'string', describe: 'how long, e.g. 30s; default 10m' });
}
interface Lasting {
  probability: number | undefined;
  times: number | undefined;
  for: string | undefined;
}

/** Exactly one of them must be given. */
function oneOf(command: string, choices: Readonly<Record<string, unknown>>): string {
  const given = Object.keys(choices).filter((k) => choices[k] !== undefined && choices[k] !== false);
  const names = Object.keys(choices).map((k) => `--${k}`);
  if (given.length !== 1 || given[0] === undefined)
    throw new CtlError(
      EXIT.usage,
      `inject ${command}: say what shall happen with one of ${names.join(', ')} (actorctl inject ${command} --help)`,
    );
  return given[0];
}

/** Without what was not given. */
function fault(kind: string, fields: Readonly<Record<string, unknown>>, select: Readonly<Record<string, unknown>> = {}): FaultEntry {
  const kept = (o: Readonly<Record<string, unknown>>) =>
    Object.entries(o).filter(([, v]) => v !== undefined && !(Array.isArray(v) && v.length === 0));
  const chosen = kept(select);
  return { kind, ...Object.fromEntries(kept(fields)), ...(chosen.length === 0 ? {} : { select: Object.fromEntries(chosen) }) };
}
const common = (args: Lasting) => ({ probability: args.probability, times: args.times, for: args.for });

export function addInjectCommand<T extends Common>(y: Argv<T>, run: Run): Argv<T> {
  addScenario(y, run);
  addKill(y, run);
  addCri(y, run);
  addHints(y, run);
  addDisk(y, run);
  addRuntimeDown(y, run);
  addList(y, run);
  addStop(y, run);
  return y.epilogue(
    'Works only on a daemon started with --actorlet-fault-injection. docs/fault-injection.md has the language of scenarios.',
  );
}

function addScenario<T extends Common>(y: Argv<T>, run: Run): void {
  y.command(
    '$0',
    'a scenario from a file: -f FILE',
    (c) =>
      c
        .option('file', { alias: 'f', type: 'string', describe: 'scenario in YAML or JSON; - for stdin' })
        .example('$0 inject -f faults.yaml', 'the faults of a scenario file')
        .example('$0 inject kill pod web', 'one fault'),
    async (args) => {
      if (args.file === undefined || args.file === '')
        throw new CtlError(EXIT.usage, 'inject: give a scenario with -f FILE, or a command (actorctl inject --help)');
      await run({ do: 'file', file: args.file }, args);
    },
  );
}

function addKill<T extends Common>(y: Argv<T>, run: Run): void {
  y.command(
    'kill <target..>',
    'kills an actor: a path such as pods/workers/UID (or the start of the UID), or pod NAME',
    (c) =>
      c
        .positional('target', { type: 'string', array: true, demandOption: true })
        .example('$0 inject kill runtime/pleg', 'an actor')
        .example('$0 inject kill pod web', 'the worker of a pod'),
    (args) => run({ do: 'kill', target: args.target.map(String) }, args),
  );
}

function addCri<T extends Common>(y: Argv<T>, run: Run): void {
  y.command(
    'cri',
    'calls to the container runtime fail, hang or are late',
    (c) =>
      lasting(c)
        .option('method', { ...LIST, describe: 'e.g. StartContainer; default all' })
        .option('namespace', { ...LIST, describe: 'of the pod; patterns' })
        .option('pod', { ...LIST, describe: 'names of pods; patterns' })
        .option('container', { ...LIST, describe: 'names of containers; patterns' })
        .option('error', { type: 'string', describe: 'gRPC code, e.g. Unavailable' })
        .option('delay', { type: 'string', describe: 'the call waits so long, e.g. 2s' })
        .option('lost', { choices: ['without-effect', 'with-effect'] as const, describe: 'no answer before the deadline' })
        .option('late', { type: 'string', describe: 'no answer, and the effect comes so much later' })
        .example('$0 inject cri --method StartContainer --error Unavailable --times 3', 'three starts fail'),
    (args) => {
      const which = oneOf('cri', { error: args.error, delay: args.delay, lost: args.lost, late: args.late });
      const action = which === 'lost' ? `lost-${args.lost ?? ''}` : which === 'late' ? 'late-effect' : which;
      const select = { methods: args.method, namespaces: args.namespace, pods: args.pod, containers: args.container };
      const entry = fault('cri', { action, code: args.error, delay: args.delay ?? args.late, ...common(args) }, select);
      return run({ do: 'fault', name: `cri-${which}`, fault: entry }, args);
    },
  );
}

function addHints<T extends Common>(y: Argv<T>, run: Run): void {
  y.command(
    'hints',
    "the runtime's event stream loses, doubles, delays or reorders events, or breaks",
    (c) =>
      lasting(c)
        .option('event', { ...LIST, describe: 'created, started, stopped, deleted, oom, other; default all' })
        .option('drop', { type: 'boolean', describe: 'events are lost' })
        .option('duplicate', { type: 'boolean', describe: 'events come twice' })
        .option('reorder', { type: 'boolean', describe: 'the next event comes first' })
        .option('delay', { type: 'string', describe: 'events come so much later' })
        .option('cut', { type: 'boolean', describe: 'the stream breaks once' })
        .example('$0 inject hints --drop --for 1m', 'no event for a minute'),
    (args) => {
      const { drop, duplicate, reorder, delay, cut } = args;
      const action = oneOf('hints', { drop, duplicate, reorder, delay, cut });
      const entry =
        action === 'cut'
          ? fault('hints.cut', { for: args.for, times: args.times, probability: args.probability }, { hints: args.event })
          : fault('hints', { action, delay, ...common(args) }, { hints: args.event });
      return run({ do: 'fault', name: `hints-${action}`, fault: entry }, args);
    },
  );
}

function addDisk<T extends Common>(y: Argv<T>, run: Run): void {
  y.command(
    'disk',
    'operations on files fail or are slow',
    (c) =>
      lasting(c)
        .option('path', { ...LIST, describe: 'absolute paths; patterns such as /var/lib/kubelet/**; default all' })
        .option('op', { ...LIST, describe: 'read, write, rename, sync, mkdir, symlink, chmod, remove' })
        .option('full', { type: 'boolean', describe: 'writes fail with ENOSPC' })
        .option('error', { type: 'string', describe: 'EIO, ENOSPC, EROFS, EACCES, EXDEV or EMFILE' })
        .option('slow', { type: 'string', describe: 'each takes up to so much longer' })
        .example('$0 inject disk --full --for 30s', 'the disk is full'),
    (args) => {
      const { full, error, slow } = args;
      const which = oneOf('disk', { full, error, slow });
      const entry = fault(`disk.${which}`, { code: error, delay: slow, ...common(args) }, { paths: args.path, ops: args.op });
      return run({ do: 'fault', name: `disk-${which}`, fault: entry }, args);
    },
  );
}

function addRuntimeDown<T extends Common>(y: Argv<T>, run: Run): void {
  y.command(
    'runtime-down',
    'the container runtime seems to restart: calls are cut, then refused',
    (c) => c.option('for', { type: 'string', default: '10s', describe: 'how long' }).example('$0 inject runtime-down --for 1m', ''),
    (args) => run({ do: 'fault', name: 'runtime-down', fault: fault('runtime.down', { for: args.for }) }, args),
  );
}

function addList<T extends Common>(y: Argv<T>, run: Run): void {
  y.command(
    'list',
    'what is injected now',
    (c) => c.example('$0 inject list', ''),
    (args) => run({ do: 'list' }, args),
  );
}

function addStop<T extends Common>(y: Argv<T>, run: Run): void {
  y.command(
    'stop [id]',
    'heals one injection, or with --all everything',
    (c) =>
      c
        .positional('id', { type: 'string', describe: 'as in actorctl inject list' })
        .option('all', { type: 'boolean', default: false, describe: 'everything' })
        .example('$0 inject stop --all', 'everything is well again'),
    (args) => run({ do: 'stop', id: args.id, all: args.all }, args),
  );
}
