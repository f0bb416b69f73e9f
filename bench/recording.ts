/**
 * What recording inputs costs, on real containerd (root, after `npm run e2e:setup`): a daemon with
 * --actorlet-record-inputs beside one without, each with pods that come at once and then rest. Processor time is that of all own
 * processes, by turns. `own` is the share of a processor profile in which the recording's code runs, which is steadier on a machine
 * that does other things too; compression runs in a thread of its own and is not in it. It has a turn of its own: the profile takes
 * memory, and more where stacks are deeper.
 * Options: --pods=100 --cycles=2 --seconds=30 --settle-seconds=60 --out=FILE
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CRI_LABELS } from '../src/machines/wire/cri.ts';
import { type Containerd, startContainerd } from '../test/e2e/lab/containerd.ts';
import { BUSYBOX_IMAGES } from '../test/e2e/lab/images.ts';
import { cleanUpOnce } from './lib/cleanUp.ts';
import { type Daemon, startDaemon } from './lib/daemon.ts';
import { usageOf } from './lib/procs.ts';
import { type Profile, shareOf } from './lib/profile.ts';
import { numberOption, report, say, sleep, summary, until } from './lib/report.ts';

const PODS = numberOption('pods', 100);
const CYCLES = numberOption('cycles', 2);
const SECONDS = numberOption('seconds', 30);
/** Dead containers and images of the burst are collected by then. */
const SETTLE_SECONDS = numberOption('settle-seconds', 60);
const BARS = { restPercent: 3, burstPercent: 6, mib: 12, restMiBPerHour: 3, kibPerPod: 25 } as const;
const OWN_CODE = /\/src\/(?:boot\/)?replay\//;
/** As in scripts/launch.sh. */
const FLAGS = ['--disable-sigusr1', '--disable-warning=ExperimentalWarning', '--v8-pool-size=1', '--max-semi-space-size=4', '--expose-gc'];
const RUN = 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done';
const MODES = ['none', 'recorded'] as const;
type Mode = (typeof MODES)[number];

interface Part {
  cpuMs: number;
  /** Of what the daemon's main thread did, in the recording's code. 0 without a profile. */
  ownPercent: number;
  bytes: number;
}
interface Taken {
  burst: Part;
  rest: Part;
  /** At the end of the rest. */
  residentMiB: number;
}

const call = { timeoutMs: 10_000, signal: new AbortController().signal };
const pod = (name: string): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default', labels: { app: 'bench' } },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'main', image: BUSYBOX_IMAGES[1], imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', RUN] }],
  },
});

async function running(lab: Containerd): Promise<number> {
  const { containers } = await lab.cri.call('ListContainers', { filter: { state: { state: 'CONTAINER_RUNNING' } } }, call);
  return containers.filter((c) => c.labels[CRI_LABELS.podName] !== undefined).length;
}

class Turn {
  readonly #lab: Containerd;
  readonly #daemon: Daemon;
  readonly #folder: string;
  readonly #windows: { of: 'burst' | 'rest'; fromUs: number; toUs: number }[] = [];

  constructor(lab: Containerd, daemon: Daemon, folder: string) {
    this.#lab = lab;
    this.#daemon = daemon;
    this.#folder = folder;
  }

