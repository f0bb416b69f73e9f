/**
 * Benchmarks on real containerd (root, after `npm run e2e:setup`), the daemon started as users start it. Times are those
 * the runtime recorded (startedAt, finishedAt), so polling here adds load but no error.
 *   start     manifest renamed into place -> CRI startedAt, one pod at a time
 *   restart   CRI finishedAt -> next startedAt, first restart (no back-off due), one pod at a time
 *   burst     100 static pods at once -> the last startedAt; before that the same pods made by bare CRI calls, all
 *             at the same moment and with no daemon there: what the runtime itself needs on this machine at this hour
 *   steady    CPU and resident memory of all own processes with those 100 pods running, nothing happening
 * Options: --only=start,restart,burst,steady --samples=60 --pods=100 --bursts=3 --minutes=5 --settle-seconds=60 --out=FILE
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CRI_LABELS, type CriContainer, type CriContainerStatus } from '../src/machines/wire/cri.ts';
import { type Containerd, startContainerd } from '../test/e2e/lab/containerd.ts';
import { BUSYBOX_IMAGES } from '../test/e2e/lab/images.ts';
import { bareBurst, bareRemoval, bareStop } from './lib/bare.ts';
import { cleanUpOnce } from './lib/cleanUp.ts';
import { type Daemon, startDaemon } from './lib/daemon.ts';
import { usageOf } from './lib/procs.ts';
import { numberOption, option, report, say, sleep, summary, until } from './lib/report.ts';

const only = new Set((option('only') ?? 'start,restart,burst,steady').split(','));
const samplesWanted = numberOption('samples', 60);
const podCount = numberOption('pods', 100);
const bursts = numberOption('bursts', 3);
const minutes = numberOption('minutes', 5);
const settleSeconds = numberOption('settle-seconds', 60);
const STEADY_EVERY_MS = 10_000;
const GRACE_SECONDS = 2;

const RUN = 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done';

function pod(name: string, script: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels: { app: 'bench' } },
    spec: {
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: GRACE_SECONDS,
      containers: [{ name: 'main', image: BUSYBOX_IMAGES[1], imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', script] }],
    },
  };
}

const call = { timeoutMs: 10_000, signal: new AbortController().signal };
const ms = (nanos: string): number => Number(BigInt(nanos) / 1000n) / 1000;

async function statusOf(lab: Containerd, id: string): Promise<CriContainerStatus> {
  const { status } = await lab.cri.call('ContainerStatus', { containerId: id }, call);
  if (status === null) throw new Error(`container ${id} has no status`);
  return status;
}

/** The same pods without any node agent: the runtime's own time for them. */
async function bare(lab: Containerd, round: number): Promise<number> {
  const logs = mkdtempSync(join(tmpdir(), 'actorlet-bench-bare-'));
  try {
    const pods = await bareBurst(lab, { count: podCount, round, logs, script: RUN });
    await bareStop(lab, pods, GRACE_SECONDS);
    await bareRemoval(lab, pods);
    return Math.max(...pods.map((p) => p.startedMs));
  } finally {
    rmSync(logs, { recursive: true });
  }
}

class Bench {
  readonly lab: Containerd;
  readonly daemon: Daemon;
  constructor(lab: Containerd, daemon: Daemon) {
    this.lab = lab;
    this.daemon = daemon;
  }

  /** Containers of static pods whose manifest name begins with `prefix`. */
  async containers(prefix: string, state?: CriContainer['state']): Promise<CriContainer[]> {
    const { containers } = await this.lab.cri.call('ListContainers', state ? { filter: { state: { state } } } : {}, call);
    return containers.filter((c) => c.labels[CRI_LABELS.podName]?.startsWith(prefix));
  }
  status(id: string): Promise<CriContainerStatus> {
    return statusOf(this.lab, id);
  }
  /** Waits until nothing of `prefix` runs and no sandbox of it is ready. */
  async gone(prefix: string, timeoutMs = 30_000): Promise<void> {
    await until(
      `${prefix}* to be gone`,
      async () => {
        const running = await this.containers(prefix, 'CONTAINER_RUNNING');
        const { items } = await this.lab.cri.call('ListPodSandbox', { filter: { state: { state: 'SANDBOX_READY' } } }, call);
        const ready = items.filter((s) => s.labels[CRI_LABELS.podName]?.startsWith(prefix));
        return running.length + ready.length === 0 ? true : undefined;
      },
      { timeoutMs, everyMs: 200 },
    );
  }

