/**
 * /exec, /attach, /portForward and /run. The runtime is asked for a streaming address, and the upgraded connection is
 * handed on to it byte for byte: SPDY and older WebSocket protocols are between the client and the runtime. WebSocket
 * protocols that know the end of a stream are translated into SPDY, which every runtime takes (ExtendWebSocketsToKubelet).
 */
import { concat } from '../../../machines/edge/https/logs/logLines.ts';
import type { Container } from '../../../machines/kube/podTable.ts';
import type { PodRecord } from '../../../machines/pods/manager/messages.ts';
import type { Metrics } from '../../../ports/ports.ts';
import type { HttpReply, HttpRequest, Translation } from '../../../ports/sockets/net.ts';
import type { CriClient } from '../../runtime/client.ts';
import { METHOD_NOT_ALLOWED, NOT_FOUND, text } from '../answers/answers.ts';
import { runtimeFailure } from '../answers/runtimeFailure.ts';
import { type Found, hasContainer, readySandbox, runningContainer } from './pods.ts';

/** The call only makes an address; a runtime that takes longer is not well. */
const ADDRESS_TIMEOUT_MS = 30_000;
const PORT_MAX = 65_535;
/** As long as a head of a request can be. */
const COMMAND_BYTES_MAX = 128 * 1024;

export interface Streams {
  cri: CriClient;
  find(name: { namespace: string; pod: string; uid: string }): Found<PodRecord>;
  /** ExtendWebSocketsToKubelet: counts those that are translated. Null: none is. */
  translated: ReturnType<Metrics['counter']> | null;
}
type Serve = (req: HttpRequest, parts: readonly string[]) => Promise<HttpReply>;

/** `/exec/NAMESPACE/POD[/UID]/CONTAINER`: the parts after the first. */
interface Target {
  namespace: string;
  pod: string;
  uid: string;
  container: string;
}
function containerTarget(parts: readonly string[]): Target | undefined {
  if (parts.length !== 3 && parts.length !== 4) return undefined;
  const [namespace = '', pod = ''] = parts;
  return { namespace, pod, uid: parts.length === 4 ? (parts[2] ?? '') : '', container: parts.at(-1) ?? '' };
}

interface StreamFlags {
  stdin: boolean;
  stdout: boolean;
  stderr: boolean;
  tty: boolean;
}
/** Each is on when it says exactly `1`. */
function streamFlags(query: URLSearchParams): StreamFlags {
  const on = (name: string) => query.get(name) === '1';
  // A terminal has one output: asking for the other one too is not an error.
  return { stdin: on('input'), stdout: on('output'), stderr: on('error') && !on('tty'), tty: on('tty') };
}

export function streamRoutes(s: Streams): Record<'exec' | 'attach' | 'portForward' | 'run', Serve> {
  return {
    exec: streaming(async (req, parts) => {
      const target = containerTarget(parts);
      if (target === undefined) return NOT_FOUND;
      const flags = streamFlags(req.query);
      if (!flags.stdin && !flags.stdout && !flags.stderr) return NO_STREAM;
      const cmd = req.query.getAll('command');
      if (cmd.join('').length > COMMAND_BYTES_MAX) return text('the command is too long\n', 400);
      // The UID in the path is not looked at, as in the reference.
      const found = await locate(s, { ...target, uid: '' }, req.signal);
      if (!found.ok) return found.reply;
      const { url } = await s.cri.read(
        'Exec',
        { containerId: found.value.id, cmd, ...flags },
        { timeoutMs: ADDRESS_TIMEOUT_MS, signal: req.signal },
      );
      return relay(s, req, { url, as: 'exec', translation: channels(req, flags) });
    }),
    attach: streaming(async (req, parts) => {
      const target = containerTarget(parts);
      if (target === undefined) return NOT_FOUND;
      const asked = streamFlags(req.query);
      if (!asked.stdin && !asked.stdout && !asked.stderr) return NO_STREAM;
      const found = await locate(s, { ...target, uid: '' }, req.signal);
      if (!found.ok) return found.reply;
      if (target.uid !== '' && found.value.record.pod.metadata.uid !== target.uid) return text(`the pod's UID is not ${target.uid}\n`, 500);
      // Whether there is a terminal was decided when the container was made.
      const tty = specOf(found.value.record, target.container)?.tty === true;
      const flags = { ...asked, stderr: asked.stderr && !tty, tty };
      const request = { containerId: found.value.id, ...flags };
      const { url } = await s.cri.read('Attach', request, { timeoutMs: ADDRESS_TIMEOUT_MS, signal: req.signal });
      return relay(s, req, { url, as: 'attach', translation: channels(req, flags) });
    }),
    portForward: streaming(async (req, parts) => {
      if (parts.length !== 2 && parts.length !== 3) return NOT_FOUND;
      const [namespace = '', pod = '', uid = ''] = parts;
      const translation = tunnel(req);
      const ports = s.translated !== null && translation !== undefined ? [] : forwardedPorts(req);
      if (ports === undefined) return text('each port must be a number from 1 to 65535\n', 400);
      const found = s.find({ namespace, pod, uid });
      if (!found.ok) return found.reply;
      const sandbox = await readySandbox(s.cri, { record: found.value, signal: req.signal });
      if (sandbox === undefined) return text(`pod ${namespace}/${pod} has no sandbox that is ready\n`, 500);
      const request = { podSandboxId: sandbox.id, port: ports };
      const { url } = await s.cri.read('PortForward', request, { timeoutMs: ADDRESS_TIMEOUT_MS, signal: req.signal });
      return relay(s, req, { url, as: 'portforward', translation });
    }),
    run: async (req, parts) => {
      if (req.method !== 'POST') return METHOD_NOT_ALLOWED;
      const target = containerTarget(parts);
      if (target === undefined) return NOT_FOUND;
      const cmd = (req.query.get('cmd') ?? '').split(' ');
      try {
        const found = await locate(s, { ...target, uid: '' }, req.signal);
        if (!found.ok) return found.reply;
        const ran = await s.cri.read('ExecSync', { containerId: found.value.id, cmd, timeout: 0 }, { signal: req.signal });
        const failed =
          ran.exitCode !== 0 && `command '${cmd.join(' ')}' exited with ${ran.exitCode}: ${new TextDecoder().decode(ran.stderr)}`;
        if (failed !== false) return text(failed, 500);
        return { status: 200, headers: { 'content-type': 'application/json' }, body: concat([ran.stdout, ran.stderr]) };
      } catch (error) {
        return runtimeFailure(error);
      }
    },
  };
}