  async run(turn: number): Promise<Taken> {
    const names = Array.from({ length: PODS }, (_, i) => `turn${turn}x${i}`);
    const burst = await this.#part('burst', async () => {
      for (const name of names) this.#daemon.put(name, pod(name));
      await this.#until(PODS);
      // What follows a start is the burst's too.
      await sleep(2_000);
    });
    await sleep(SETTLE_SECONDS * 1_000);
    const rest = await this.#part('rest', () => sleep(SECONDS * 1_000));
    const residentMiB = usageOf(this.#daemon.pid).rssBytes / 2 ** 20;
    for (const name of names) this.#daemon.remove(name);
    await this.#until(0);
    return { burst, rest, residentMiB };
  }

  /** Once the daemon has ended and left its profile. */
  profiled(taken: Taken, profile: Profile): void {
    for (const { of, fromUs, toUs } of this.#windows) taken[of].ownPercent = 100 * shareOf(profile, { of: OWN_CODE, fromUs, toUs });
  }

  async #part(of: 'burst' | 'rest', act: () => Promise<void>): Promise<Part> {
    const [before, bytes, fromUs] = [usageOf(this.#daemon.pid).cpuMs, this.#bytes(), nowUs()];
    await act();
    this.#windows.push({ of, fromUs, toUs: nowUs() });
    return { cpuMs: usageOf(this.#daemon.pid).cpuMs - before, ownPercent: 0, bytes: this.#bytes() - bytes };
  }

  #until(count: number): Promise<true> {
    const reached = async () => ((await running(this.#lab)) === count ? true : undefined);
    return until(`${count} containers to run`, reached, { timeoutMs: 120_000, everyMs: 250 });
  }

  #bytes(): number {
    return readdirSync(this.#folder).reduce((sum, name) => sum + statSync(join(this.#folder, name)).size, 0);
  }
}

/** As a profile counts. */
const nowUs = (): number => Number(process.hrtime.bigint() / 1_000n);

const scratch = mkdtempSync(join(tmpdir(), 'actorlet-bench-recording-'));
let daemon: Daemon | undefined;
const lab = await startContainerd();
const cleanUp = cleanUpOnce(async () => {
  await daemon?.stop();
  rmSync(scratch, { recursive: true, force: true });
  return lab.stop();
});

async function turn(mode: Mode, n: number, o: { profiled: boolean }): Promise<Taken> {
  const folder = mkdtempSync(join(scratch, 'inputs-'));
  const profile = join(scratch, `${mode}-${n}.cpuprofile`);
  daemon = await startDaemon({
    endpoint: lab.endpoint,
    config: { cgroupRoot: lab.cgroupParent, maxPods: PODS + 10 },
    args: mode === 'recorded' ? [`--actorlet-record-inputs=${folder}`] : [],
    ...(o.profiled
      ? { fromSource: [...FLAGS, `--import=${join(import.meta.dirname, 'lib/profiled.ts')}`], env: { ACTORLET_PROFILE: profile } }
      : {}),
  });
  const one = new Turn(lab, daemon, folder);
  const taken = await one.run(n);
  await daemon.stop();
  daemon = undefined;
  if (o.profiled) one.profiled(taken, JSON.parse(readFileSync(profile, 'utf8')) as Profile);
  return taken;
}

try {
  const cycles: Record<Mode, Taken>[] = [];
  for (let i = 0; i < CYCLES; i++) {
    const cycle: Partial<Record<Mode, Taken>> = {};
    for (const mode of i % 2 === 0 ? MODES : MODES.toReversed()) {
      cycle[mode] = await turn(mode, cycles.length * 2 + Object.keys(cycle).length, { profiled: false });
      say(`${mode}: ${JSON.stringify(cycle[mode])}`);
    }
    cycles.push(cycle as Record<Mode, Taken>);
  }
  const { burst, rest } = await turn('recorded', cycles.length * 2, { profiled: true });
  const more = (of: 'burst' | 'rest') => summary(cycles.map((c) => (100 * c.recorded[of].cpuMs) / c.none[of].cpuMs - 100));
  const recorded = (fn: (taken: Taken) => number) => summary(cycles.map((c) => fn(c.recorded)));
  await report('recording', {
    pods: PODS,
    bars: BARS,
    cpuMorePercent: { rest: more('rest'), burst: more('burst') },
    ownPercent: { rest: rest.ownPercent, burst: burst.ownPercent },
    residentMoreMiB: summary(cycles.map((c) => c.recorded.residentMiB - c.none.residentMiB)),
    restMiBPerHour: recorded((t) => (t.rest.bytes * 3_600) / SECONDS / 2 ** 20),
    kibPerPodStarted: recorded((t) => t.burst.bytes / PODS / 1_024),
    cycles,
  });
} finally {
  await cleanUp();
}