  async start(): Promise<object> {
    const samples: number[] = [];
    for (let i = 0; i < samplesWanted; i++) {
      // Samples fall anywhere in the periods of the node's own timers.
      await sleep(Math.random() * 1000);
      const name = `start${i}`;
      const putMs = this.daemon.put(name, pod(name, RUN));
      const running = await until(`${name} to run`, async () => (await this.containers(`${name}-`, 'CONTAINER_RUNNING'))[0], {
        timeoutMs: 30_000,
        everyMs: 50,
      });
      samples.push(ms((await this.status(running.id)).startedAt) - putMs);
      this.daemon.remove(name);
      await this.gone(`${name}-`);
    }
    return { unit: 'ms', ...summary(samples), samples };
  }

  async restart(): Promise<object> {
    const samples: number[] = [];
    for (let i = 0; i < samplesWanted; i++) {
      const name = `restart${i}`;
      // Ends once after about a second, at any point of the node's own periods; the second run is then removed.
      this.daemon.put(name, pod(name, `sleep ${(1 + Math.random()).toFixed(3)}; exit 1`));
      const pair = await until(
        `${name} to be restarted`,
        async () => {
          const all = await this.containers(`${name}-`);
          const first = all.find((c) => c.metadata?.attempt === 0);
          const second = all.find((c) => c.metadata?.attempt === 1 && c.state !== 'CONTAINER_CREATED');
          return first && second ? { first, second } : undefined;
        },
        { timeoutMs: 60_000, everyMs: 50 },
      );
      const [first, second] = [await this.status(pair.first.id), await this.status(pair.second.id)];
      samples.push(ms(second.startedAt) - ms(first.finishedAt));
      this.daemon.remove(name);
      await this.gone(`${name}-`);
    }
    return { unit: 'ms', ...summary(samples), samples };
  }

  async burst(
    round: number,
  ): Promise<{ lastStartedMs: number; startedMs: number[]; statusRunningMs: number; ownCpuMs: number; ownResidentMiB: number }> {
    const prefix = `burst${round}x`;
    let putMs = 0;
    const before = usageOf(this.daemon.pid).cpuMs;
    for (let i = 0; i < podCount; i++) {
      const at = this.daemon.put(`${prefix}${i}`, pod(`${prefix}${i}`, RUN));
      if (i === 0) putMs = at;
    }
    const running = await until(
      `${podCount} containers to run`,
      async () => {
        const now = await this.containers(prefix, 'CONTAINER_RUNNING');
        return now.length >= podCount ? now : undefined;
      },
      { timeoutMs: 120_000, everyMs: 500 },
    );
    await until(
      '/pods to say all are running',
      async () => {
        const answer = (await (await fetch(`${this.daemon.url}/pods`)).json()) as {
          items: { metadata: { name: string }; status?: { phase?: string } }[];
        };
        const up = answer.items.filter((p) => p.metadata.name.startsWith(prefix) && p.status?.phase === 'Running');
        return up.length === podCount ? true : undefined;
      },
      { timeoutMs: 30_000, everyMs: 100 },
    );
    const statusRunningMs = Date.now() - putMs;
    const own = usageOf(this.daemon.pid);
    const ownCpuMs = own.cpuMs - before;
    const ownResidentMiB = Math.round((own.rssBytes / 2 ** 20) * 10) / 10;
    const startedMs: number[] = [];
    for (const c of running) startedMs.push(Math.round(ms((await this.status(c.id)).startedAt) - putMs));
    startedMs.sort((a, b) => a - b);
    return { lastStartedMs: Math.max(...startedMs), startedMs, statusRunningMs, ownCpuMs, ownResidentMiB };
  }

