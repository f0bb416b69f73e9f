/**
 * A proxy in front of a real API server, through which a node goes: it passes requests on with the node's own
 * certificate, and for some of them does what servers and networks do on bad days. What came through is kept.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, createServer, request } from 'node:https';
import { join } from 'node:path';
import type { ControlPlane } from './controlPlane.ts';

export interface DoorCall {
  method: string;
  /** Without its query. */
  path: string;
  watch: boolean;
}
export type DoorFault =
  /** Answered here, the server does not hear of it. */
  | { kind: 'refused'; code: number; reason: string; retryAfterSeconds?: number }
  /** The server does what was asked; whoever asked loses the connection before the answer. */
  | { kind: 'lost' }
  | { kind: 'slow'; ms: number }
  /** The answer ends after so many bytes, with its connection. */
  | { kind: 'cut'; bytes: number }
  /** A good status with something that is no answer. */
  | { kind: 'garbage' }
  /** A watch that says at once that its version is too old. */
  | { kind: 'expired' };
export interface Passed extends DoorCall {
  code: number;
  sent: unknown;
  got: unknown;
}

export class ApiProxy {
  /** Asked for each request; undefined lets it pass. */
  fault: (call: DoorCall) => DoorFault | undefined = () => undefined;
  /** What the server is sent in place of a body of the node's. Undefined: nothing is looked at. */
  sent: ((call: DoorCall, body: unknown) => unknown) | undefined = undefined;
  /** What the node is sent in place of an object of the server's: in answers, lists and watches. Undefined: nothing is looked at. */
  rewrite: ((object: Record<string, unknown>) => unknown) | undefined = undefined;
  /** How many bookmarks are sent before an event of a watch, where `rewrite` is set. Undefined: none. */
  bookmarksBefore: ((object: Record<string, unknown>) => number) | undefined = undefined;
  /** Every request that the server answered, watches excepted. */
  readonly passed: Passed[] = [];
  /** By kind. */
  readonly faults = new Map<string, number>();
  readonly kubeconfig: string;
  /** Ends every connection of the node, as a network does. */
  readonly cut: () => void;
  readonly stop: () => Promise<void>;

  constructor(o: Pick<ApiProxy, 'kubeconfig' | 'cut' | 'stop'>) {
    this.kubeconfig = o.kubeconfig;
    this.cut = o.cut;
    this.stop = o.stop;
  }
}