const NO_STREAM: HttpReply = text('you must specify at least 1 of stdin, stdout, stderr', 400);

function streaming(serve: Serve): Serve {
  return async (req, parts) => {
    if (req.method !== 'GET' && req.method !== 'POST') return METHOD_NOT_ALLOWED;
    try {
      return await serve(req, parts);
    } catch (error) {
      return runtimeFailure(error);
    }
  };
}

interface Upgrade {
  url: string;
  /** As the metric names it. */
  as: 'exec' | 'attach' | 'portforward';
  /** What would be done with a client of this protocol; undefined: it is between the client and the runtime. */
  translation: Translation | undefined;
}

function relay({ translated }: Streams, req: HttpRequest, { url, as, translation }: Upgrade): HttpReply {
  const wants = (req.headers.connection ?? '')
    .toLowerCase()
    .split(',')
    .some((t) => t.trim() === 'upgrade');
  if (!wants || (req.headers.upgrade ?? '') === '') return text('Upgrade request required\n', 500);
  if (translated === null || translation === undefined) return { status: 101, body: '', relay: url };
  translated.inc({ subresource: as });
  return { status: 101, body: '', relay: url, translated: translation };
}

const CHANNELS = 'v5.channel.k8s.io';
const TUNNEL_PREFIX = 'SPDY/3.1+';
const TUNNEL_SUFFIX = '.k8s.io';

function protocolsOf({ headers }: HttpRequest): string[] {
  if ((headers.upgrade ?? '').toLowerCase() !== 'websocket') return [];
  return (headers['sec-websocket-protocol'] ?? '').split(',').map((p) => p.trim());
}
function channels(req: HttpRequest, streams: StreamFlags): Translation | undefined {
  return protocolsOf(req).includes(CHANNELS) ? { kind: 'channels', streams } : undefined;
}
function tunnel(req: HttpRequest): Translation | undefined {
  const protocols = protocolsOf(req)
    .filter((p) => p.startsWith(TUNNEL_PREFIX) && p.endsWith(TUNNEL_SUFFIX))
    .map((p) => p.slice(TUNNEL_PREFIX.length));
  return protocols.length === 0 ? undefined : { kind: 'tunnel', protocols };
}

async function locate(s: Streams, target: Target, signal: AbortSignal): Promise<Found<{ id: string; record: PodRecord }>> {
  const found = s.find(target);
  if (!found.ok) return found;
  const { namespace, pod, container } = target;
  const missing: Found<never> = { ok: false, reply: text(`container not found: no ${container} runs in pod ${namespace}/${pod}\n`, 500) };
  if (!hasContainer(found.value, container)) return missing;
  const running = await runningContainer(s.cri, { record: found.value, container, signal });
  return running === undefined ? missing : { ok: true, value: { id: running.id, record: found.value } };
}

function specOf(record: PodRecord, name: string): Pick<Container, 'tty'> | undefined {
  const { spec } = record.pod;
  return [...spec.containers, ...(spec.initContainers ?? []), ...(spec.ephemeralContainers ?? [])].find((c) => c.name === name);
}

/** WebSocket clients name their ports beforehand; SPDY clients name them per stream. Undefined where one is no port. */
function forwardedPorts(req: HttpRequest): number[] | undefined {
  if ((req.headers.upgrade ?? '').toLowerCase() !== 'websocket') return [];
  const texts = req.query.getAll('port').join().split(',');
  const ports = texts.map((p) => (/^\d+$/.test(p) ? Number(p) : 0));
  return ports.every((p) => p >= 1 && p <= PORT_MAX) ? ports : undefined;
}
