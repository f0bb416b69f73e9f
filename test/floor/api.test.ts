/**
 * The kubelet's API of a whole daemon on the embedded runtime: a certificate of its own, client certificates, real pods.
 * Needs neither root nor a container runtime.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stopAll } from '@actorlet/runtimes/src/process/admin.ts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { ENTRY } from '../../packages/runtimes/test/processRuntime.ts';
import { openStreams, resultOf } from '../../packages/runtimes/test/remoteClient.ts';
import { issueCertificate } from '../../src/boot/process/selfSigned.ts';
import { type Answer, askHttps } from '../askHttps.ts';
import { freePort } from '../freePort.ts';
import { DAEMON } from '../programs.ts';

const WAIT_MS = 60_000;
const NODE = 'api-node';
let dir = '';
let port = 0;
let daemon: ChildProcess | undefined;
let client: { cert: string; key: string };

const log = (): string => readFileSync(join(dir, 'daemon.log'), { encoding: 'utf8', flag: 'a+' });
async function until<T>(what: string, probe: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const deadline = performance.now() + WAIT_MS;
  for (let last: unknown; ; ) {
    try {
      const value = await probe();
      if (value !== undefined) return value;
    } catch (error) {
      last = error;
    }
    if (performance.now() > deadline) throw new Error(`waited ${WAIT_MS} ms for ${what}; ${String(last)}\n${log().slice(-3000)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Trusts what the daemon made for itself, and checks the name in it. */
const options = (path: string, o: { method?: string; anonymous?: boolean; headers?: Record<string, string> } = {}) => ({
  ...{ host: '127.0.0.1', servername: NODE, port, path, method: o.method ?? 'GET', headers: o.headers ?? {}, agent: false as const },
  ca: readFileSync(join(dir, 'pki/kubelet.crt')),
  ...(o.anonymous === true ? {} : client),
});
const ask = (path: string, o: Parameters<typeof options>[1] = {}): Promise<Answer> => askHttps(options(path, o));

