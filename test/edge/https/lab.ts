/** The API server of a node on a loopback port with real TLS, real files and a runtime and an API server that the test plays. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import type { RecorderEntry } from '@actorlet/kubelet/machines/recorder/recorderEntry.ts';
import { shownPages } from '@actorlet/shown/src/extension.ts';
import { type HttpsOptions, httpsServerSpec } from '../../../src/actors/edge/https/https.ts';
import type { Inspect } from '../../../src/actors/edge/server.ts';
import type { Subject } from '../../../src/boot/dependencies/certificates/x509.ts';
import { createClock, createEntropy } from '../../../src/boot/dependencies/clock.ts';
import { createGrpcCsi } from '../../../src/boot/dependencies/csi/grpcCsi.ts';
import { createHostFs } from '../../../src/boot/dependencies/fs.ts';
import { createDiskUsage } from '../../../src/boot/dependencies/machine/diskUsage.ts';
import { createSys } from '../../../src/boot/dependencies/machine/sys.ts';
import { createMetrics } from '../../../src/boot/dependencies/metrics/metrics.ts';
import { createNet } from '../../../src/boot/dependencies/net/net.ts';
import { type CertificateRequest, issueCertificate } from '../../../src/boot/process/selfSigned.ts';
import type { KubeRequest, KubeResult } from '../../../src/machines/kube/request.ts';
import { type CriResult, criAddr } from '../../../src/machines/runtime/cri/messages.ts';
import type { CriMethod } from '../../../src/machines/wire/criCalls.ts';
import type { KubeApi } from '../../../src/ports/kube.ts';
import type { Journal } from '../../../src/ports/machine/journal.ts';
import type { Clock, Profiler } from '../../../src/ports/ports.ts';
import { fakePorts } from '../../supervision/fakePorts.ts';
import { NO_FIGURES, run, sampleTree, stateAt, until, views } from '../harness.ts';

const RECORDED: RecorderEntry = {
  ...{ n: 0, atMs: 0, kind: 'note', path: 'node', what: 'line of the recorder', detail: '', from: '', causes: [] },
};

const HOUR_MS = 3_600_000;
const NET_WAIT_MS = 20_000;

const rsa = (): { privateKey: KeyObject; publicKey: KeyObject } => generateKeyPairSync('rsa', { modulusLength: 2048 });
/** One key serves every leaf: what is tested is who signed what. */
const LEAF = rsa();

export class TestCa {
  readonly subject: Subject;
  readonly keys = rsa();
  readonly pem: string;
  constructor(commonName: string) {
    this.subject = { commonName };
    this.pem = this.#sign({ subject: this.subject, publicKey: this.keys.publicKey, use: 'ca' });
  }
  #sign(o: Pick<CertificateRequest, 'subject' | 'publicKey' | 'use'> & { notAfterMs?: number }): string {
    const now = Date.now();
    return issueCertificate({
      notBeforeMs: now - 2 * HOUR_MS,
      notAfterMs: now + HOUR_MS,
      ...o,
      issuer: { subject: this.subject, keys: this.keys },
    });
  }
  leaf(subject: Subject, use: CertificateRequest['use'] = 'client', notAfterMs = Date.now() + HOUR_MS): { cert: string; key: string } {
    const cert = this.#sign({ subject, publicKey: LEAF.publicKey, use, notAfterMs });
    return { cert, key: String(LEAF.privateKey.export({ type: 'pkcs8', format: 'pem' })) };
  }
}

const FLAGZ = { flagz: () => ({ port: '10250', address: '0.0.0.0' }), started: { wallMs: Date.UTC(2026, 10, 2, 3, 4, 5), monoMs: 0 } };

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}
export interface Ask {
  method?: string;
  headers?: Record<string, string>;
  client?: { cert: string; key: string };
  body?: string | Buffer;
  /** One of loopback's: whose request it is. */
  localAddress?: string;
}

