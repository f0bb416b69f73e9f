/** /checkpoint: the runtime writes what a running container is to an archive on this node (boot-and-node 8.11). */

import type { PodRecord } from '../../../machines/pods/manager/messages.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import { CriError, type Ports } from '../../../ports/ports.ts';
import { rpcError } from '../../../ports/sockets/csi.ts';
import type { HttpReply, HttpRequest } from '../../../ports/sockets/net.ts';
import type { CriClient } from '../../runtime/client.ts';
import { json, METHOD_NOT_ALLOWED, NOT_FOUND, text } from '../answers/answers.ts';
import { type Found, hasContainer, runningContainer } from './pods.ts';

/** The archive holds the memory of the container, secrets with it. */
const DIR_MODE = 0o700;

export interface CheckpointPage {
  ports: Pick<Ports, 'fs' | 'clock' | 'log'>;
  cri: CriClient;
  rootDir: string;
  /** The least that the runtime gets. */
  runtimeRequestTimeoutMs: number;
  find(name: { namespace: string; pod: string; uid: string }): Found<PodRecord>;
}

/** `parts`: namespace, pod, container. Query `timeout`: seconds that the runtime has. */
export async function checkpoint(o: CheckpointPage, req: HttpRequest, parts: readonly string[]): Promise<HttpReply> {
  const [namespace, pod, container, ...more] = parts;
  if (namespace === undefined || pod === undefined || container === undefined || more.length > 0) return NOT_FOUND;
  if (req.method !== 'POST') return METHOD_NOT_ALLOWED;
  const found = o.find({ namespace, pod, uid: '' });
  if (!found.ok) return found.reply;
  if (!hasContainer(found.value, container)) return text(`container ${container} does not exist in pod ${namespace}/${pod}\n`, 404);
  const asked = req.query.getAll('timeout').at(-1) ?? '0';
  const wanted = /^[+-]?\d{1,15}$/.test(asked) ? Number(asked) : Number.NaN;
  if (Number.isNaN(wanted)) return text(`cannot read the value of timeout: ${JSON.stringify(asked)}\n`, 404);
  const dir = `${o.rootDir}/checkpoints`;
  const time = `${new Date(o.ports.clock.wallMs()).toISOString().slice(0, 19)}Z`;
  const location = `${dir}/checkpoint-${pod}_${namespace}-${container}-${time}.tar`;
  try {
    if (wanted < 0) throw new Error('a timeout is at least 0');
    const running = await runningContainer(o.cri, { record: found.value, container, signal: req.signal });
    if (running === undefined) throw new Error('it does not run');
    await o.ports.fs.mkdirp(dir, DIR_MODE);
    const timeoutMs = Math.max(wanted * 1000, o.runtimeRequestTimeoutMs);
    const request = { containerId: running.id, location, timeout: Math.trunc(timeoutMs / 1000) };
    await o.cri.read('CheckpointContainer', request, { timeoutMs, signal: req.signal });
  } catch (error) {
    const why = error instanceof CriError ? rpcError(error) : messageOf(error);
    return text(`checkpointing of ${namespace}/${pod}/${container} failed (${why})\n`, 500);
  }
  o.ports.log.info({ pod: `${namespace}/${pod}`, container, file: location }, 'a checkpoint of a container was written');
  return json({ items: [location] });
}