async function startDaemon(): Promise<void> {
  const args = [`--root-dir=${join(dir, 'root')}`, `--cert-dir=${join(dir, 'pki')}`, `--config=${join(dir, 'config.yaml')}`];
  const child = spawn(process.execPath, [DAEMON, ...args, `--hostname-override=${NODE}`], { stdio: ['ignore', 'pipe', 'pipe'] });
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (d: Buffer) => writeFileSync(join(dir, 'daemon.log'), d, { flag: 'a' }));
  daemon = child;
  await until('the API to answer', async () => {
    if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode}`);
    return (await ask('/healthz')).status === 200 || undefined;
  });
}
async function stopDaemon(signal: NodeJS.Signals): Promise<void> {
  const child = daemon;
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill(signal);
  await ended;
}

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-api-'));
  mkdirSync(join(dir, 'manifests'));
  port = await freePort();
  const keys = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const times = { notBeforeMs: Date.now() - 60_000, notAfterMs: Date.now() + 3_600_000 };
  const issuer = { subject: { commonName: 'clients' }, keys };
  const ca = issueCertificate({ ...times, issuer, subject: issuer.subject, publicKey: keys.publicKey, use: 'ca' });
  const cert = issueCertificate({ ...times, issuer, subject: { commonName: 'ann' }, publicKey: keys.publicKey, use: 'client' });
  client = { cert, key: String(keys.privateKey.export({ type: 'pkcs8', format: 'pem' })) };
  writeFileSync(join(dir, 'ca.crt'), ca);
  const config = {
    ...{ apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', containerRuntimeEndpoint: 'embedded://process' },
    ...{ staticPodPath: join(dir, 'manifests'), podLogsDir: join(dir, 'logs/pods'), address: '127.0.0.1', port, healthzPort: 0 },
    ...{ cgroupsPerQOS: false, enforceNodeAllocatable: [], failSwapOn: false, authorization: { mode: 'AlwaysAllow' } },
    authentication: { x509: { clientCAFile: join(dir, 'ca.crt') }, webhook: { enabled: false } },
  };
  writeFileSync(join(dir, 'config.yaml'), JSON.stringify(config));
  const script = 'echo started; trap "echo ending; exit 0" TERM; while :; do sleep 3600 & wait; done';
  const containers = [{ name: 'main', image: 'actorlet.dev/host:latest', command: ['sh', '-c', script] }];
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec: { terminationGracePeriodSeconds: 5, containers } };
  writeFileSync(join(dir, 'manifests/web.json'), JSON.stringify(pod));
  await startDaemon();
  await until('the pod to run', async () => {
    const { items } = JSON.parse((await ask('/pods')).body) as { items: { status?: { phase?: string } }[] | null };
    return items?.[0]?.status?.phase === 'Running' || undefined;
  });
}, 120_000);
afterAll(async () => {
  await stopDaemon('SIGKILL');
  await stopAll(join(dir, 'root'), { execPath: process.execPath, entry: ENTRY, say: () => undefined });
  rmSync(dir, { recursive: true, force: true });
}, 60_000);

it('makes a certificate for its own name, its key for nobody else, and keeps both', async () => {
  expect(statSync(join(dir, 'pki/kubelet.key')).mode & 0o777).toBe(0o600);
  expect(statSync(join(dir, 'pki/kubelet.crt')).mode & 0o777).toBe(0o644);
  const before = readFileSync(join(dir, 'pki/kubelet.crt'), 'utf8');
  await stopDaemon('SIGTERM');
  await startDaemon();
  expect(readFileSync(join(dir, 'pki/kubelet.crt'), 'utf8')).toBe(before);
}, 120_000);

it('answers 401 to whoever has no certificate, and what it has to whoever has one', async () => {
  for (const path of ['/pods', '/healthz', '/statez', '/stats/summary', `/containerLogs/default/web-${NODE}/main`]) {
    expect(await ask(path, { anonymous: true })).toEqual({ status: 401, body: 'Unauthorized' });
  }
  expect(JSON.parse((await ask('/configz')).body)).toMatchObject({ kubeletconfig: { authorization: { mode: 'AlwaysAllow' } } });
  expect((await ask('/statez?text')).body).toContain('https');
});

it('gives logs, statistics and running pods of a real pod', async () => {
  const logs = `/containerLogs/default/web-${NODE}/main`;
  await until('the log', async () => (await ask(logs)).body === 'started\n' || undefined);
  expect((await ask(`${logs}?limitBytes=3`)).body).toBe('sta');
  await until('statistics', async () => {
    const summary = JSON.parse((await ask('/stats/summary')).body) as {
      pods: { containers: { memory?: { workingSetBytes?: number } }[] }[];
    };
    return (summary.pods[0]?.containers[0]?.memory?.workingSetBytes ?? 0) > 0 || undefined;
  });
  expect((await ask('/metrics/resource')).body).toMatch(
    /^pod_memory_working_set_bytes\{namespace="default",pod="web-api-node"\} \d+ \d+$/m,
  );
  expect((await ask('/runningpods/')).body).toContain(`"web-${NODE}"`);
});

it('runs commands in a container, at once or over an upgraded connection', async () => {
  expect(await ask(`/run/default/web-${NODE}/main?cmd=echo%20hello`, { method: 'POST' })).toEqual({ status: 200, body: 'hello\n' });
  expect((await ask(`/run/default/web-${NODE}/main?cmd=false`, { method: 'POST' })).status).toBe(500);
  const path = `/exec/default/web-${NODE}/main?command=sh&command=-c&command=echo%20streamed%3B%20exit%204&output=1`;
  const streams = await openStreams(options(path), { names: ['error', 'stdout'], secure: true });
  await streams.closed;
  expect(resultOf(streams)).toMatchObject({ stdout: 'streamed\n', exitCode: 4 });
});

it.each(['v4.channel.k8s.io', 'v4.base64.channel.k8s.io'])('passes %s on to the runtime over WebSocket', async (protocol) => {
  const { host, port, path, ...tls } = options(`/exec/default/web-${NODE}/main?command=echo&command=streamed&output=1`);
  const ws = new WebSocket(`wss://${host}:${port}${path}`, [protocol], tls);
  const said: string[] = [];
  ws.on('message', (raw: Buffer, isBinary) =>
    said.push(isBinary ? raw.toString('latin1', 1) : Buffer.from(raw.toString('latin1', 1), 'base64').toString()),
  );
  await new Promise((resolve, reject) => ws.once('close', resolve).once('error', reject));
  expect([ws.protocol, said.join('')]).toEqual([protocol, 'streamed\n{"metadata":{},"status":"Success"}']);
});

it('follows a log to the end of its container', async () => {
  const followed = ask(`/containerLogs/default/web-${NODE}/main?follow=true`);
  rmSync(join(dir, 'manifests/web.json'));
  const { body } = await followed;
  expect(body).toBe('started\nending\n');
});