/** For the node of that name; its kubeconfig leads through the proxy. */
export async function startApiProxy(plane: ControlPlane, nodeName: string): Promise<ApiProxy> {
  const identity = { name: `system:node:${nodeName}`, groups: ['system:nodes'] };
  const own = plane.ca.issue(`node-${nodeName}`, identity);
  const serving = plane.ca.issue('proxy', { name: 'proxy', hosts: ['127.0.0.1'] });
  const [cert, key, ca] = [own.certFile, own.keyFile, plane.ca.certFile].map((f) => readFileSync(f));
  const agent = new Agent({ keepAlive: true, maxSockets: 256 });
  const upstream = (req: IncomingMessage) =>
    request(new URL(req.url ?? '/', plane.url), {
      method: req.method ?? 'GET',
      headers: { ...req.headers, 'accept-encoding': 'identity' },
      agent,
      ca,
      cert,
      key,
    });
  const server = createServer({ cert: readFileSync(serving.certFile), key: readFileSync(serving.keyFile) }, (req, res) => {
    pass(proxy, { req, res, upstream }).catch(() => res.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve());
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  const kubeconfig = join(plane.dir, 'proxy.kubeconfig');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'lab', cluster: { server: `https://127.0.0.1:${address.port}`, 'certificate-authority': plane.ca.certFile } }],
    users: [{ name: 'node', user: { 'client-certificate': own.certFile, 'client-key': own.keyFile } }],
    contexts: [{ name: 'lab', context: { cluster: 'lab', user: 'node' } }],
    'current-context': 'lab',
  };
  // JSON is YAML.
  writeFileSync(kubeconfig, JSON.stringify(config), { mode: 0o600 });
  const proxy: ApiProxy = new ApiProxy({
    kubeconfig,
    cut: () => server.closeAllConnections(),
    stop: async () => {
      agent.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
  return proxy;
}

type Exchange = { req: IncomingMessage; res: ServerResponse; upstream(req: IncomingMessage): ReturnType<typeof request> };

async function pass(proxy: ApiProxy, { req, res, upstream }: Exchange): Promise<void> {
  const url = new URL(req.url ?? '/', 'https://proxy');
  const call: DoorCall = { method: req.method ?? 'GET', path: url.pathname, watch: url.searchParams.get('watch') === 'true' };
  const body = await bodyOf(req);
  const parsed = proxy.sent === undefined ? undefined : json(body);
  const sent = parsed === undefined ? body : Buffer.from(JSON.stringify(proxy.sent?.(call, parsed)));
  const fault = proxy.fault(call);
  if (fault !== undefined) proxy.faults.set(fault.kind, (proxy.faults.get(fault.kind) ?? 0) + 1);
  if (fault?.kind === 'refused') {
    const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: fault.reason, code: fault.code, message: 'a bad day' };
    const later = fault.retryAfterSeconds === undefined ? {} : { 'retry-after': String(fault.retryAfterSeconds) };
    res.writeHead(fault.code, { 'content-type': 'application/json', ...later }).end(JSON.stringify(status));
    return;
  }
  if (fault?.kind === 'garbage') {
    res.writeHead(200, { 'content-type': 'application/json' }).end('{"kind":"Sta<html>');
    return;
  }
  if (fault?.kind === 'expired') {
    const gone = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'Expired', code: 410, message: 'too old resource version' };
    res.writeHead(200, { 'content-type': 'application/json' }).end(`${JSON.stringify({ type: 'ERROR', object: gone })}\n`);
    return;
  }
  if (fault?.kind === 'slow') await new Promise((resolve) => setTimeout(resolve, fault.ms));
  if (sent !== body) req.headers['content-length'] = String(sent.length);
  const onward = upstream(req);
  res.once('close', () => onward.destroy());
  onward.once('error', () => res.destroy());
  onward.once('response', (answer) => {
    answer.once('error', () => res.destroy());
    const { rewrite } = proxy;
    if (rewrite !== undefined && /json/.test(answer.headers['content-type'] ?? '')) {
      rewritten({ answer, res, watch: call.watch }, rewrite, proxy.bookmarksBefore).catch(() => res.destroy());
      return;
    }
    const left = { bytes: fault?.kind === 'cut' ? fault.bytes : Number.POSITIVE_INFINITY };
    const chunks: Buffer[] = [];
    if (fault?.kind !== 'lost') res.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.on('data', (chunk: Buffer) => {
      if (!call.watch) chunks.push(chunk);
      if (fault?.kind === 'lost') return;
      res.write(chunk.subarray(0, Math.min(chunk.length, left.bytes)));
      left.bytes -= chunk.length;
      // What was written leaves before the connection ends.
      if (left.bytes <= 0) setImmediate(() => res.destroy());
    });
    answer.once('end', () => {
      if (!call.watch) proxy.passed.push({ ...call, code: answer.statusCode ?? 0, sent: json(sent), got: json(Buffer.concat(chunks)) });
      if (fault?.kind === 'lost') res.destroy();
      else res.end();
    });
  });
  onward.end(sent);
}

/** Line by line where it is a watch, else as a whole. */
async function rewritten(
  { answer, res, watch }: { answer: IncomingMessage; res: ServerResponse; watch: boolean },
  rewrite: (object: Record<string, unknown>) => unknown,
  bookmarksBefore: ApiProxy['bookmarksBefore'],
): Promise<void> {
  const { 'content-length': _, ...headers } = answer.headers;
  res.writeHead(answer.statusCode ?? 502, headers);
  const changed = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value;
    const { items, object } = value as { items?: unknown; object?: unknown };
    if (Array.isArray(items)) return { ...value, items: items.map(changed) };
    if (object !== undefined) return { ...value, object: changed(object) };
    return rewrite(value as Record<string, unknown>);
  };
  const send = (text: string): void => void res.write(JSON.stringify(changed(JSON.parse(text))));
  if (!watch) {
    send((await bodyOf(answer)).toString('utf8'));
    res.end();
    return;
  }
  let rest = '';
  for await (const chunk of answer.setEncoding('utf8')) {
    const lines = (rest + String(chunk)).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (bookmarksBefore !== undefined) res.write(bookmarks(line, bookmarksBefore));
      send(line);
      res.write('\n');
    }
  }
  res.end();
}

/** Of the version that the event has. */
function bookmarks(line: string, count: (object: Record<string, unknown>) => number): string {
  const { object } = JSON.parse(line) as { object: { kind: string; apiVersion: string; metadata: { resourceVersion: string } } };
  const { kind, apiVersion, metadata } = object;
  const one = JSON.stringify({ type: 'BOOKMARK', object: { kind, apiVersion, metadata: { resourceVersion: metadata.resourceVersion } } });
  return `${one}\n`.repeat(count(object));
}

async function bodyOf(req: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function json(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}
