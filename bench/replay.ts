/**
 * How long a replay takes: a node of a real cluster (root, after `npm run e2e:setup` and scripts/setup/control-plane-setup.sh) is
 * recorded through busy minutes: bursts, deletions, a crash loop, a runtime that is killed, an API server that is away, injected
 * faults, a `kill -9`. Then `actorctl replay` runs the recording: without a divergence, in how much time and memory.
 * `--rounds` bursts are spread over the minutes. `--keep` names a folder in which the recording stays; `--recorded` one of an earlier
 * run, and nothing is recorded then. Of `--times` replays the middle one counts.
 * Options: --minutes=10 --rounds=8 --pods=40 --keep=DIR --recorded=DIR --times=3 --out=FILE
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDaemon, type Daemon, NODE_NAME } from '../test/e2e/daemon.ts';
import { type ControlPlane, startControlPlane } from '../test/e2e/lab/cluster/controlPlane.ts';
import { startContainerd } from '../test/e2e/lab/containerd.ts';
import { BUSYBOX_IMAGES } from '../test/e2e/lab/images.ts';
import { createAudit } from './lib/audit.ts';
import { cleanUpOnce } from './lib/cleanUp.ts';
import { ClusterView } from './lib/cluster.ts';
import { LONG_MS, Member } from './lib/member.ts';
import { residentPeak } from './lib/peak.ts';
import { numberOption, option, projectRoot, report, say, sleep, until } from './lib/report.ts';

const MINUTES = numberOption('minutes', 10);
const ROUNDS = numberOption('rounds', 8);
const PODS = numberOption('pods', 40);
const KEEP = option('keep');
const RECORDED = option('recorded');
const TIMES = numberOption('times', 3);
const BARS = { timesAsFast: 30, mib: 600 } as const;
const AWAY_MS = 8_000;
/** Of each burst: the others stay until the next. */
const DELETED_SHARE = 0.75;

interface Replayed {
  file: string;
  same: boolean;
  inputs: number;
  ms: number;
  tookMs: number;
  divergence: object | null;
}

const crashing = {
  metadata: { name: 'crashes' },
  spec: { containers: [{ name: 'main', image: BUSYBOX_IMAGES[1], imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', 'exit 3'] }] },
};

/** What becomes of the node in the middle of a round. */
const MISHAPS: readonly ((m: Member, server: ControlPlane) => Promise<void>)[] = [
  async ({ lab }) => {
    await lab.kill();
    await sleep(AWAY_MS);
    await lab.start();
  },
  async (_, server) => {
    server.freeze('kube-apiserver', true);
    await sleep(AWAY_MS);
    server.freeze('kube-apiserver', false);
  },
  async (m) => {
    const lasting = ['--probability', '0.3', '--for', `${AWAY_MS / 1_000}s`];
    await m.daemon.ctl('inject', 'cri', '--error', 'Unavailable', ...lasting);
    await m.daemon.ctl('inject', 'disk', '--error', 'EIO', ...lasting);
    await m.daemon.ctl('inject', 'kill', 'pods/podManager');
  },
  async (m) => {
    await m.kill();
    await m.healthy();
  },
];

/** One round: a burst, a mishap while its last pods start, and all of it deleted. */
async function round(m: Member, n: number, server: ControlPlane): Promise<void> {
  const made = await m.create(`burst${n}`, PODS, { probed: n % 2 === 0 });
  await m.view.ready(made.slice(0, PODS / 2), LONG_MS);
  await MISHAPS[n % MISHAPS.length]?.(m, server);
  await m.view.ready(made, LONG_MS);
  const leaving = made.slice(0, Math.round(PODS * DELETED_SHARE));
  await m.remove(leaving);
  await m.view.gone(leaving, LONG_MS);
  const rest = made.slice(leaving.length);
  await m.remove(rest);
  await m.view.gone(rest, LONG_MS);
}

/** Leaves a recording of the minutes in the folder. */
async function record(folder: string): Promise<void> {
  const audit = createAudit(NODE_NAME);
  const lab = await startContainerd();
  let plane: ControlPlane | undefined;
  let daemon: Daemon | undefined;
  let view: ClusterView | undefined;
  const cleanUp = cleanUpOnce(async () => {
    view?.close();
    await daemon?.dispose();
    await plane?.stop();
    audit.remove();
    return lab.stop();
  });
  try {
    plane = await startControlPlane({ controllerManager: true, scheduler: true, flags: { 'kube-apiserver': audit.flags } });
    const config = { cgroupRoot: lab.cgroupParent, cgroupsPerQOS: false, enforceNodeAllocatable: [], maxPods: 2 * PODS + 10 };
    const args = ['--kubeconfig', plane.nodeKubeconfig(NODE_NAME), `--actorlet-record-inputs=${folder}`, '--actorlet-fault-injection'];
    daemon = await createDaemon(lab, { ...config, kubeAPIQPS: 50, kubeAPIBurst: 100 }, args);
    await daemon.start();
    view = await ClusterView.open(plane);
    const server = plane;
    await until('the service account', async () => ((await server.hasAccount()) ? true : undefined), { timeoutMs: 90_000, everyMs: 200 });
    const member = new Member({ lab, daemon, view, audit });
    await view.create(crashing);
    const began = performance.now();
    for (let n = 0; n < ROUNDS; n++) {
      say(`round ${n}`);
      await round(member, n, server);
      await sleep(began + ((n + 1) * MINUTES * 60_000) / ROUNDS - performance.now());
    }
    await daemon.end('SIGTERM');
  } finally {
    await cleanUp();
  }
}

async function replayed(folder: string): Promise<{ runs: Replayed[]; tookMs: number; peakMiB: number }> {
  const child = spawn(join(projectRoot, 'bin/actorctl'), ['replay', folder, '--json'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const peak = residentPeak(child.pid ?? 0);
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += String(chunk);
  });
  await once(child, 'close');
  const peakMiB = peak();
  // One document for each file.
  const runs = text
    .split(/^(?=\{)/m)
    .filter((part) => part.trim() !== '')
    .map((part) => JSON.parse(part) as Replayed);
  return { runs, tookMs: runs.reduce((sum, run) => sum + run.tookMs, 0), peakMiB };
}

const scratch = mkdtempSync(join(tmpdir(), 'actorlet-bench-replay-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
const folder = RECORDED ?? KEEP ?? scratch;
mkdirSync(folder, { recursive: true });
if (RECORDED === undefined) await record(folder);
const all = [];
for (let n = 0; n < TIMES; n++) all.push(await replayed(folder));
const middle = all.toSorted((a, b) => a.tookMs - b.tookMs)[Math.floor(TIMES / 2)];
if (middle === undefined) throw new Error('--times: at least 1');
const { runs, tookMs } = middle;
const ms = runs.reduce((sum, run) => sum + run.ms, 0);
await report('replay', {
  bars: BARS,
  recordedMinutes: ms / 60_000,
  inputs: runs.reduce((sum, run) => sum + run.inputs, 0),
  divergences: all.flatMap((one) => one.runs.filter((run) => !run.same).map((run) => run.divergence)),
  tookMs: all.map((one) => one.tookMs),
  timesAsFast: ms / tookMs,
  peakMiB: Math.max(...all.map((one) => one.peakMiB)),
});
