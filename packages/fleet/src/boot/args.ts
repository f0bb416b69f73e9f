/** Options of `actorlet fleet`. */

import { fstatSync } from 'node:fs';
import { FLEET_SOCKET } from '@actorlet/admin/src/socketPath.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { didYouMean } from '@actorlet/kubelet/machines/text/nearest.ts';
import yargs from 'yargs';
import { wrongPlain } from '../file.ts';
import { PROGRAMS, type ProgramName } from '../plane/messages.ts';
import type { Shard } from '../types.ts';

export class UsageError extends Error {}

export interface Args {
  file: string | undefined;
  nodes: number | undefined;
  api: 'cluster' | 'embedded' | 'local';
  kubeconfig: string;
  name: string;
  prefix: string;
  seed: number;
  /** Of the nodes; undefined: a free one. */
  port: number | undefined;
  address: string;
  asNodes: boolean;
  bootstrapKubeconfig: string;
  shareWatches: boolean;
  shard: Shard;
  socket: string;
  page: number;
  /** File that the report of the run is written to, as one page; '': none. */
  report: string;
  cleanup: boolean;
  json: boolean;
  /** Clients reach the API server through a proxy, also where the file has no faults for them. */
  proxy: boolean;
  /** The faults of so many seeds, one run after the other; 0: one run with those of the file's own. */
  seeds: number;
  /** The command behind `--`: it runs for as long as the fleet, with the kubeconfig for clients. */
  controller: readonly string[];
  /** Of a local control plane. */
  plane: { data: string; port: number; flags: Partial<Record<ProgramName, readonly string[]>> };
  /** A descriptor that hears when the fleet is ready; undefined: none. */
  readyFd: number | undefined;
}

/** `actorctl fleet run FILE` reads well, and means the same as without it. */
const RUN = 'run';
/** Of equal nodes. */
const PLAIN = { name: 'fleet', prefix: 'fleet', seed: 1 } as const;
const PORT = 20_250;
const PORT_MAX = 65_535;
const SEEDS_MAX = 100_000;

/** Null: help was asked for and shown. @throws UsageError */
export async function parsed(all: readonly string[]): Promise<Args | null> {
  let shown = false;
  const at = all.indexOf('--');
  const argv = at === -1 ? all : all.slice(0, at);
  const controller = at === -1 ? [] : all.slice(at + 1);
  if (at !== -1 && controller.length === 0) throw new UsageError('behind -- stands the command of the controller under test');
  const args = await parserOf(argv).parseAsync([...argv], {}, (_error, _args, output) => {
    if (output === '') return;
    shown = true;
    process.stdout.write(`${output}\n`);
  });
  if (shown) return null;
  const [file, more] = args._.map(String).slice(args._[0] === RUN ? 1 : 0);
  if (more !== undefined) throw new UsageError(`one FILE at most; ${more} is another one`);
  const { _: _words, $0: _command, data, apiPort, apiFlag, shard, readyFd, nodes, ...options } = args;
  const { name = PLAIN.name, prefix = PLAIN.prefix, seed = PLAIN.seed } = options;
  if ((file === undefined) === (nodes === undefined)) throw new UsageError('give a FILE or --nodes N (see --help)');
  for (const [option, wrong] of Object.entries(nodes === undefined ? {} : wrongPlain({ name, prefix, nodes, seed })))
    throw new UsageError(`--${option} ${wrong}`);
  const given = nodes === undefined ? (['name', 'prefix', 'seed'] as const).filter((option) => args[option] !== undefined) : [];
  if (given.length > 0) throw new UsageError(`--${given.join(', --')}: a fleet file says that itself`);
  inRange('--port', args.port ?? 0, { min: 0, max: PORT_MAX });
  inRange('--api-port', apiPort, { min: 0, max: PORT_MAX });
  checkApi(args);
  checkSeeds({ ...args, file });
  inRange('--page', options.page, { min: 0, max: PORT_MAX });
  if (readyFd !== undefined) isOpen(readyFd);
  // Fleets with control planes of their own stand side by side.
  const port = options.port ?? (options.api === 'local' ? undefined : PORT);
  const plane = { data, port: apiPort, flags: flagsOf(apiFlag) };
  return { ...options, file, nodes, name, prefix, seed, port, shard: shardOf(shard), controller, plane, readyFd };
}

