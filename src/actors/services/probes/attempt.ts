/** One try of a probe, through ports: exec by the CRI link, everything else over the network. */

import {
  BODY_BYTES_MAX,
  execCommand,
  grpcProbe,
  httpProbe,
  judgeGrpc,
  judgeHttp,
  REDIRECTS_MAX,
  redirectOf,
  tcpProbe,
  timeoutSeconds,
  USER_AGENT,
} from '../../../machines/pod/probes/netRequests.ts';
import type { ProbeOutcome, ProbeTarget } from '../../../machines/pod/probes/probes.ts';
import { criView } from '../../../machines/runtime/cri/messages.ts';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import { CriError, type Ports } from '../../../ports/ports.ts';
import { type CriClient, criClient } from '../../runtime/client.ts';
import { joinSignals } from '../../supervision/signals.ts';
import type { Registry } from '../../supervision/types.ts';

const DEADLINE_EXCEEDED = 4;

const failure = (output: string): ProbeOutcome => ({ kind: 'failure', output });
const error = (output: string): ProbeOutcome => ({ kind: 'error', output });

/** The words that people look for in events, by Node's code. */
const NOT_REACHED: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'network is unreachable',
};
/** @param at `HOST:PORT` */
function notReached(thrown: unknown, at: string): string | undefined {
  const why = NOT_REACHED[codeOf(thrown)];
  return why === undefined ? undefined : `dial tcp ${at}: connect: ${why}`;
}
function addressOf(url: string): string {
  const { protocol, hostname, port } = new URL(url);
  return `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`;
}
/** The signal that ends a try: the probe's own time-out, or its schedule's end. */
interface Deadline extends Disposable {
  readonly signal: AbortSignal;
  readonly passed: boolean;
}

export class Attempts {
  readonly ports: Ports;
  readonly registry: Registry;
  readonly cri: CriClient;

  constructor(o: { ports: Ports; registry: Registry; runtimeRequestTimeoutMs: number }) {
    this.ports = o.ports;
    this.registry = o.registry;
    this.cri = criClient(o.registry, o);
  }

  async attempt(target: ProbeTarget, signal: AbortSignal): Promise<ProbeOutcome> {
    const { probe } = target;
    if (probe.exec !== undefined) return this.exec(target, probe.exec.command ?? [], signal);
    using deadline = this.deadline(timeoutSeconds(target) * 1_000, signal);
    if (probe.httpGet !== undefined) return await this.http(target, deadline);
    if (probe.tcpSocket !== undefined) return await this.tcp(target, deadline);
    if (probe.grpc !== undefined) return await this.grpc(target, deadline);
    return error('missing probe handler');
  }

  /** The runtime enforces the time-out; its deadline at the link is later, so that a slow answer still counts. */
  private async exec(target: ProbeTarget, command: readonly string[], signal: AbortSignal): Promise<ProbeOutcome> {
    const timeout = timeoutSeconds(target);
    const wanted = execCommand(target.container, command);
    if (!wanted.ok) return error(wanted.message);
    const cmd = wanted.value;
    try {
      const { stdout, stderr, exitCode } = await this.cri.read('ExecSync', { containerId: target.containerId, cmd, timeout }, { signal });
      const output = textOf(stdout, stderr);
      return exitCode === 0 ? { kind: 'success', output } : failure(output === '' ? `command exited with code ${exitCode}` : output);
    } catch (thrown) {
      // A runtime that is away answers nobody: that says nothing of the container.
      const away = this.registry.read(criView)?.value.state !== 'ready';
      if (!(thrown instanceof CriError) || thrown.code !== DEADLINE_EXCEEDED || away)
        return error(`cannot run the command: ${messageOf(thrown)}`);
      return failure(`command timed out: ${JSON.stringify(cmd.join(' ').slice(0, 200))} timed out after ${timeout}s`);
    }
  }

  private async http(target: ProbeTarget, deadline: Deadline): Promise<ProbeOutcome> {
    const wanted = httpProbe(target);
    if (!wanted.ok) return error(wanted.message);
    const first = wanted.value.url;
    let present = wanted.value;
    const failed = (why: string) => failure(`Get ${JSON.stringify(present.url)}: ${why}`);
    for (let hops = 0; ; hops++) {
      const asked = present;
      const { signal } = deadline;
      try {
        const answer = await this.ports.prober.httpGet(asked.url, {
          headers: asked.headers,
          host: asked.host,
          bytesMax: BODY_BYTES_MAX,
          signal,
        });
        const next = redirectOf({ first, present: asked }, answer);
        if (next !== null) {
          if (hops + 1 >= REDIRECTS_MAX) return failed(`stopped after ${REDIRECTS_MAX} redirects`);
          present = next;
          continue;
        }
        if (answer.bodyError !== null) return error(`Get ${JSON.stringify(asked.url)}: the answer could not be read: ${answer.bodyError}`);
        return judgeHttp(answer.status, new TextDecoder().decode(answer.body));
      } catch (thrown) {
        return failed(
          deadline.passed
            ? `no answer within ${timeoutSeconds(target)}s (timeout)`
            : (notReached(thrown, addressOf(asked.url)) ?? messageOf(thrown)),
        );
      }
    }
  }

  private async tcp(target: ProbeTarget, deadline: Deadline): Promise<ProbeOutcome> {
    const wanted = tcpProbe(target);
    if (!wanted.ok) return error(wanted.message);
    const { host, port } = wanted.value;
    try {
      await this.ports.prober.tcpDial(wanted.value, { signal: deadline.signal });
      return { kind: 'success', output: '' };
    } catch (thrown) {
      const at = `${host}:${port}`;
      if (deadline.passed) return failure(`dial tcp ${at}: no connection within ${timeoutSeconds(target)}s (timeout)`);
      return failure(notReached(thrown, at) ?? `dial tcp ${at}: ${messageOf(thrown)}`);
    }
  }

  private async grpc(target: ProbeTarget, deadline: Deadline): Promise<ProbeOutcome> {
    const wanted = grpcProbe(target);
    if (!wanted.ok) return failure(wanted.message);
    const { host, port, service } = wanted.value;
    const answer = await this.ports.prober.grpcHealth({ host, port }, { service, userAgent: USER_AGENT, signal: deadline.signal });
    const timedOut = !answer.ok && deadline.passed;
    return judgeGrpc(timedOut ? { ok: false, code: DEADLINE_EXCEEDED, details: '' } : answer, { timeoutSeconds: timeoutSeconds(target) });
  }

  private deadline(timeoutMs: number, outer: AbortSignal): Deadline {
    const { clock } = this.ports;
    const own = new AbortController();
    const timer = clock.setTimeout(() => own.abort(), timeoutMs);
    const joined = joinSignals(outer, own.signal);
    return {
      signal: joined.signal,
      get passed() {
        return own.signal.aborted;
      },
      [Symbol.dispose]() {
        clock.clearTimeout(timer);
        joined[Symbol.dispose]();
      },
    };
  }
}

function textOf(stdout: Uint8Array, stderr: Uint8Array): string {
  const both = new Uint8Array(stdout.length + stderr.length);
  both.set(stdout);
  both.set(stderr, stdout.length);
  return new TextDecoder().decode(both.subarray(0, BODY_BYTES_MAX)).trimEnd();
}
