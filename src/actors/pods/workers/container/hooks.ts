/** One hook of a container: a command by the runtime, or an HTTP request by way of the probes' port. */

import type { Pod } from '../../../../machines/kube/types.ts';
import { BODY_BYTES_MAX, type HttpProbe, REDIRECTS_MAX, redirectOf } from '../../../../machines/pod/probes/netRequests.ts';
import type { HookAnswer, HookInput, HookJob } from '../../../../machines/pods/workers/container/hookMachine.ts';
import { hookFailed, hookKind, hookRequest, judgeCommand, plainRequest } from '../../../../machines/pods/workers/container/hooks.ts';
import { messageOf } from '../../../../machines/text/errors.ts';
import { CriError } from '../../../../ports/ports.ts';
import { PlainAnswerError } from '../../../../ports/prober.ts';
import type { CriClient } from '../../../runtime/client.ts';
import type { ActorCtx } from '../../../supervision/types.ts';

/** Codes for nobody there: ABORTED where the link took no question, UNAVAILABLE where it or the runtime went away. */
const AWAY: readonly number[] = [10, 14];

/** A timer of Node may fire this much early. */
const EARLY_MS = 1;

/** Reason of the event of a hook that was meant for HTTPS and got plain HTTP. */
export const HTTP_FALLBACK = 'LifecycleHTTPFallback';

export interface HookRunner {
  readonly ctx: Pick<ActorCtx, 'ports'>;
  readonly cri: CriClient;
  event(pod: Pod, type: 'Normal' | 'Warning', reason: string, message: string): void;
}

/** Never rejects. Nothing of what an HTTP server says is kept: it may be secret. */
export async function runHook(runner: HookRunner, { job, limitMs }: HookInput, signal: AbortSignal): Promise<HookAnswer> {
  switch (hookKind(job.handler)) {
    case 'exec':
      return runCommand(runner, { job, limitMs }, signal);
    case 'httpGet':
      return runHttp(runner, job, signal);
    case 'sleep':
      return { kind: 'done' };
    case 'invalid':
      return hookFailed('invalid handler: only exec, httpGet and sleep can be run');
  }
}

/** $(NAME) stands for itself (pod lifecycle 5.11). A stop cancels it; the end of its limit does not, as with the kubelet. */
async function runCommand({ ctx, cri }: HookRunner, { job, limitMs }: HookInput, stop: AbortSignal): Promise<HookAnswer> {
  const { clock } = ctx.ports;
  const cmd = job.handler.exec?.command ?? [];
  const overMs = clock.monoMs() + (limitMs ?? Number.POSITIVE_INFINITY) - EARLY_MS;
  const cut = new AbortController();
  stop.addEventListener('abort', () => clock.monoMs() < overMs && cut.abort(), { once: true });
  try {
    return judgeCommand(await cri.read('ExecSync', { containerId: job.containerId, cmd, timeout: 0 }, { signal: cut.signal }));
  } catch (thrown) {
    // A runtime that is away, or a link that was started anew, says nothing of the container.
    if (thrown instanceof CriError && AWAY.includes(thrown.code)) return { kind: 'away', why: messageOf(thrown) };
    return hookFailed(`cannot run the command: ${messageOf(thrown)}`);
  }
}

/** Any answer is a success (trap 45): only an answer that does not come is a failure. */
async function runHttp(runner: HookRunner, job: HookJob, signal: AbortSignal): Promise<HookAnswer> {
  const wanted = hookRequest(job);
  if (!wanted.ok) return hookFailed(wanted.message);
  const request = wanted.value;
  try {
    await follow(runner, request, signal);
    return { kind: 'done' };
  } catch (thrown) {
    if (!(thrown instanceof PlainAnswerError)) return hookFailed(`request to ${hostOf(request)}: ${messageOf(thrown)}`);
  }
  try {
    await follow(runner, plainRequest(request), signal);
  } catch {
    return hookFailed(`request to ${hostOf(request)}: the server answered an HTTPS request without TLS`);
  }
  const message = `request to HTTPS lifecycle hook ${hostOf(request)} got HTTP response, retry with HTTP succeeded`;
  runner.event(job.pod, 'Warning', HTTP_FALLBACK, message);
  return { kind: 'done' };
}

/** Follows redirects to the same host, as probes do. @throws when there is no answer */
async function follow({ ctx }: HookRunner, first: HttpProbe, signal: AbortSignal): Promise<void> {
  let present = first;
  for (let hops = 0; hops < REDIRECTS_MAX; hops++) {
    const { url, headers, host } = present;
    const answer = await ctx.ports.prober.httpGet(url, { headers, host, bytesMax: BODY_BYTES_MAX, signal });
    const next = redirectOf({ first: first.url, present }, answer);
    if (next === null) return;
    present = next;
  }
  throw new Error(`stopped after ${REDIRECTS_MAX} redirects`);
}

/** Without path and query, which may hold a token. */
function hostOf({ url }: HttpProbe): string {
  return new URL(url).host;
}
