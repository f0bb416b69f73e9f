/** The handler of the runtime that a pod's runtime class stands for (resources 12.5). */
import { failureText, type KubeRequest, kubePath } from '../../../../machines/kube/request.ts';
import type { Pod } from '../../../../machines/kube/types.ts';
import { isRecord } from '../../../../machines/shape/conform.ts';
import { kubeClient } from '../../../api/client.ts';
import type { ActorCtx } from '../../../supervision/types.ts';

/** A sandbox waits no longer than this for an answer about its class; it is asked again with the next try. */
const CLASS_TIMEOUT_MS = 10_000;

export type RuntimeHandlerResult = { ok: true; handler: string } | { ok: false; message: string };

/**
 * '' is the runtime's default handler, for pods without a class. A class is asked for each time a sandbox is made: that
 * is rare, and a class that was made anew under its name may stand for another handler. `last`: that of the pod's last sandbox,
 * which counts while the API server cannot be asked, since a class keeps its handler. Absent: there was none, or nobody knows.
 */
export async function runtimeHandler(
  ctx: Pick<ActorCtx, 'ports' | 'registry' | 'signal'>,
  { pod, last }: { pod: Pod; last?: string | undefined },
  signal: AbortSignal,
): Promise<RuntimeHandlerResult> {
  const name = pod.spec.runtimeClassName ?? '';
  if (name === '') return { ok: true, handler: '' };
  const failed = (why: string) => ({ ok: false as const, message: `the runtime class ${JSON.stringify(name)} ${why}` });
  if (ctx.ports.kube === undefined) return failed('cannot be looked up: there is no API server');
  const request: KubeRequest = { verb: 'GET', path: kubePath.runtimeClass(name) };
  const found = await kubeClient(ctx).request(request, { timeoutMs: CLASS_TIMEOUT_MS, signal });
  if (!found.ok && found.failure.code === 404) return failed('does not exist');
  if (!found.ok) return last === undefined ? failed(`cannot be read: ${failureText(request, found.failure)}`) : { ok: true, handler: last };
  const handler = isRecord(found.body) ? found.body.handler : undefined;
  return typeof handler === 'string' && handler !== '' ? { ok: true, handler } : failed('names no handler');
}
