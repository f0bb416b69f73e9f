/** What the reference kubelet did with the pods of `told.ts` (statics136.json, written by statics.ts), asked of a virtual node. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { KubeletConfiguration } from '../../../src/machines/config/config.ts';
import type { Container } from '../../../src/machines/kube/podTable.ts';
import { cluster, create, created, drop, inApi, isReady } from '../../integration/cluster/clusterPods.ts';
import { ROOT, type VirtualNode } from '../../integration/virtualNode.ts';
import { named } from '../claims/told.ts';
import {
  COMMON,
  filesOf,
  metricsOf,
  plainly,
  pods,
  STATICS_RECORDING,
  type ToldPod,
  type ToldStatics,
  type ToldTurn,
  TURNS,
} from './told.ts';

const { machine, turns } = JSON.parse(readFileSync(STATICS_RECORDING, 'utf8')) as ToldStatics;
const RECONCILED_MS = 30_000;
const make = (name: string, more: Partial<Container>): Container => ({ name, image: 'busybox:1', ...more });
const specs = pods(make, make);

function placed(h: VirtualNode, name: string): ToldPod['placed'] {
  const each = created(h, name).map(({ metadata, linux }): [string, readonly [string, string]] => {
    const { cpusetCpus = '', cpusetMems = '' } = linux?.resources ?? {};
    return [metadata?.name ?? '', [cpusetCpus, cpusetMems]];
  });
  return Object.fromEntries(each);
}

async function told(config: Partial<KubeletConfiguration>): Promise<ToldTurn> {
  await using h = await cluster({ cpus: [...machine.cpus], numaNodes: [...machine.numaNodes], config: { ...COMMON, ...config } });
  const seen: Record<string, ToldPod> = {};
  const known = new Map<string, string>();
  for (const [name, spec] of Object.entries(specs)) {
    const { uid } = create(h, name, { spec, lives: { first: 'run=1s' } }).metadata;
    known.set(uid, name);
    await h.until('it is Ready or refused', () => isReady(h, name) || inApi(h, name)?.status.phase === 'Failed');
    const { status } = inApi(h, name) ?? {};
    const { reason = '', message = '' } = status?.phase === 'Failed' ? status : {};
    seen[name] = { reason, message: plainly(message), placed: placed(h, name) };
  }
  // What init containers left over is free by then.
  await h.advance(RECONCILED_MS);
  const text = (name: string) => h.fs.textOf(`${ROOT}/${name}`) ?? '';
  const files = filesOf(text('cpu_manager_state'), text('memory_manager_state'), named(known));
  const metrics = metricsOf(await h.metrics.render());
  for (const name of known.values()) drop(h, `pods/${name}`);
  return { pods: seen, files, metrics };
}

/**
 * The reference counts a CPU again for each init container that leaves it to the next one: here CPUs count that are taken. It asks the
 * memory manager about each container before it asks the CPU manager about the next one: here nobody is asked after a refusal.
 */
const COUNTED: Readonly<Record<string, string>> = {
  'kubelet_cpu_manager_exclusive_cpu_allocation_count 2': 'kubelet_cpu_manager_exclusive_cpu_allocation_count 1',
  'restricted, pod, full-pcpus-only: kubelet_memory_manager_pinning_requests_total 5': 'kubelet_memory_manager_pinning_requests_total 3',
  'kubelet_cpu_manager_shared_pool_size_millicores -1000': 'kubelet_cpu_manager_shared_pool_size_millicores 0',
};

it.each(Object.entries(TURNS))('%s: the same places, answers, state files and figures as the reference kubelet', async (name, config) => {
  const { metrics = [], ...recorded } = turns[name] ?? {};
  const { metrics: ours, ...seen } = await told(config);
  expect(seen).toEqual(recorded);
  expect(ours).toEqual(metricsOf(metrics.join('\n')).map((line) => COUNTED[`${name}: ${line}`] ?? COUNTED[line] ?? line));
});
