/** `POST /restart` of the admin socket. */
import type { ServerEvent } from '../../../machines/edge/messages.ts';
import { jsonOf, recordOf } from '../../../machines/shape/lenient.ts';
import type { HttpReply, HttpRequest } from '../../../ports/sockets/net.ts';
import type { ActorCtx } from '../../supervision/types.ts';
import { json, METHOD_NOT_ALLOWED, text } from '../answers/answers.ts';
import { askRestart, type RestartWish } from './restarts.ts';

export async function restartRoute(ctx: ActorCtx<ServerEvent>, req: HttpRequest): Promise<HttpReply> {
  if (req.method !== 'POST') return METHOD_NOT_ALLOWED;
  const wish = parse(req.body);
  if (wish === null) return text('400: expected JSON {pods: [NAME...], container?: NAME}\n', 400);
  const { registry, ports, path, log } = ctx;
  const at = { registry, by: path, nowMs: ports.clock.wallMs(), signal: req.signal };
  const result = await askRestart({ ...wish, over: 'the admin socket' }, at);
  if (!result.ok) return text(`${result.status}: ${result.why}\n`, result.status);
  for (const { ok: _, ...pod } of result.pods) log.info(pod, 'a person asked for the restart of a pod over the admin socket');
  return json({ pods: result.pods });
}

/** Pods of one request: more than a node has. */
const PODS_MAX = 1_000;

function parse(body: Uint8Array): Omit<RestartWish, 'over'> | null {
  const { pods, container = '' } = recordOf(jsonOf(body));
  if (!Array.isArray(pods) || pods.length === 0 || pods.length > PODS_MAX || typeof container !== 'string') return null;
  return pods.every((p): p is string => typeof p === 'string') ? { pods, container } : null;
}