function parserOf(argv: readonly string[]) {
  return yargs([...argv])
    .scriptName('actorlet fleet')
    .usage(
      '$0 [run] [FILE] [options] [-- CONTROLLER ...]\n\nRuns many nodes in one process: each a whole node agent on a runtime without containers.\nFaults for a controller without nodes: $0 proxy --help',
    )
    .option('nodes', { type: 'number', describe: 'So many equal nodes, without a FILE' })
    .option('kubeconfig', {
      type: 'string',
      default: process.env.KUBECONFIG ?? '',
      describe: 'Cluster that the nodes join; default $KUBECONFIG',
    })
    .option('api', {
      choices: ['cluster', 'embedded', 'local'] as const,
      default: 'cluster' as const,
      describe: 'embedded: an API server of this process, for a first look. local: a real control plane, from KUBEBUILDER_ASSETS',
    })
    .option('data', { type: 'string', default: '', describe: 'Folder of --api local, which is gone on with; default: a temporary one' })
    .option('api-port', { type: 'number', default: 0, describe: 'Port of the API server of --api local; 0: a free one' })
    .option('api-flag', {
      type: 'string',
      array: true,
      requiresArg: true,
      nargs: 1,
      default: [] as string[],
      describe: 'PROGRAM:FLAG for a program of --api local: kube-apiserver:--feature-gates=X=true',
    })
    .option('name', { type: 'string', describe: `Name of the fleet: a label of its nodes; default ${PLAIN.name}. A FILE has its own` })
    .option('prefix', { type: 'string', describe: `What names of nodes begin with; default ${PLAIN.prefix}. A FILE has its own` })
    .option('seed', { type: 'number', describe: `Draws delays and shares; default ${PLAIN.seed}. A FILE has its own` })
    .option('port', { type: 'number', describe: `Port of the APIs of all nodes; 0: none; default ${PORT}` })
    .option('address', { type: 'string', default: '', describe: 'At which the API server reaches that port; default: of this machine' })
    .option('as-nodes', { type: 'boolean', default: false, describe: 'Each node asks in its own name (the kubeconfig may impersonate)' })
    .option('bootstrap-kubeconfig', {
      type: 'string',
      default: '',
      describe: 'Each node asks with it for a client certificate of its own',
    })
    .option('share-watches', {
      type: 'boolean',
      default: false,
      describe: 'One watch of each kind for all nodes: less load than real nodes',
    })
    .option('shard', { type: 'string', default: '0/1', describe: 'I/N: of N processes the one with index I, which counts from 0' })
    .option('socket', { type: 'string', default: FLEET_SOCKET, describe: "Where actorctl --node NAME asks; '' for nowhere" })
    .option('page', { type: 'number', default: 0, describe: 'Port of the overview page on loopback; 0: none' })
    .option('report', { type: 'string', default: '', describe: 'File for a report of the run, as one page' })
    .option('cleanup', { type: 'boolean', default: false, describe: 'Removes the nodes from the API at the end' })
    .option('json', { type: 'boolean', default: false, describe: 'Prints a report as JSON at the end' })
    .option('proxy', {
      type: 'boolean',
      default: false,
      describe: 'Clients reach the API server through a proxy; a FILE with faults for them has it',
    })
    .option('seeds', {
      type: 'number',
      default: 0,
      describe: 'A run for each of so many seeds, from that of the FILE on; the first that breaks is shrunk',
    })
    .option('ready-fd', { type: 'number', describe: 'A line of JSON goes to this descriptor when pods can be created on all nodes' })
    .parserConfiguration({ 'strip-dashed': true })
    .strictOptions()
    .version(false)
    .exitProcess(false)
    .fail((message, error, y) => {
      const unknown = /^Unknown arguments?: ([^,\s]+)/.exec(message ?? '')?.[1];
      // What yargs gives here is its usage, whatever its types say.
      const known = Object.keys((y as unknown as { getDescriptions(): object }).getDescriptions());
      throw new UsageError(`${message ?? messageOf(error)}${unknown === undefined ? '' : didYouMean(unknown, known, '--')}`);
    });
}

