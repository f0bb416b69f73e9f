/** `POST /exec` of the admin socket: asks the runtime for a streaming address; the bytes never pass through the daemon. */

import { findPod, recordMeant } from '../../../machines/edge/findPod.ts';
import type { ServerEvent } from '../../../machines/edge/messages.ts';
import { containerStatus, pickContainer } from '../../../machines/edge/podLogs.ts';
import { podsView } from '../../../machines/pods/manager/messages.ts';
import { statusesView } from '../../../machines/pods/status/messages.ts';
import { type CriEvent, type CriResult, criAddr } from '../../../machines/runtime/cri/messages.ts';
import { jsonOf } from '../../../machines/shape/lenient.ts';
import type { HttpReply, HttpRequest } from '../../../ports/sockets/net.ts';
import type { ActorCtx } from '../../supervision/types.ts';
import { json, METHOD_NOT_ALLOWED, text } from '../answers/answers.ts';

interface ExecAsk {
  pod: string;
  /** '' = the only one. */
  container: string;
  stdin: boolean;
  /** Give it a terminal, which has one output. */
  tty: boolean;
  cmd: string[];
}
/** The Exec call only makes an address; a runtime that takes longer is not well. */
const TIMEOUT_MS = 10_000;

export async function execOffer(ctx: ActorCtx<ServerEvent>, req: HttpRequest): Promise<HttpReply> {
  if (req.method !== 'POST') return METHOD_NOT_ALLOWED;
  const ask = parse(req.body);
  if (ask === null) return text('400: expected JSON {pod, container, stdin, tty, cmd: [program, argument...]}\n', 400);
  const records = ctx.registry.read(podsView)?.value.records ?? new Map();
  const found = findPod(ask.pod, records);
  if (found.kind === 'many') return text(`400: ${ask.pod} fits several pods: ${found.names.join(', ')}\n`, 400);
  if (found.kind === 'none')
    return text(`404: no pod called ${JSON.stringify(ask.pod)} on this node${recordMeant(ask.pod, records)}\n`, 404);
  const picked = pickContainer(found.record, ask.container);
  if (!picked.ok) return text(`${picked.status}: ${picked.reason}\n`, picked.status);
  const status = containerStatus(ctx.registry.read(statusesView)?.value.get(found.uid)?.status, picked.name);
  if (status?.state.running === undefined || status.containerID === undefined) {
    const why = status?.state.waiting?.reason ?? status?.state.terminated?.reason ?? 'no status yet';
    return text(`400: container ${picked.name} does not run (${why})\n`, 400);
  }
  // `<runtime>://<id>` in a status, the bare id in CRI.
  const containerId = status.containerID.replace(/^[^:]*:\/\//, '');
  const answer = await ctx.registry.ask<CriEvent, readonly CriResult[]>(
    criAddr,
    (replyTo) => ({
      type: 'cri.call',
      calls: [
        {
          method: 'Exec',
          request: { containerId, cmd: ask.cmd, tty: ask.tty, stdin: ask.stdin, stdout: true, stderr: !ask.tty },
          timeoutMs: TIMEOUT_MS,
        },
      ],
      causes: [{ atMs: ctx.ports.clock.wallMs(), by: ctx.path, what: 'exec was asked for on the admin socket' }],
      replyTo,
    }),
    { timeoutMs: TIMEOUT_MS + 1000, signal: req.signal },
  );
  if (answer.kind !== 'reply') return text(`503: the runtime link gave no answer: ${answer.reason}\n`, 503);
  const result = answer.value[0];
  if (result === undefined || !result.ok) return text(`502: the runtime refused: ${result?.error.details ?? 'no result'}\n`, 502);
  const { value } = result;
  if (typeof value !== 'object' || value === null || !('url' in value)) return text('502: the runtime gave no address\n', 502);
  return json({ url: value.url });
}

function parse(body: Uint8Array): ExecAsk | null {
  const v = jsonOf(body);
  if (typeof v !== 'object' || v === null || !('pod' in v) || typeof v.pod !== 'string' || !('cmd' in v) || !Array.isArray(v.cmd))
    return null;
  const cmd: unknown[] = v.cmd;
  if (cmd.length === 0 || !cmd.every((c): c is string => typeof c === 'string')) return null;
  return {
    pod: v.pod,
    container: 'container' in v && typeof v.container === 'string' ? v.container : '',
    stdin: 'stdin' in v && v.stdin === true,
    tty: 'tty' in v && v.tty === true,
    cmd,
  };
}
