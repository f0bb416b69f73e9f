/** What a probe asks of the network or of the runtime, and how an answer is judged (pod lifecycle 8.3). Pure. */

import { own, put } from '../../data/own.ts';
import type { Container, ContainerPort, LifecycleHandler } from '../../kube/podTable.ts';
import type { IntOrString, Pod } from '../../kube/types.ts';
import { shownUrl } from '../../text/shownUrl.ts';
import { ExecRoom, expandAll } from '../execLimits.ts';
import type { ProbeOutcome, ProbeTarget } from './probes.ts';

/** Minor version of the kubelet this node stands for. */
export const USER_AGENT = 'kube-probe/1.36';
/** So much of an answer is read and kept; a longer one is no failure. */
export const BODY_BYTES_MAX = 10 * 1024;
/** As Go's client counts: the tenth answer that is a redirect is not followed. */
export const REDIRECTS_MAX = 10;
/** The API server's default. */
const TIMEOUT_SECONDS = 1;

export type Wanted<T> = { ok: true; value: T } | { ok: false; message: string };

export function timeoutSeconds(target: Pick<ProbeTarget, 'probe'>): number {
  return target.probe.timeoutSeconds || TIMEOUT_SECONDS;
}

/** A number, the name of one of the container's own ports, or a number written as text; 1 to 65535. */
export function resolvePort(port: IntOrString, ports: readonly ContainerPort[] | undefined): Wanted<number> {
  const named = typeof port === 'string' ? ports?.find((p) => p.name === port)?.containerPort : port;
  const number = named ?? (/^\d{1,5}$/.test(String(port)) ? Number(port) : undefined);
  if (number === undefined) return { ok: false, message: `couldn't find port: ${JSON.stringify(port)} is no port of this container` };
  if (!Number.isInteger(number) || number < 1 || number > 65_535) return { ok: false, message: `invalid port number: ${number}` };
  return { ok: true, value: number };
}

/** Where probes and hooks go that name no host. A node in a cloud may have no address yet; its own network is reached all the same. */
export function podAddress({ spec }: Pick<Pod, 'spec'>, ips: readonly string[]): string {
  return ips[0] ?? (spec.hostNetwork === true ? '127.0.0.1' : '');
}

function bracketed(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

export interface HttpProbe {
  url: string;
  /** Canonical names; several values of one name are several header lines. */
  headers: Record<string, string[]>;
  /** Value of the Host header where the pod sets one; null: as the URL says. */
  host: string | null;
}

/** `x-my-header` is `X-My-Header`: names are compared and sent in this form. */
function canonical(name: string): string {
  return name
    .split('-')
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1).toLowerCase())
    .join('-');
}

function headersOf(given: readonly { name: string; value: string }[], userAgent: string): Pick<HttpProbe, 'headers' | 'host'> {
  const headers: Record<string, string[]> = {};
  for (const { name, value } of given) {
    const key = canonical(name);
    put(headers, key, [...(own(headers, key) ?? []), value]);
  }
  const host = headers.Host?.[0] ?? null;
  delete headers.Host;
  headers['User-Agent'] ??= [userAgent];
  headers.Accept ??= ['*/*'];
  // Given and empty: not sent at all.
  for (const name of ['User-Agent', 'Accept']) if (headers[name]?.[0] === '') delete headers[name];
  return { headers, host: host === '' ? null : host };
}

export function httpProbe({ probe, container, podIP }: ProbeTarget): Wanted<HttpProbe> {
  const { httpGet } = probe;
  return httpGet === undefined
    ? { ok: false, message: 'not an HTTP probe' }
    : httpRequest(httpGet, { container, podIP, userAgent: USER_AGENT });
}

/** The first question of a probe or a hook. */
export function httpRequest(
  httpGet: NonNullable<LifecycleHandler['httpGet']>,
  of: { container: Pick<Container, 'ports'>; podIP: string; userAgent: string },
): Wanted<HttpProbe> {
  const port = resolvePort(httpGet.port, of.container.ports);
  if (!port.ok) return port;
  const host = httpGet.host || of.podIP;
  if (host === '') return { ok: false, message: 'the pod has no address yet' };
  const path = httpGet.path ?? '/';
  const scheme = (httpGet.scheme || 'HTTP').toLowerCase();
  const text = `${scheme}://${bracketed(host)}:${port.value}${path.startsWith('/') ? '' : '/'}${path}`;
  if (!URL.canParse(text)) return { ok: false, message: `not a URL: ${JSON.stringify(shownUrl(text))}` };
  return { ok: true, value: { url: new URL(text).href, ...headersOf(httpGet.httpHeaders ?? [], of.userAgent) } };
}