  async removeBurst(round: number): Promise<number> {
    const from = Date.now();
    for (let i = 0; i < podCount; i++) this.daemon.remove(`burst${round}x${i}`);
    await this.gone(`burst${round}x`, 180_000);
    const allGoneMs = Date.now() - from;
    // The node collects what is dead later and at its leisure: the next round begins with a runtime that holds nothing.
    await until(
      'the runtime to hold nothing any more',
      async () => {
        const { items } = await this.lab.cri.call('ListPodSandbox', {}, call);
        return items.length === 0 ? true : undefined;
      },
      { timeoutMs: 180_000, everyMs: 1_000 },
    );
    return allGoneMs;
  }

  async steady(): Promise<object> {
    say(`steady: settling for ${settleSeconds} s`);
    await sleep(settleSeconds * 1000);
    const cpuPercent: number[] = [];
    const residentMiB: number[] = [];
    let before = usageOf(this.daemon.pid);
    let at = performance.now();
    const intervals = Math.max(1, Math.round((minutes * 60_000) / STEADY_EVERY_MS));
    for (let i = 0; i < intervals; i++) {
      await sleep(STEADY_EVERY_MS);
      const now = usageOf(this.daemon.pid);
      const nowAt = performance.now();
      if (now.pids.length === 0) throw new Error(`the daemon ended:\n${this.daemon.log().slice(-2000)}`);
      cpuPercent.push(Math.round(((now.cpuMs - before.cpuMs) / (nowAt - at)) * 10_000) / 100);
      residentMiB.push(Math.round((now.rssBytes / 2 ** 20) * 10) / 10);
      before = now;
      at = nowAt;
    }
    return {
      pods: podCount,
      ownProcesses: before.pids.length,
      cpuPercentOfOneCore: { ...summary(cpuPercent), samples: cpuPercent },
      residentMiB: { ...summary(residentMiB), samples: residentMiB },
    };
  }
}

const lab = await startContainerd();
let daemon: Daemon | undefined;
const cleanUp = cleanUpOnce(async () => {
  await daemon?.stop();
  return lab.stop();
});
try {
  const bareMs: number[] = [];
  for (let round = 0; only.has('burst') && round < bursts; round++) {
    say(`bare calls ${round + 1} of ${bursts}`);
    bareMs.push(await bare(lab, round));
  }
  daemon = await startDaemon({ endpoint: lab.endpoint, config: { cgroupRoot: lab.cgroupParent, maxPods: podCount + 10 } });
  const bench = new Bench(lab, daemon);
  const results: Record<string, unknown> = {};
  if (only.has('start')) {
    say('start');
    results.start = await bench.start();
  }
  if (only.has('restart')) {
    say('restart');
    results.restart = await bench.restart();
  }
  if (only.has('burst') || only.has('steady')) {
    const rounds: object[] = [];
    const last: number[] = [];
    const total = only.has('burst') ? bursts : 1;
    for (let round = 0; round < total; round++) {
      say(`burst ${round + 1} of ${total}`);
      const made = await bench.burst(round);
      last.push(made.lastStartedMs);
      if (round === total - 1 && only.has('steady')) results.steady = await bench.steady();
      rounds.push({ ...made, allGoneMs: await bench.removeBurst(round) });
    }
    if (only.has('burst'))
      results.burst = {
        unit: 'ms',
        pods: podCount,
        lastStarted: { ...summary(last), samples: last },
        bareLastStarted: { ...summary(bareMs), samples: bareMs },
        rounds,
      };
  }
  await report('containerd', results);
} finally {
  await cleanUp();
}
