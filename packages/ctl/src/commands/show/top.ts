/** `actorctl top`: what pods and the node use now, from the figures of /stats/summary. */
import { setTimeout as sleep } from 'node:timers/promises';
import { EXIT } from '@actorlet/admin/src/client.ts';
import type { CpuStats, MemoryStats, Summary } from '@actorlet/kubelet/machines/edge/stats/stats.ts';
import { renderTable } from '@actorlet/kubelet/machines/text/table.ts';
import { type Asked, type Command, print, printData, wantsData, widthOf } from '../../asked.ts';

export interface TopArgs {
  of: 'pods' | 'node';
  /** A line for each container of a pod. */
  containers: boolean;
}
interface Used {
  cpu?: CpuStats;
  memory?: MemoryStats;
}
/** The rate of a processor is known from the second look on. */
const BETWEEN_LOOKS_MS = 1_100;

export function top(args: TopArgs): Command {
  return async (asked) => {
    const [summary, { pods: known }] = await Promise.all([
      figures(asked),
      asked.client.json('/pods') as Promise<{ pods: readonly { uid: string; labels?: Readonly<Record<string, string>> }[] }>,
    ]);
    const labels = new Map(known.map((p) => [p.uid, p.labels]));
    const pods = summary.pods
      .filter((p) => args.of === 'pods' && asked.chooses({ namespace: p.podRef.namespace, labels: labels.get(p.podRef.uid) ?? {} }))
      .sort((a, b) => nanoCores(b) - nanoCores(a) || workingSet(b) - workingSet(a));
    if (wantsData(asked.format)) {
      printData(asked, args.of === 'node' ? summary.node : pods);
      return EXIT.ok;
    }
    const lines =
      args.of === 'node'
        ? renderTable(['NODE', 'CPU(cores)', 'MEMORY(bytes)'], [[summary.node.nodeName, ...shown(summary.node)]])
        : args.containers
          ? renderTable(
              ['NAMESPACE', 'POD', 'CONTAINER', 'CPU(cores)', 'MEMORY(bytes)'],
              pods.flatMap((p) => p.containers.map((c) => [p.podRef.namespace, p.podRef.name, c.name, ...shown(c)])),
            )
          : renderTable(
              ['NAMESPACE', 'NAME', 'CPU(cores)', 'MEMORY(bytes)'],
              pods.map((p) => [p.podRef.namespace, p.podRef.name, ...shown(p)]),
            );
    print(asked, pods.length === 0 && args.of === 'pods' ? ['No pod runs here.'] : lines, widthOf(asked));
    return EXIT.ok;
  };
}

async function figures({ client, io }: Asked): Promise<Summary> {
  const look = async () => (await client.json('/summary')) as Summary;
  const first = await look();
  const known = (of: Used): boolean => of.cpu?.usageNanoCores !== undefined;
  if (known(first.node) && first.pods.every((p) => p.containers.every(known))) return first;
  await sleep(BETWEEN_LOOKS_MS, undefined, { signal: io.signal }).catch(() => undefined);
  return look();
}

const nanoCores = (of: Used): number => of.cpu?.usageNanoCores ?? 0;
const workingSet = (of: Used): number => of.memory?.workingSetBytes ?? 0;

/** In kubectl's units. */
function shown(of: Used): [string, string] {
  const { cpu, memory } = of;
  return [
    cpu?.usageNanoCores === undefined ? '-' : `${Math.ceil(cpu.usageNanoCores / 1e6)}m`,
    memory?.workingSetBytes === undefined ? '-' : `${Math.floor(memory.workingSetBytes / 2 ** 20)}Mi`,
  ];
}
