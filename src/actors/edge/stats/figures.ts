/** The pages with figures, which the kubelet's API and its read-only port share: /healthz, /metrics and below, /stats/summary. */

import type { GateState } from '../../../machines/config/config.ts';
import type { ServerEvent } from '../../../machines/edge/messages.ts';
import { cadvisorMetrics, type MachineFigures, machineMetrics, NOTHING_READ } from '../../../machines/edge/stats/cadvisorMetrics.ts';
import { resourceMetrics } from '../../../machines/edge/stats/resourceMetrics.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import { podsView } from '../../../machines/pods/manager/messages.ts';
import { pullRecordsDir } from '../../../machines/runtime/imagePuller/messages.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { Host } from '../../../ports/ports.ts';
import type { HttpReply, HttpRequest } from '../../../ports/sockets/net.ts';
import { criClient } from '../../runtime/client.ts';
import { type VolumeUsageOptions, volumeUsage } from '../../services/client.ts';
import type { ActorCtx, Registry } from '../../supervision/types.ts';
import { isGet, json, METHOD_NOT_ALLOWED, type Route, text } from '../answers/answers.ts';
import { runtimeFailure } from '../answers/runtimeFailure.ts';
import { type Checks, healthRoutes } from '../healthChecks.ts';
import { countedChecks, kubeletChecks, SLI_FAMILY } from '../kubeletChecks.ts';
import { addKubeletFamilies } from '../metrics/kubeletFamilies.ts';
import { addNodeMetrics, type BuildInfo } from '../metrics/nodeMetrics.ts';
import type { Inspect } from '../server.ts';
import { criFigures } from './criFigures.ts';
import { createGroupReader } from './groupReader.ts';
import { logMetrics } from './logMetrics.ts';
import { createPodUse } from './podUse.ts';
import { pullRecordMetrics } from './pullRecordMetrics.ts';
import { createStats } from './stats.ts';
import { createSystemGroups, type SystemGroupPaths } from './systemGroups.ts';
import { volumeMetrics } from './volumeMetrics.ts';

export interface FigureOptions {
  inspect: Inspect;
  nodeName: string;
  build: BuildInfo;
  rootDir: string;
  podLogsDir: string;
  /** `syncFrequency` of the configuration. */
  syncFrequencyMs: number;
  runtimeRequestTimeoutMs: number;
  /** Config field volumeStatsAggPeriod; gate CSIVolumeHealth. */
  volumeStats: Omit<VolumeUsageOptions, 'rootDir'>;
  gates: readonly GateState[];
  /** Gate KubeletPSI. */
  pressure: boolean;
  /** Gate PodAndContainerStatsFromCRI. */
  fromCri: boolean;
  /** Groups of the machine that the summary tells of beside pods. */
  systemGroups(): SystemGroupPaths;
  /** Path of the group of one pod; undefined: it has none. */
  podGroup(pod: Pod): string | undefined;
  /** Pods have no group of their own (`cgroupsPerQOS: false`). */
  podsAtRoot: boolean;
  /** Replaces the kubelet's checks; for tests. */
  checks?: Checks;
}

/** Below /metrics; '' is /metrics itself. */
const METRICS_PAGES = ['', 'resource', 'probes', 'cadvisor', 'slis'] as const;
export type MetricsPage = (typeof METRICS_PAGES)[number];
export const isMetricsPage = (of: string): of is MetricsPage => METRICS_PAGES.some((page) => page === of);
/** For labels of request metrics. */
export const METRICS_PATHS = METRICS_PAGES.filter((of) => of !== '').map((of) => `metrics/${of}`);

const PROMETHEUS = 'text/plain; version=0.0.4; charset=utf-8; escaping=underscores';
/** Families of /metrics that belong to /metrics/probes. */
const PROBE_FAMILY = /^(prober_.*|process_start_time_seconds)$/;
/** Families that /metrics itself has not: they have pages of their own, as in the reference. */
const OWN_PAGE = /^(prober_.*|kubernetes_healthchecks?(_total)?)$/;

export interface FigurePages {
  /** By path: /healthz and each check below it. */
  health: Readonly<Record<string, Route>>;
  summary: Route;
  metrics(of: MetricsPage): Route;
}

