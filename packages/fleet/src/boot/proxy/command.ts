/** `actorlet fleet proxy`: faults for clients of any API server, without nodes. */
import { resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createLogger } from '@actorlet/kubelet/boot/logging.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { onTerminal } from '@actorlet/kubelet/machines/text/oneLine.ts';
import yargs from 'yargs';
import { programOf } from '../../proxy/request.ts';
import type { ApiHit } from '../../proxy/trouble.ts';
import { shownFault } from '../../proxy/words.ts';
import { UsageError } from '../args.ts';
import { faultsIn } from '../inputs.ts';
import { surroundingsOf } from '../surroundings.ts';

const PORT_MAX = 65_535;
const WRITTEN = '.actorlet/proxy.kubeconfig';

interface ProxyArgs {
  file: string | undefined;
  kubeconfig: string;
  port: number;
  write: string;
}

/** Gives the exit code. @throws Error, UsageError */
export async function runProxy(argv: readonly string[]): Promise<number> {
  const args = await parsed(argv);
  if (args === null) return 0;
  const spec = args.file === undefined ? null : faultsIn(args.file);
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort());
  const say = (text: string): void => void process.stderr.write(onTerminal(text));
  let fromMs = 0;
  const around = await surroundingsOf({
    ...{ api: 'cluster', kubeconfig: args.kubeconfig, ownKubeconfig: args.write, port: 0, address: '', socket: '' },
    ...{ asNodes: false, shareWatches: false, bootstrapKubeconfig: '', plane: { data: '', port: 0 } },
    ...{ proxied: true, proxyPort: args.port, seed: spec?.seed ?? 1, signal: interrupted.signal, say },
    log: createLogger({ format: 'text', verbosity: 0, pid: process.pid }, { write: say }),
    onHit: (hit) => say(`${hitLine({ ...hit, atMs: hit.atMs - fromMs })}\n`),
  });
  try {
    await around.announce();
    const { proxy, world } = around;
    fromMs = world.clock.monoMs();
    for (const step of spec?.steps ?? []) {
      if (!('api' in step)) continue;
      await wait(Math.max(0, step.atMs - (world.clock.monoMs() - fromMs)), undefined, { signal: interrupted.signal }).catch(() => {});
      if (interrupted.signal.aborted) break;
      say(`inject ${step.name}: ${shownFault(step.api)}\n`);
      proxy?.inject(step.name, step.api).catch((error: unknown) => say(`${step.name} cannot be injected: ${messageOf(error)}\n`));
    }
    while (!interrupted.signal.aborted) await wait(60_000, undefined, { signal: interrupted.signal }).catch(() => {});
    return 0;
  } finally {
    await around.close();
  }
}

function hitLine({ atMs, fault, userAgent, request, did }: ApiHit): string {
  return `${(atMs / 1_000).toFixed(1)} s: ${fault === '' ? '' : `${fault}: `}${programOf(userAgent)}: ${request}: ${did}`;
}

/** Null: help was asked for and shown. */
async function parsed(argv: readonly string[]): Promise<ProxyArgs | null> {
  let shown = false;
  const args = await yargs([...argv])
    .scriptName('actorlet fleet proxy')
    .usage('$0 [FILE] [options]\n\nStands in front of an API server. Clients that take its kubeconfig meet the faults of FILE.')
    .option('kubeconfig', { type: 'string', default: process.env.KUBECONFIG ?? '', describe: 'Of the API server; default $KUBECONFIG' })
    .option('port', { type: 'number', default: 0, describe: 'Port on 127.0.0.1; 0: a free one' })
    .option('write', { type: 'string', default: WRITTEN, describe: 'Where the kubeconfig for clients is written. It goes with the proxy' })
    .strictOptions()
    .version(false)
    .exitProcess(false)
    .fail((message, error) => {
      throw new UsageError(message ?? messageOf(error));
    })
    .parseAsync([...argv], {}, (_error, _args, output) => {
      if (output === '') return;
      shown = true;
      process.stdout.write(`${output}\n`);
    });
  if (shown) return null;
  const [file, more] = args._.map(String);
  if (more !== undefined) throw new UsageError(`one FILE at most; ${more} is another one`);
  if (args.kubeconfig === '') throw new UsageError('--kubeconfig FILE is missing, and KUBECONFIG is not set');
  if (resolve(args.kubeconfig) === resolve(args.write))
    throw new UsageError('--write: is the kubeconfig of the API server; give another file');
  if (!Number.isInteger(args.port) || args.port < 0 || args.port > PORT_MAX)
    throw new UsageError(`--port must be a whole number from 0 to ${PORT_MAX}, is ${args.port}`);
  return { file, kubeconfig: args.kubeconfig, port: args.port, write: args.write };
}
