/**
 * A node under everything at once: hostile manifests and pods of the API, silent connections, guessed tokens; beside them
 * good pods and callers with valid tokens. Returns what was measured; judging is the caller's.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { freePort } from '../../../freePort.ts';
import { createDaemon, type Daemon } from '../../daemon.ts';
import { manifest, steady } from '../../manifests.ts';
import type { Containerd } from '../containerd.ts';
import { Authority } from '../pki.ts';
import type { RoleOptions, Witnessed } from './callers.ts';
import { BOMB, hostileApiPod, hostileManifests } from './hostilePods.ts';
import { GOOD_TOKEN, startKubeServer, writeKubeconfig } from './kubeServer.ts';

export interface FloodOptions {
  manifests: number;
  apiPods: number;
  silent: number;
  guessers: number;
  bearers: number;
  goodPods: number;
  seconds: number;
  say(text: string): void;
}
interface Latencies {
  p50: number;
  p99: number;
  max: number;
  asked: number;
}
export interface FloodResult {
  healthzMs: Latencies;
  /** The same question to an empty HTTP server of Node in the same seconds: what the machine itself allows. */
  bareMs: Latencies;
  /** /healthz of the kubelet's API to callers with valid tokens: the main thread's part, TLS and authentication among it. */
  apiMs: Latencies;
  healthzFailed: string[];
  residentMiB: { before: number; max: number; after: number };
  /** Of good pods. */
  unaffected: number;
  restarts: number;
  /** Tokens that were never let in, and how often a valid token was called invalid. */
  lockedOut: number;
  called401: number;
  bearerAnswers: Record<string, number>;
  exits: number;
  /** From the start of the process to the first good answer of /healthz. */
  startMs: { empty: number; flooded: number };
  /** From that answer until /pods shows every good pod as running; null: not within {@link SHOWN_MS}. */
  shownMs: number | null;
  apiPodsJudged: number;
}

const NS = '/api/v1/namespaces/default';
const LONG_MS = 180_000;
/** Thousands of others are judged before them. */
const SHOWN_MS = 150_000;
/** /pods of the flooded node is some 10 MiB: asking all the time is a flood of its own. */
const LOOK_MS = 500;
const SAMPLE_MS = 250;
const MIB = 1024;

function resident(pid: number | undefined): number {
  if (pid === undefined) return Number.NaN;
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? Number.NaN) / MIB;
}
function startedIn(daemon: Daemon): Promise<number> {
  const began = performance.now();
  return daemon.start().then(() => performance.now() - began);
}
function worker(data: RoleOptions): Worker {
  return new Worker(new URL('./callers.ts', import.meta.url), { workerData: data });
}
const message = <T>(w: Worker): Promise<T> =>
  new Promise((resolve, reject) => {
    w.once('message', resolve);
    w.once('error', reject);
  });
function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;
}

function latencies(ms: readonly number[]): Latencies {
  const sorted = ms.toSorted((a, b) => a - b);
  return { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99), max: sorted.at(-1) ?? Number.NaN, asked: sorted.length };
}

