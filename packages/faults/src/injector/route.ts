/** `/inject` of the admin socket: fault scenarios in, what is at work out, and healing. */

import { json, METHOD_NOT_ALLOWED, text } from '@actorlet/kubelet/actors/edge/answers/answers.ts';
import type { ActorCtx } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { ServerEvent } from '@actorlet/kubelet/machines/edge/messages.ts';
import type { Answer } from '@actorlet/kubelet/machines/supervision/address.ts';
import type { HttpReply, HttpRequest } from '@actorlet/kubelet/ports/sockets/net.ts';
import type { InjectAnswer, InjectionView, InjectorEvent } from '../live.ts';
import { injectorAddr } from '../messages.ts';
import { decodeScenario, SCENARIO_BYTES_MAX, scenarioErrorText } from '../read/decode.ts';

/** Who asks the injector. */
type Asking = Pick<ActorCtx<ServerEvent>, 'registry'>;

/** How many faults are at work now. */
export interface FaultsAtWork {
  readonly size: number;
}

const ANSWER_TIMEOUT_MS = 5_000;
/** JSON is YAML. */
const CONTENT_TYPES = ['application/yaml', 'application/x-yaml', 'text/yaml', 'text/x-yaml', 'application/json'];
const OFF =
  '403: fault injection is off on this node. It is allowed by starting the daemon with --actorlet-fault-injection; never on a node that matters.\n';

/**
 * `POST /inject` (a FaultScenario in YAML or JSON), `GET /inject`, `DELETE /inject` (all) and `DELETE /inject/ID`. Who may
 * use the socket may inject; without the flag everything here is 403.
 */
export async function faultRoute(ctx: Asking, req: HttpRequest, faults: FaultsAtWork | null): Promise<HttpReply> {
  if (faults === null) return text(OFF, 403);
  const id = req.path.replace(/^\/inject\/?/, '').replace(/\/$/, '');
  if (req.method === 'POST' && id === '') return inject(ctx, req);
  if (req.method === 'GET' && id === '') return list(ctx);
  if (req.method === 'DELETE') return stop(ctx, id === '' ? null : id);
  return METHOD_NOT_ALLOWED;
}

async function inject(ctx: Asking, req: HttpRequest): Promise<HttpReply> {
  const type = (req.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (!CONTENT_TYPES.includes(type)) {
    return text(`415: a scenario is sent as ${CONTENT_TYPES[0]} or application/json, not as ${type === '' ? 'nothing' : type}\n`, 415);
  }
  if (req.body.length > SCENARIO_BYTES_MAX) return text(`413: a scenario has at most ${SCENARIO_BYTES_MAX} bytes\n`, 413);
  let source: string;
  try {
    source = new TextDecoder('utf-8', { fatal: true }).decode(req.body);
  } catch {
    return text('400: the scenario is not UTF-8 text\n', 400);
  }
  const decoded = decodeScenario(source, 'live');
  if (!decoded.ok) return text(`400: ${decoded.errors.map((e) => scenarioErrorText('scenario', e)).join('\n')}\n`, 400);
  const { scenario } = decoded;
  const answer = await ctx.registry.ask<InjectorEvent, InjectAnswer>(
    injectorAddr,
    (replyTo) => ({ type: 'faults.inject', scenario, replyTo }),
    asked(req),
  );
  return told(answer, (a) => (a.ok ? json(a) : text(`${a.status}: ${a.message}\n`, a.status)));
}

async function list(ctx: Asking): Promise<HttpReply> {
  const answer = await ctx.registry.ask<InjectorEvent, readonly InjectionView[]>(
    injectorAddr,
    (replyTo) => ({ type: 'faults.list', replyTo }),
    asked(),
  );
  return told(answer, (injections) => json({ injections }));
}

async function stop(ctx: Asking, id: string | null): Promise<HttpReply> {
  const answer = await ctx.registry.ask<InjectorEvent, readonly string[]>(
    injectorAddr,
    (replyTo) => ({ type: 'faults.stop', id, replyTo }),
    asked(),
  );
  return told(answer, (stopped) =>
    id !== null && stopped.length === 0
      ? text(`404: nothing called ${JSON.stringify(id)} is injected; it may be over already\n`, 404)
      : json({ stopped }),
  );
}

function asked(req?: HttpRequest): { timeoutMs: number; signal?: AbortSignal } {
  return req === undefined ? { timeoutMs: ANSWER_TIMEOUT_MS } : { timeoutMs: ANSWER_TIMEOUT_MS, signal: req.signal };
}

function told<R>(answer: Answer<R>, fn: (value: R) => HttpReply): HttpReply {
  if (answer.kind === 'reply') return fn(answer.value);
  return text(`503: the fault injector does not answer: ${answer.reason}\n`, 503);
}