interface ApiOptions extends Pick<Args, 'api' | 'kubeconfig' | 'address' | 'asNodes' | 'bootstrapKubeconfig' | 'shareWatches'> {
  port?: number | undefined;
  data: string;
  apiPort: number;
  apiFlag: readonly string[];
}

function checkApi(o: ApiOptions): void {
  if (o.api === 'embedded' && ((o.port ?? 0) !== 0 || o.address !== ''))
    throw new UsageError('--port and --address: with --api embedded nodes have no port, since that API server asks no nodes');
  if (o.api === 'embedded' && (o.asNodes || o.bootstrapKubeconfig !== '' || o.shareWatches))
    throw new UsageError('--as-nodes, --bootstrap-kubeconfig and --share-watches: with --api embedded they have no effect');
  if (o.api !== 'local' && (o.data !== '' || o.apiPort !== 0 || o.apiFlag.length > 0))
    throw new UsageError('--data, --api-port and --api-flag: they belong to --api local');
  if (o.api === 'local' && o.bootstrapKubeconfig !== '')
    throw new UsageError('--bootstrap-kubeconfig: it is of a cluster, and --api local makes a new one');
  if (o.api === 'cluster' && o.kubeconfig === '')
    throw new UsageError('--kubeconfig FILE is missing, and KUBECONFIG is not set; without a cluster take --api local or --api embedded');
  if (o.asNodes && o.bootstrapKubeconfig !== '')
    throw new UsageError('--as-nodes and --bootstrap-kubeconfig: choose how nodes show who they are');
}

function checkSeeds({
  seeds,
  file,
  ...o
}: Pick<Args, 'seeds' | 'file' | 'api' | 'page' | 'report'> & { data: string; readyFd?: number | undefined }): void {
  inRange('--seeds', seeds, { min: 0, max: SEEDS_MAX });
  if (seeds === 0) return;
  if (file === undefined) throw new UsageError('--seeds: needs a FILE with trouble and with what is expected');
  if (o.api === 'cluster') throw new UsageError('--seeds: each seed begins on a new API server; take --api local or --api embedded');
  if (o.data !== '') throw new UsageError('--data: each of --seeds begins on a new API server');
  if (o.page !== 0 || o.report !== '' || o.readyFd !== undefined)
    throw new UsageError('--page, --report and --ready-fd: with --seeds there are many runs');
}

/** By program. */
function flagsOf(given: readonly string[]): Args['plane']['flags'] {
  const flags: Partial<Record<ProgramName, string[]>> = {};
  for (const text of given) {
    const [, program, flag] = /^([a-z-]+):(--[a-z].*)$/s.exec(text) ?? [];
    const name = PROGRAMS.find((of) => of === program);
    if (name === undefined || flag === undefined)
      throw new UsageError(`--api-flag must be PROGRAM:--FLAG=VALUE with a PROGRAM of ${PROGRAMS.join(', ')}; is ${JSON.stringify(text)}`);
    flags[name] = [...(flags[name] ?? []), flag];
  }
  return flags;
}

function isOpen(fd: number): void {
  try {
    if (!Number.isInteger(fd) || fd < 1) throw new Error('it must be a whole number from 1');
    fstatSync(fd);
  } catch (error) {
    throw new UsageError(`--ready-fd ${fd}: this process was given no such descriptor (${messageOf(error)})`);
  }
}

function inRange(option: string, value: number, { min, max }: { min: number; max: number }): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  throw new UsageError(`${option} must be a whole number from ${min} to ${max}, is ${value}`);
}

function shardOf(text: string): Shard {
  const [, index, count] = (/^(\d{1,5})\/(\d{1,5})$/.exec(text) ?? []).map(Number);
  if (index !== undefined && count !== undefined && index < count) return { index, count };
  throw new UsageError(`--shard must be I/N with I from 0 to N-1, is ${JSON.stringify(text)}`);
}
