/** GET /containerLogs/NAMESPACE/POD/CONTAINER (boot-and-node 8.6). */

import { parseLogOptions } from '../../../../machines/edge/https/logs/logOptions.ts';
import type { ServerEvent } from '../../../../machines/edge/messages.ts';
import { containerStatus, logFileOf } from '../../../../machines/edge/podLogs.ts';
import type { ContainerStatus } from '../../../../machines/kube/types.ts';
import { type PodRecord, podsView } from '../../../../machines/pods/manager/messages.ts';
import { statusesView } from '../../../../machines/pods/status/messages.ts';
import { codeOf, messageOf } from '../../../../machines/text/errors.ts';
import type { Ports } from '../../../../ports/ports.ts';
import type { HttpReply, HttpRequest } from '../../../../ports/sockets/net.ts';
import type { ActorCtx } from '../../../supervision/types.ts';
import { METHOD_NOT_ALLOWED, NOT_FOUND, text } from '../../answers/answers.ts';
import { type Found, hasContainer } from '../pods.ts';
import { openLog } from './logReader.ts';

export interface ContainerLogsOptions {
  ctx: Pick<ActorCtx<ServerEvent>, 'registry' | 'log'> & { ports: Pick<Ports, 'fs' | 'sys' | 'clock'> };
  podLogsDir: string;
  find(name: { namespace: string; pod: string; uid: string }): Found<PodRecord>;
}

export async function containerLogs(
  o: ContainerLogsOptions,
  req: Pick<HttpRequest, 'method' | 'query' | 'signal'>,
  parts: readonly string[],
): Promise<HttpReply> {
  const { ctx } = o;
  if (req.method !== 'GET' && req.method !== 'HEAD') return METHOD_NOT_ALLOWED;
  const [namespace = '', pod = '', container = ''] = parts;
  if (parts.length !== 3) return NOT_FOUND;
  const parsed = parseLogOptions(req.query, ctx.ports.clock.wallMs());
  if (!parsed.ok) return text(parsed.body, parsed.status);
  const found = o.find({ namespace, pod, uid: '' });
  if (!found.ok) return found.reply.status === 404 ? text(`pod ${JSON.stringify(pod)} does not exist`, 404) : found.reply;
  const record = found.value;
  const named = `container ${JSON.stringify(container)} in pod ${JSON.stringify(pod)}`;
  if (!hasContainer(record, container)) return text(`container ${JSON.stringify(container)} not found in pod ${JSON.stringify(pod)}`, 404);

  const { uid } = record.pod.metadata;
  // Looked up anew each time: a pod that is gone has no status, whatever its record said last.
  const status = () =>
    ctx.registry.read(statusesView)?.value.get(uid)?.status ?? ctx.registry.read(podsView)?.value.records.get(uid)?.pod.status;
  const chosen = containerStatus(status(), container);
  const instance = chooseInstance(named, chosen, parsed.options.previous);
  if (!instance.ok) return text(instance.why, 400);
  const file = logFileOf({ record, status: status(), container, previous: instance.earlier, podLogsDir: o.podLogsDir });
  if (!file.ok) return text(`${file.reason}\n`, file.status === 404 ? 404 : 400);
  const running = () => {
    const now = containerStatus(status(), container);
    if (instance.earlier || now?.state.running === undefined) return false;
    // The next life of a pod counts its restarts from 0 again.
    return now.restartCount === file.restartCount && now.containerID === chosen?.containerID;
  };
  try {
    const body = await openLog(
      ctx.ports,
      { path: file.path, within: [o.podLogsDir], running },
      {
        options: parsed.options,
        signal: req.signal,
        onUnreadable: (lines) => ctx.log.warn({ file: file.path, lines }, 'lines of a container log were of no known format and left out'),
      },
    );
    return { status: 200, headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' }, body };
  } catch (error) {
    const code = codeOf(error);
    const why = code === 'ENOENT' ? 'it does not exist (any more)' : messageOf(error);
    return text(`failed to open the log of ${named}: ${why}\n`, 400);
  }
}

type Instance = { ok: true; earlier: boolean } | { ok: false; why: string };

/** Which run of the container is meant: the present one (while it waits to start again, the one that ended), or, with `previous`, the one before. */
function chooseInstance(named: string, status: ContainerStatus | undefined, previous: boolean): Instance {
  if (status === undefined) return { ok: false, why: `${named} is not available: it has no status yet` };
  const { waiting } = status.state;
  if (previous) {
    if (status.lastState.terminated === undefined && status.restartCount === 0)
      return { ok: false, why: `previous terminated ${named} not found` };
    return { ok: true, earlier: true };
  }
  if (waiting === undefined || status.lastState.terminated !== undefined) return { ok: true, earlier: false };
  const { reason = 'unknown reason' } = waiting;
  if (reason === 'ErrImagePull') return { ok: false, why: `${named} is waiting to start: image can't be pulled` };
  if (reason === 'ImagePullBackOff') return { ok: false, why: `${named} is waiting to start: trying and failing to pull image` };
  return { ok: false, why: `${named} is waiting to start: ${reason}` };
}