export interface Lab {
  dir: string;
  port: number;
  registry: ReturnType<typeof views>;
  ports: ReturnType<typeof fakePorts>;
  actor: ReturnType<typeof run>;
  /** Answers of the runtime; what is missing is refused. */
  cri: Partial<Record<CriMethod, (req: never) => unknown>>;
  /** Every call of the runtime, in order. */
  calls: { method: CriMethod; request: unknown }[];
  /** Moves both clocks on. */
  skip(ms: number): void;
  /** Fires the long timers that wait now, as if their time were over. */
  fireLongTimers(): void;
  ask(path: string, o?: Ask): Promise<Answer>;
  /** The connection after a switch of protocols, or the answer there was instead. */
  upgrade(path: string, o?: Ask): Promise<{ res: IncomingMessage; socket: Duplex; head: Buffer } | Answer>;
  /** A request whose sender goes away. */
  abandon(path: string, o?: Ask): { goAway(): void };
  stop(): Promise<void>;
}

export const serverCa = new TestCa('serving-ca');
export const clientCa = new TestCa('client-ca');

/** Timers from here on are the test's to fire. */
const LONG_MS = 5_000;

export async function startLab(
  o: Partial<HttpsOptions> & {
    kube?: (r: KubeRequest) => KubeResult | Promise<KubeResult>;
    withClientCa?: boolean;
    profiler?: Profiler;
    journal?: Journal;
    setVerbosity?: (verbosity: number) => void;
  } = {},
): Promise<Lab> {
  const { kube, withClientCa, profiler, setVerbosity, journal, ...options } = o;
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-https-'));
  const serving = serverCa.leaf({ commonName: 'node' }, { host: '127.0.0.1' });
  writeFileSync(join(dir, 'tls.crt'), serving.cert);
  writeFileSync(join(dir, 'tls.key'), serving.key);
  writeFileSync(join(dir, 'ca.crt'), clientCa.pem);
  for (const sub of ['pods', 'log']) mkdirSync(join(dir, sub));
  let skewMs = 0;
  const long = new Set<() => void>();
  const clock: Clock = {
    wallMs: () => Date.now() + skewMs,
    monoMs: () => performance.now() + skewMs,
    setTimeout: (fn, ms) => {
      if (ms < LONG_MS) return setTimeout(fn, ms);
      long.add(fn);
      return fn;
    },
    clearTimeout: (id) => {
      if (typeof id === 'function') long.delete(id as () => void);
      else clearTimeout(id as NodeJS.Timeout);
    },
  };
  const ports = fakePorts({
    clock,
    net: createNet(),
    fs: createHostFs(),
    sys: createSys({ notify: () => false }),
    entropy: createEntropy(),
    metrics: createMetrics(),
    diskUsage: createDiskUsage({ clock: createClock() }),
    csi: createGrpcCsi({ clock: createClock() }),
    ...(kube === undefined ? {} : { kube: kubeOf(kube) }),
    ...(profiler === undefined ? {} : { profiler }),
    ...(journal === undefined ? {} : { journal }),
  });
  if (setVerbosity !== undefined) Object.assign(ports.log, { setVerbosity });
  const registry = views();
  const lab: Pick<Lab, 'cri' | 'calls'> = { cri: {}, calls: [] };
  registry.answerer = (to, event) => {
    if (to !== criAddr.path || !('calls' in event)) return { kind: 'lost', reason: 'no such actor here' };
    const calls = event.calls as { method: CriMethod; request: unknown }[];
    return { kind: 'reply', value: calls.map((c) => answerOf(lab, c)) };
  };
  const inspect: Inspect = {
    state: () => sampleTree(),
    stateAt: (path: string) => stateAt(sampleTree(), path),
    recorder: () => ({ entries: [RECORDED], overwritten: 0 }),
    configz: () => ({ port: 10250 }),
    ...FLAGZ,
  };
  const spec = httpsServerSpec({
    own: shownPages({ inspect, config: { config: { podLogsDir: '' } } }).pages,
    host: '127.0.0.1',
    port: 0,
    certFile: join(dir, 'tls.crt'),
    keyFile: join(dir, 'tls.key'),
    clientCaFile: withClientCa === false ? '' : join(dir, 'ca.crt'),
    minVersion: 'TLSv1.2',
    cipherSuites: [],
    curves: [],
    authentication: { webhook: { enabled: true, cacheTtlMs: 120_000 }, anonymous: false },
    authorization: { mode: 'AlwaysAllow', allowedTtlMs: 300_000, deniedTtlMs: 30_000 },
    fineGrained: true,
    inspect,
    nodeName: 'n1',
    build: { major: '1', minor: '36', gitVersion: 'v1.36.0', gitCommit: '', buildDate: '', platform: '' },
    rootDir: dir,
    podLogsDir: join(dir, 'pods'),
    hostLogsDir: join(dir, 'log'),
    syncFrequencyMs: 60_000,
    runtimeRequestTimeoutMs: 10_000,
    volumeStats: { periodMs: 60_000, health: false },
    ...NO_FIGURES,
    debugging: true,
    checkpoints: true,
    webSockets: true,
    statusz: true,
    flagz: true,
    systemLogs: true,
    systemLogQuery: false,
    profiling: true,
    debugFlags: true,
    ...options,
  });
  const actor = run(spec, ports, registry);
  const address = (): string => ports.lines.map((l) => String(l.fields.address ?? '')).find((a) => a !== '') ?? '';
  await until(() => address() !== '' || actor.value() === 'blocked', NET_WAIT_MS);
  const port = Number(address().split(':')[1] ?? 0);
  const send = (path: string, a: Ask) =>
    request({
      host: '127.0.0.1',
      port,
      path,
      method: a.method ?? 'GET',
      headers: a.headers ?? {},
      ca: serverCa.pem,
      agent: false,
      timeout: NET_WAIT_MS,
      ...(a.localAddress === undefined ? {} : { localAddress: a.localAddress }),
      ...(a.client ?? {}),
    });
  return Object.assign(lab, {
    dir,
    port,
    registry,
    ports,
    actor,
    skip: (ms: number) => {
      skewMs += ms;
    },
    fireLongTimers: () => {
      const due = [...long];
      long.clear();
      for (const fn of due) fn();
    },
    ask: (path: string, a: Ask = {}) =>
      new Promise<Answer>((resolve, reject) => {
        const req = send(path, a);
        req.once('error', reject);
        req.once('timeout', () => req.destroy(new Error(`${path}: no answer`)));
        req.once('response', (res) => void collect(res).then(resolve, reject));
        req.end(a.body);
      }),
    upgrade: (path: string, a: Ask = {}) =>
      new Promise<Awaited<ReturnType<Lab['upgrade']>>>((resolve, reject) => {
        const req = send(path, { ...a, headers: { connection: 'Upgrade', upgrade: 'SPDY/3.1', ...a.headers } });
        req.once('error', reject);
        req.once('timeout', () => req.destroy(new Error(`${path}: no answer`)));
        req.once('upgrade', (res, socket, head) => resolve({ res, socket, head }));
        req.once('response', (res) => void collect(res).then(resolve, reject));
        req.end(a.body);
      }),
    abandon: (path: string, a: Ask = {}) => {
      const req = send(path, a);
      req.on('error', () => undefined);
      req.end(a.body);
      return { goAway: () => void req.destroy() };
    },
    stop: async () => {
      await actor.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  });
}

function kubeOf(answer: (r: KubeRequest) => KubeResult | Promise<KubeResult>): KubeApi {
  const none = () => Promise.reject(new Error('not played here'));
  return {
    server: 'https://test',
    request: async (r) => answer(r),
    watch: none,
    closeConnections: () => undefined,
    close: () => undefined,
  };
}

function answerOf(lab: Pick<Lab, 'cri' | 'calls'>, c: { method: CriMethod; request: unknown }): CriResult {
  lab.calls.push(c);
  const answer = lab.cri[c.method];
  if (answer === undefined)
    return { ok: false, error: { method: c.method, code: 14, outcome: 'failed', details: `${c.method} is not played here` } };
  try {
    return { ok: true, value: answer(c.request as never) };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? Number(error.code) : 2;
    return {
      ok: false,
      error: { method: c.method, code, outcome: 'failed', details: error instanceof Error ? error.message : String(error) },
    };
  }
}

async function collect(res: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  for await (const chunk of res) chunks.push(chunk as Buffer);
  return { status: res.statusCode ?? 0, headers: res.headers, body: Buffer.concat(chunks).toString('utf8') };
}