export function figurePages(ctx: ActorCtx<ServerEvent>, o: FigureOptions): FigurePages {
  const { metrics } = ctx.ports;
  addNodeMetrics(metrics, { registry: ctx.registry, state: o.inspect.state, nodeName: o.nodeName, build: o.build });
  addKubeletFamilies(metrics, { registry: ctx.registry, gates: o.gates, host: ctx.ports.host });
  const logs = logMetrics(metrics, { fs: ctx.ports.fs, registry: ctx.registry, podLogsDir: o.podLogsDir });
  const pulls = pullRecordMetrics(metrics, { fs: ctx.ports.fs, dir: pullRecordsDir(o.rootDir) });
  const cri = criClient(ctx.registry, { runtimeRequestTimeoutMs: o.runtimeRequestTimeoutMs });
  const told = o.fromCri ? criFigures({ cri, log: ctx.log }) : undefined;
  const volumes = volumeUsage(ctx, { rootDir: o.rootDir, ...o.volumeStats });
  const claims = volumeMetrics(metrics, volumes);
  const groups = createGroupReader({ fs: ctx.ports.fs, cri, pressure: o.pressure, systemGroups: o.systemGroups });
  let machine: Omit<MachineFigures, 'cpus' | 'memoryBytes'> | undefined;
  const system = createSystemGroups({ fs: ctx.ports.fs, pressure: o.pressure, paths: o.systemGroups });
  const podUse = createPodUse({ fs: ctx.ports.fs, pods: () => knownPods(ctx.registry), path: (pod) => o.podGroup(pod) });
  const stats = createStats({
    ...{ ports: ctx.ports, cri, nodeName: o.nodeName, rootDir: o.rootDir, podLogsDir: o.podLogsDir, volumes },
    ...{ system, podUse, groups: () => groups(ctx.signal).catch(() => NOTHING_READ) },
    ...{ podsAtRoot: o.podsAtRoot, separateDisks: o.gates.some(({ name, enabled }) => name === 'KubeletSeparateDiskGC' && enabled) },
    ...{ usedCpuNs: () => ctx.ports.host.usedCpuNs?.(), usage: o.inspect.usage },
    ...(told === undefined ? {} : { fromCri: { sandboxes: told.sandboxes, pressure: o.pressure } }),
  });
  const counted = countedChecks(o.checks ?? kubeletChecks({ stateAt: o.inspect.stateAt, syncFrequencyMs: o.syncFrequencyMs }), metrics);

  async function metricsText(of: MetricsPage, req: HttpRequest): Promise<string> {
    if (of === 'probes') return metrics.render((family) => PROBE_FAMILY.test(family));
    if (of === 'slis') {
      counted.lookAll();
      return metrics.render((family) => SLI_FAMILY.test(family));
    }
    if (of === '') {
      await Promise.all([claims.measure(), logs.measure(), pulls.measure()]);
      return metrics.render((family) => !OWN_PAGE.test(family));
    }
    const none = (error: unknown) => {
      ctx.log.warn({ err: messageOf(error) }, `figures for /metrics/${of} could not be had`);
      return null;
    };
    if (of === 'resource') return resourceMetrics(await stats.summary({ brief: true, signal: req.signal }).catch(none));
    const machineOf = () => {
      machine ??= machineFigures(ctx.ports.host, o.build);
      return { ...machine, ...ctx.ports.host.capacity() };
    };
    const ofRuntime = await told?.metrics(req.signal).catch(none);
    if (typeof ofRuntime === 'string') {
      const summary = await stats.summary({ brief: true, signal: req.signal }).catch(none);
      return `${ofRuntime}${machineMetrics({ machine: machineOf(), summary })}`;
    }
    // In this order: the summary shares the look that has all.
    const [read, summary] = await Promise.all([
      groups(ctx.signal, 'all').catch(() => NOTHING_READ),
      stats.summary({ brief: false, signal: req.signal }).catch(none),
    ]);
    return cadvisorMetrics({ summary, groups: read, machine: machineOf(), nowMs: ctx.ports.clock.wallMs() });
  }
  return {
    health: healthRoutes(counted.checks),
    async summary(req) {
      if (!isGet(req) && req.method !== 'POST') return METHOD_NOT_ALLOWED;
      const values = req.query.getAll('only_cpu_and_memory');
      try {
        return json(await stats.summary({ brief: values.length === 1 && values[0] === 'true', signal: req.signal }));
      } catch (error) {
        const failure = runtimeFailure(error);
        return failure.status === 404 ? failure : text(`Internal Error: ${messageOf(error)}\n`, 500);
      }
    },
    metrics:
      (of) =>
      async (req): Promise<HttpReply> => {
        if (!isGet(req)) return METHOD_NOT_ALLOWED;
        return { status: 200, headers: { 'content-type': PROMETHEUS }, body: await metricsText(of, req) };
      },
  };
}

function* knownPods(registry: Pick<Registry, 'read'>): Generator<Pod> {
  for (const { pod } of registry.read(podsView)?.value.records.values() ?? []) yield pod;
}

/** Read once: only a start of the machine changes it. */
function machineFigures(host: Host, { gitVersion, gitCommit }: BuildInfo): Omit<MachineFigures, 'cpus' | 'memoryBytes'> {
  const { machineId = '', systemUuid = '', kernelVersion = '', osImage = '' } = host.identity?.() ?? {};
  const of = { bootId: host.bootId(), machineId, systemUuid, kernelVersion, osImage };
  return { ...of, ...cores(host), version: gitVersion, revision: gitCommit };
}

function cores(host: Host): Pick<MachineFigures, 'physicalCores' | 'sockets'> {
  try {
    const cpus = host.cpus?.() ?? [];
    if (cpus.length === 0) return {};
    return { physicalCores: new Set(cpus.map((c) => c.siblings.join())).size, sockets: new Set(cpus.map((c) => c.socket)).size };
  } catch {
    // This kernel does not tell how its CPUs lie.
    return {};
  }
}
