/** `actorlet fleet from`: a fleet file that is like a cluster. */
import { writeFile } from 'node:fs/promises';
import { createClock } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import { createKubeApi } from '@actorlet/kubelet/boot/dependencies/kube/kubeApi.ts';
import { readKubeConfig } from '@actorlet/kubelet/boot/dependencies/kube/kubeconfig.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import yargs from 'yargs';
import { wrongPlain } from '../../file.ts';
import { Twin, type TwinOptions } from '../../from/twin.ts';
import { counted } from '../../run/counted.ts';
import { UsageError } from '../args.ts';
import { quietLog, USER_AGENT } from '../world.ts';
import { readDumps } from './dumps.ts';
import { readCluster } from './live.ts';

export interface FromArgs extends TwinOptions {
  /** Files and folders; empty: the cluster of the kubeconfig. */
  dumps: readonly string[];
  kubeconfig: string;
  /** '': standard output. */
  out: string;
}

/** A person's kubectl asks as fast. */
const LIMITS = { kube: { qps: 50, burst: 100 }, event: { qps: 0, burst: 0 } };

/** Null: help was asked for and shown. @throws UsageError */
export async function parsedFrom(argv: readonly string[]): Promise<FromArgs | null> {
  let shown = false;
  const args = await parserOf(argv).parseAsync([...argv], {}, (_error, _args, output) => {
    if (output === '') return;
    shown = true;
    process.stdout.write(`${output}\n`);
  });
  if (shown) return null;
  const dumps = args._.map(String);
  const { name, seed, keepNames, out } = args;
  for (const [option, wrong] of Object.entries(wrongPlain({ name, prefix: name, nodes: 1, seed })))
    if (option !== 'prefix') throw new UsageError(`--${option} ${wrong}`);
  if (dumps.length > 0 && args.kubeconfig !== undefined) throw new UsageError('give dumps of a cluster, or --kubeconfig FILE');
  const kubeconfig = args.kubeconfig ?? process.env.KUBECONFIG ?? '';
  if (dumps.length === 0 && kubeconfig === '')
    throw new UsageError(
      '--kubeconfig FILE is missing, and KUBECONFIG is not set; or give files or folders that `kubectl get -o yaml` wrote',
    );
  return { dumps, kubeconfig, name, seed, keepNames, out };
}

function parserOf(argv: readonly string[]) {
  return yargs([...argv])
    .scriptName('actorlet fleet from')
    .usage(
      '$0 [DUMP...] [options]\n\nWrites a fleet file that is like a cluster: its nodes by shape, and what its pods do by image. ' +
        'DUMP is a file or a folder that `kubectl get nodes,pods -A -o yaml` or `-o json` wrote.',
    )
    .option('kubeconfig', { type: 'string', requiresArg: true, describe: 'Running cluster; default $KUBECONFIG, where no DUMP is given' })
    .option('keep-names', {
      type: 'boolean',
      default: false,
      describe: 'Keeps names of nodes, their ids at the provider, and registries of images',
    })
    .option('name', { type: 'string', requiresArg: true, default: 'twin', describe: 'Name of the fleet' })
    .option('seed', { type: 'number', requiresArg: true, default: 1, describe: 'Seed of the fleet' })
    .option('out', { type: 'string', requiresArg: true, default: '', describe: 'Writes to that file; default: to standard output' })
    .strictOptions()
    .version(false)
    .exitProcess(false)
    .fail((message, error) => {
      throw new UsageError(message ?? messageOf(error));
    });
}

/** @throws UsageError, Error that names the dump, the kubeconfig or the request. */
export async function runFrom(args: FromArgs, o: { say(text: string): void; signal: AbortSignal }): Promise<void> {
  const twin = await read(args, o.signal);
  o.signal.throwIfAborted();
  const { text, nodes, pods, groups, rules, notes } = twin.written();
  if (args.out === '') process.stdout.write(text);
  else
    await writeFile(args.out, text).catch((error: unknown) => {
      throw new Error(`${args.out} cannot be written: ${messageOf(error)}`);
    });
  for (const note of notes) o.say(`${note}\n`);
  o.say(`${counted(nodes, 'nodes')} in ${counted(groups, 'groups')}; ${counted(rules, 'rules')} from ${counted(pods, 'pods')}\n`);
}

async function read({ dumps, kubeconfig, ...options }: FromArgs, signal: AbortSignal): Promise<Twin> {
  const make = (): Twin => new Twin(options);
  if (dumps.length > 0) {
    const twin = make();
    await readDumps(dumps, twin, signal);
    return twin;
  }
  const config = await readKubeConfig(kubeconfig);
  const kube = createKubeApi({ config, clock: createClock(), log: quietLog, userAgent: USER_AGENT, env: process.env, ...LIMITS });
  return await readCluster(make, { kube, signal }).catch((error: unknown) => {
    throw new Error(`the API server ${kube.server} cannot be asked for its nodes and pods: ${messageOf(error)}`, { cause: error });
  });
}
