/** Commands that act on pods, as kubectl's users type them. */

import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import type { Argv } from 'yargs';
import type { Common, Runner } from '../../asked.ts';
import { kindOf } from '../show/kubectl.ts';
import type { DeleteArgs } from './delete.ts';
import type { RestartArgs } from './restart.ts';

const TIMEOUT_S = 600;

interface ActOptions extends Common {
  kind: string;
  names: string[];
  wait: boolean;
  timeout: number;
}
interface DeleteOptions extends ActOptions {
  kubeconfig: string;
  'grace-period': number | undefined;
}

/** The pods that a command acts on. @throws CtlError for what it cannot act on, or does not choose by. */
function actOn(args: ActOptions, { verb, done, elsewhere, labels }: Record<'verb' | 'done' | 'elsewhere' | 'labels', string>) {
  const wrong = (text: string): CtlError => new CtlError(EXIT.usage, `${verb}: ${text}`);
  const { kind, name: own } = kindOf(args.kind);
  if (kind !== 'pod') throw wrong(elsewhere.replace('KIND', kind));
  const names = own === '' ? args.names : [own, ...args.names];
  if (args.recording !== undefined) throw wrong(`a recording is the past, and its pods cannot be ${done}.`);
  if (args.selector !== undefined) throw wrong(`pods are named here; ${labels} chooses by labels.`);
  if (args.json || (args.output !== undefined && args.output !== 'name')) throw wrong('the only output format is -o name.');
  if (names.length === 0 || names.includes('')) throw wrong(`say which pod, for example: actorctl ${verb} pod web`);
  if (!(args.timeout >= 0)) throw wrong('--timeout is a number of seconds.');
  return { names, wait: args.wait, timeoutMs: args.timeout * 1000, wrong };
}

function restartArgs(args: ActOptions & { container: string }): RestartArgs {
  const { wrong, ...on } = actOn(args, {
    ...{ verb: 'restart', done: 'restarted', labels: 'kubectl rollout restart of their controller' },
    elsewhere: 'only pods can be restarted.',
  });
  return { ...on, container: args.container };
}

function deleteArgs(args: DeleteOptions): DeleteArgs {
  const { wrong, ...on } = actOn(args, {
    ...{ verb: 'delete', done: 'deleted', labels: 'kubectl delete pod -l' },
    elsewhere: 'only pods; kubectl deletes a KIND.',
  });
  const { 'grace-period': graceSeconds } = args;
  if (graceSeconds !== undefined && !(Number.isSafeInteger(graceSeconds) && graceSeconds >= 1))
    throw wrong('--grace-period is a whole number of seconds, at least 1; kubectl delete --force takes a pod away without waiting.');
  return { ...on, kubeconfig: args.kubeconfig, graceSeconds };
}

export function addActCommands<T extends Common>(y: Argv<T>, { run }: Pick<Runner, 'run'>): Argv<T> {
  const name = { type: 'string', default: '', describe: 'name, namespace/name or UID' } as const;
  return y
    .command(
      'delete <kind> [names..]',
      'deletes pods at the API server, with their grace; of a static pod, names its manifest',
      (c) =>
        c
          .positional('kind', { type: 'string', demandOption: true, describe: 'pod' })
          .positional('names', { ...name, array: true, default: [] as string[] })
          .option('kubeconfig', { type: 'string', default: '', describe: "default $KUBECONFIG, else the daemon's own" })
          .option('grace-period', { type: 'number', describe: "seconds, at least 1; default: the pod's own" })
          .option('wait', { type: 'boolean', default: true, describe: 'until the API server has it no longer; --no-wait: not' })
          .option('timeout', { type: 'number', default: TIMEOUT_S, describe: 'seconds to wait for all of them' })
          .example('$0 delete pod web -n shop', 'the same as: actorctl delete pod/web -n shop'),
      async (args) => {
        const asked = deleteArgs(args);
        const { deletePods } = await import('./delete.ts');
        await run(deletePods(asked))(args);
      },
    )
    .command(
      'restart <kind> [names..]',
      'ends the containers of pods, with their hooks and grace, and starts others in their place',
      (c) =>
        c
          .positional('kind', { type: 'string', demandOption: true, describe: 'pod' })
          .positional('names', { ...name, array: true, default: [] as string[] })
          .option('container', { alias: 'c', type: 'string', default: '', describe: 'only this one; default: all that may start again' })
          .option('wait', { type: 'boolean', default: true, describe: 'until they have started again; --no-wait: not' })
          .option('timeout', { type: 'number', default: TIMEOUT_S, describe: 'seconds to wait for all of them' })
          .example('$0 restart pod web -c app', 'only the container app of the pod web'),
      async (args) => {
        const asked = restartArgs(args);
        const { restartPods } = await import('./restart.ts');
        await run(restartPods(asked))(args);
      },
    );
}