const REDIRECT_STATUS = [301, 302, 303, 307, 308];

/**
 * Where to go next, or null when this answer is the last: no redirect, or one that leads to another host (trap 43).
 * A Host header that the pod sets goes along unless the new address names a host itself.
 */
export function redirectOf(
  at: { first: string; present: HttpProbe },
  answer: { status: number; location: string | null },
): HttpProbe | null {
  if (!REDIRECT_STATUS.includes(answer.status) || answer.location === null || answer.location === '') return null;
  if (!URL.canParse(answer.location, at.present.url)) return null;
  const next = new URL(answer.location, at.present.url);
  if (next.protocol !== 'http:' && next.protocol !== 'https:') return null;
  if (next.hostname !== new URL(at.first).hostname) return null;
  const absolute = URL.canParse(answer.location) || answer.location.startsWith('//');
  return { ...at.present, url: next.href, host: absolute ? null : at.present.host };
}

/** 200 to 399 is success, the upper half of it with a warning. */
export function judgeHttp(status: number, body: string): ProbeOutcome {
  if (status >= 200 && status < 300) return { kind: 'success', output: body };
  if (status >= 300 && status < 400) return { kind: 'warning', output: `Probe terminated redirects, Response body: ${body}` };
  return { kind: 'failure', output: `HTTP probe failed with statuscode: ${status}` };
}

export function tcpProbe(target: ProbeTarget): Wanted<{ host: string; port: number }> {
  const { tcpSocket } = target.probe;
  if (tcpSocket === undefined) return { ok: false, message: 'not a TCP probe' };
  const port = resolvePort(tcpSocket.port, target.container.ports);
  if (!port.ok) return port;
  const host = tcpSocket.host || target.podIP;
  return host === '' ? { ok: false, message: 'the pod has no address yet' } : { ok: true, value: { host, port: port.value } };
}

/** Always the pod's own address and a number. */
export function grpcProbe(target: ProbeTarget): Wanted<{ host: string; port: number; service: string }> {
  const { grpc } = target.probe;
  if (grpc === undefined) return { ok: false, message: 'not a gRPC probe' };
  const port = resolvePort(grpc.port, []);
  if (!port.ok) return port;
  if (target.podIP === '') return { ok: false, message: 'the pod has no address yet' };
  return { ok: true, value: { host: target.podIP, port: port.value, service: grpc.service ?? '' } };
}

/** Number of SERVING in grpc.health.v1. */
const SERVING = 1;
const SERVING_NAMES = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];
const UNIMPLEMENTED = 12;
const DEADLINE_EXCEEDED = 4;

/** gRPC probes never err: whatever is not SERVING is a failure. */
export function judgeGrpc(
  answer: { ok: true; status: number } | { ok: false; code: number; details: string },
  of: { timeoutSeconds: number },
): ProbeOutcome {
  if (answer.ok) {
    if (answer.status === SERVING) return { kind: 'success', output: 'service healthy' };
    return { kind: 'failure', output: `service unhealthy (responded with "${SERVING_NAMES[answer.status] ?? answer.status}")` };
  }
  if (answer.code === UNIMPLEMENTED) {
    return {
      kind: 'failure',
      output: `this server does not implement the grpc health protocol (grpc.health.v1.Health): ${answer.details}`,
    };
  }
  if (answer.code === DEADLINE_EXCEEDED)
    return { kind: 'failure', output: `timeout: health rpc did not complete within ${of.timeoutSeconds}s` };
  return { kind: 'failure', output: `health rpc failed: ${answer.details}` };
}

/** `$(NAME)` in the command stands for a value that the container's definition spells out, and for nothing else. */
export function execCommand(container: Pick<Container, 'env'>, command: readonly string[]): Wanted<string[]> {
  const literal = new Map((container.env ?? []).filter((e) => e.valueFrom === undefined).map((e) => [e.name, e.value ?? '']));
  return expandAll(command, (name) => literal.get(name), { room: new ExecRoom(), what: 'command' });
}
