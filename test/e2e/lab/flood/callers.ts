/**
 * Worker threads of the flood, so that no part of it slows another's clock: `crowd` holds silent connections open and
 * guesses tokens; `witness` asks /healthz and, with valid tokens, the kubelet's API, and measures; `bare` is an HTTP server
 * that does nothing else, for comparison.
 */
import { createServer } from 'node:http';
import { request } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

export interface CrowdOptions {
  role: 'crowd';
  port: number;
  healthzPort: number;
  silent: number;
  guessers: number;
}
export interface WitnessOptions {
  role: 'witness';
  port: number;
  healthzPort: number;
  barePort: number;
  tokens: readonly string[];
  seconds: number;
}
export type RoleOptions = CrowdOptions | WitnessOptions | { role: 'bare' };
export interface Witnessed {
  /** One of each answer of /healthz, in ms. */
  healthzMs: number[];
  healthzFailed: string[];
  /** The same of the server that does nothing else. */
  bareMs: number[];
  /** By token: status codes of the answers, or error codes. */
  bearers: Record<string, Record<string, number>>;
  /** One of each answer to them of /healthz of the kubelet's API, a connection each, in ms. */
  apiMs: number[];
}

const REOPEN_MS = 1_000;
const HEALTHZ_EVERY_MS = 50;
const BEARER_EVERY_MS = 1_000;
const TIMEOUT_MS = 10_000;
/** The beginning of a TLS handshake that never goes on. */
const HELLO = Buffer.from('16030100c8010000c40303', 'hex');

function silent(port: number, i: number): void {
  const socket = connect({ host: '127.0.0.1', port }, () => void (i % 3 === 0 && socket.write(HELLO)));
  socket.on('error', () => {});
  socket.on('close', () => setTimeout(() => silent(port, i), REOPEN_MS).unref());
}
function ask(port: number, token: string, path = '/healthz'): Promise<string> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${token}` };
    const req = request({ host: '127.0.0.1', port, path, headers, rejectUnauthorized: false, agent: false, timeout: TIMEOUT_MS }, (res) => {
      res.resume();
      res.once('close', () => resolve(String(res.statusCode)));
    });
    req.on('timeout', () => req.destroy(new Error('timeout')));
    req.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    req.end();
  });
}
async function guess(port: number, i: number): Promise<never> {
  for (let n = 0; ; n++) {
    const answer = await ask(port, `guess-${i}-${n}`);
    // Refused connections cost the guesser nothing, and a test nothing to learn.
    if (!/^\d+$/.test(answer)) await sleep(100);
  }
}

async function crowd({ port, healthzPort, silent: count, guessers }: CrowdOptions): Promise<void> {
  for (let i = 0; i < count; i++) {
    silent(i % 4 === 3 ? healthzPort : port, i);
    if (i % 100 === 99) await sleep(10);
  }
  for (let i = 0; i < guessers; i++) void guess(port, i);
  parentPort?.postMessage('ready');
}

async function witness({ port, healthzPort, barePort, tokens, seconds }: WitnessOptions): Promise<void> {
  const result: Witnessed = { healthzMs: [], healthzFailed: [], bareMs: [], bearers: {}, apiMs: [] };
  const until = performance.now() + seconds * 1_000;
  const healthz = async (of: number, took: number[]): Promise<void> => {
    while (performance.now() < until) {
      const began = performance.now();
      try {
        const answer = await fetch(`http://127.0.0.1:${of}/healthz`, {
          signal: AbortSignal.timeout(TIMEOUT_MS),
          headers: { connection: 'close' },
        });
        const text = await answer.text();
        if (text !== 'ok') result.healthzFailed.push(`${answer.status} ${text.slice(0, 200)}`);
      } catch (error) {
        result.healthzFailed.push(error instanceof Error ? `${error.message} ${String(error.cause ?? '')}` : String(error));
      }
      took.push(performance.now() - began);
      await sleep(HEALTHZ_EVERY_MS);
    }
  };
  // One lists the pods, as an agent of a monitoring does; with thousands of pods each list is some 50 MiB.
  const bearer = async (token: string, i: number): Promise<void> => {
    const answers: Record<string, number> = {};
    result.bearers[token] = answers;
    while (performance.now() < until) {
      const began = performance.now();
      const answer = await ask(port, token, i === 0 ? '/pods' : '/healthz');
      if (i > 0 && answer === '200') result.apiMs.push(performance.now() - began);
      answers[answer] = (answers[answer] ?? 0) + 1;
      await sleep(BEARER_EVERY_MS * (0.5 + Math.random()));
    }
  };
  await Promise.all([healthz(healthzPort, result.healthzMs), healthz(barePort, result.bareMs), ...tokens.map(bearer)]);
  parentPort?.postMessage(result);
}

function bare(): void {
  const server = createServer((_, res) => res.end('ok'));
  server.listen(0, '127.0.0.1', () => parentPort?.postMessage((server.address() as AddressInfo).port));
}

const options = workerData as RoleOptions;
if (options.role === 'crowd') await crowd(options);
else if (options.role === 'witness') await witness(options);
else bare();