export async function flood(lab: Pick<Containerd, 'endpoint'>, o: FloodOptions): Promise<FloodResult> {
  const port = await freePort();
  const pki = mkdtempSync(join(tmpdir(), 'actorlet-flood-'));
  const ca = new Authority(pki, 'ca');
  const kube = await startKubeServer(ca.issue('api', { name: 'api', hosts: ['127.0.0.1'] }));
  const kubeconfig = writeKubeconfig(pki, kube.server, ca.certFile);
  const authentication = { webhook: { enabled: true }, anonymous: { enabled: false } };
  const config = { enableServer: true, port, authentication, authorization: { mode: 'AlwaysAllow' } };
  const daemon = await createDaemon(lab, config, [`--kubeconfig=${kubeconfig}`, '--node-ip=127.0.0.1']);
  const { healthzPort } = daemon;
  const workers: Worker[] = [];
  try {
    const names = Array.from({ length: o.goodPods }, (_, i) => `good-${i}`);
    for (const name of names) daemon.put(`${name}.yaml`, manifest(name, [steady()]));
    const empty = await startedIn(daemon);
    const goodOnes = async () =>
      (await daemon.pods({ timeoutMs: LONG_MS })).filter((p) => p.metadata.name.startsWith('good-') && p.status.phase === 'Running');
    await daemon.wait('the good pods to run', async () => (await goodOnes()).length === o.goodPods, { timeoutMs: LONG_MS });
    const ids = async () => (await goodOnes()).map((p) => p.status.containerStatuses?.[0]?.containerID ?? '').sort();
    const before = await ids();
    const residentBefore = resident(daemon.pid);
    let most = residentBefore;
    let exits = 0;
    const sampler = setInterval(() => {
      if (daemon.alive()) most = Math.max(most, resident(daemon.pid));
      else exits++;
    }, SAMPLE_MS);

    o.say(`${o.silent} silent connections and ${o.guessers} guessers`);
    const crowd = worker({ role: 'crowd', port, healthzPort, silent: o.silent, guessers: o.guessers });
    workers.push(crowd);
    await message(crowd);
    const tokens = Array.from({ length: o.bearers }, (_, i) => `${GOOD_TOKEN}${i}`);
    const bare = worker({ role: 'bare' });
    workers.push(bare);
    const barePort = await message<number>(bare);
    const witness = worker({ role: 'witness', port, healthzPort, barePort, tokens, seconds: o.seconds });
    workers.push(witness);
    const witnessed = message<Witnessed>(witness);
    o.say(`${o.manifests} hostile manifests and ${o.apiPods} pods of the API`);
    kube.handle({ verb: 'POST', path: `${NS}/configmaps`, body: BOMB });
    const files = hostileManifests(o.manifests);
    for (let i = 0; i < Math.max(files.length, o.apiPods); i++) {
      const file = files[i];
      if (file !== undefined) writeFileSync(join(daemon.manifests, file.name), file.text);
      if (i < o.apiPods) kube.handle({ verb: 'POST', path: `${NS}/pods`, body: hostileApiPod(i) });
      if (i % 50 === 49) await sleep(10);
    }
    const { healthzMs, healthzFailed, bareMs, bearers, apiMs } = await witnessed;
    const judged = (): number => {
      const list = kube.handle({ verb: 'GET', path: `${NS}/pods` }) as {
        body: { items: { status?: { phase?: string }; metadata: { name: string } }[] };
      };
      return list.body.items.filter(
        (p) => p.metadata.name.startsWith('bad-') && p.status?.phase !== undefined && p.status.phase !== 'Pending',
      ).length;
    };
    const apiPodsJudged = judged();
    const after = await daemon.wait('the good pods to be listed', ids);
    const residentAfter = resident(daemon.pid);
    o.say('the start with all of that in place');
    clearInterval(sampler);
    await daemon.end('SIGKILL');
    const flooded = await startedIn(daemon);
    // On an embedded runtime they ended with the daemon, and others may have their places.
    const answered = performance.now();
    const shown = daemon.wait('the good pods', async () => (await goodOnes()).length === o.goodPods && (await ids()), {
      timeoutMs: SHOWN_MS,
      everyMs: LOOK_MS,
    });
    let shownMs: number | null = null;
    void shown.then(
      () => {
        shownMs = performance.now() - answered;
      },
      () => {},
    );
    const last = await shown.catch((error: unknown): string[] => {
      o.say(String(error).split('\n')[0] ?? '');
      return [];
    });
    const answers: Record<string, number> = {};
    for (const of of Object.values(bearers)) for (const [code, n] of Object.entries(of)) answers[code] = (answers[code] ?? 0) + n;
    return {
      healthzMs: latencies(healthzMs),
      bareMs: latencies(bareMs),
      apiMs: latencies(apiMs),
      healthzFailed: [...new Set(healthzFailed)].slice(0, 5),
      residentMiB: { before: residentBefore, max: most, after: residentAfter },
      unaffected: before.filter((id) => after.includes(id) && last.includes(id)).length,
      restarts: (await daemon.wait('the pods to be listed', goodOnes)).reduce(
        (sum, p) => sum + (p.status.containerStatuses?.[0]?.restartCount ?? 0),
        0,
      ),
      lockedOut: Object.values(bearers).filter((a) => (a['200'] ?? 0) === 0).length,
      called401: answers['401'] ?? 0,
      bearerAnswers: answers,
      exits,
      startMs: { empty, flooded },
      shownMs,
      apiPodsJudged,
    };
  } finally {
    for (const w of workers) await w.terminate();
    await daemon.dispose();
    await kube.close();
    rmSync(pki, { recursive: true });
  }
}
