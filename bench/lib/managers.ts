/** The daemon with all managers of what a node has against one without, in turns: memory at rest, and a burst of pods. */
import { startDaemon } from './daemon.ts';
import { usageOf } from './procs.ts';
import { sleep, until } from './report.ts';

const RESERVED_MIB = 512;
const STATIC = {
  ...{ cpuManagerPolicy: 'static', reservedSystemCPUs: '0', topologyManagerPolicy: 'best-effort', memoryManagerPolicy: 'Static' },
  systemReserved: { memory: `${RESERVED_MIB - 100}Mi` },
  evictionHard: { 'memory.available': '100Mi' },
  reservedMemory: [{ numaNode: 0, limits: { memory: `${RESERVED_MIB}Mi` } }],
};
const NONE = { evictionHard: { 'memory.available': '100Mi' } };
const LOOKS = 10;
const LOOK_MS = 1_000;

interface Run {
  idleMiB: number;
  burstMs: number;
  burstCpuMs: number;
}
interface Options {
  pods: number;
  settleSeconds: number;
}

/** Guaranteed, so that the memory manager gives each its own. Its image is there: the limit of pulls would be measured otherwise. */
function pod(name: string): object {
  const amounts = { cpu: '10m', memory: '4Mi' };
  const main = {
    name: 'main',
    image: 'hollow/idle:1',
    imagePullPolicy: 'IfNotPresent',
    command: ['sleep', '3600'],
    resources: { requests: amounts, limits: amounts },
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: { containers: [main], terminationGracePeriodSeconds: 0 },
  };
}

async function run(config: object, { pods, settleSeconds }: Options): Promise<Run> {
  const daemon = await startDaemon({ endpoint: 'embedded://hollow', config: { maxPods: 2 * pods, ...config } });
  try {
    await sleep(settleSeconds * 1_000);
    const looks: number[] = [];
    for (let i = 0; i < LOOKS; i++) {
      looks.push(usageOf(daemon.pid).rssBytes / 2 ** 20);
      await sleep(LOOK_MS);
    }
    const before = usageOf(daemon.pid).cpuMs;
    let putMs = 0;
    for (let i = 0; i < pods; i++) {
      const at = daemon.put(`p${i}`, pod(`p${i}`));
      if (i === 0) putMs = at;
    }
    await until(
      `${pods} pods to run`,
      async () => {
        const { items } = (await (await fetch(`${daemon.url}/pods`)).json()) as { items: { status?: { phase?: string } }[] | null };
        return items?.filter((p) => p.status?.phase === 'Running').length === pods ? true : undefined;
      },
      { timeoutMs: 120_000, everyMs: 50 },
    );
    return { idleMiB: Math.min(...looks), burstMs: Date.now() - putMs, burstCpuMs: usageOf(daemon.pid).cpuMs - before };
  } finally {
    await daemon.stop();
  }
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
const round = (value: number): number => Math.round(value * 1_000) / 1_000;

/** Each side `rounds` times, in turns. */
export async function compareManagers(o: Options & { rounds: number }): Promise<object> {
  const sides: { none: Run[]; static: Run[] } = { none: [], static: [] };
  for (let i = 0; i < o.rounds; i++) {
    // Which side is first changes from round to round.
    const order = i % 2 === 0 ? (['none', 'static'] as const) : (['static', 'none'] as const);
    for (const side of order) sides[side].push(await run(side === 'none' ? NONE : STATIC, o));
  }
  const of = (key: keyof Run) => {
    const [none, all] = [median(sides.none.map((r) => r[key])), median(sides.static.map((r) => r[key]))];
    return { none: round(none), static: round(all), ratio: round(all / none), more: round(all - none) };
  };
  return { rounds: o.rounds, pods: o.pods, idleMiB: of('idleMiB'), burstMs: of('burstMs'), burstCpuMs: of('burstCpuMs'), samples: sides };
}
