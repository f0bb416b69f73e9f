/** What the logs of running containers take on disk: for /stats/summary, and in /metrics as it is at the scrape. */

import type { PodRef } from '../../../machines/pod/names.ts';
import { pathName } from '../../../machines/pod/pathName.ts';
import { containerLogDir, podFolder } from '../../../machines/pod/runtime/logNames.ts';
import { runtimePodsView } from '../../../machines/runtime/pleg/messages.ts';
import { gaugeRows } from '../../../ports/gaugeRows.ts';
import type { HostFs, Metrics } from '../../../ports/ports.ts';
import type { Registry } from '../../supervision/types.ts';

export interface LogSize {
  bytes: number;
  files: number;
}

const LOG_FILES_MAX = 64;

/** Null: there is no folder of logs. */
export async function logSize(fs: Pick<HostFs, 'readdir' | 'lstat'>, dir: string): Promise<LogSize | null> {
  const names = await fs.readdir(dir).catch(() => null);
  if (names === null) return null;
  const infos = await Promise.all(names.slice(0, LOG_FILES_MAX).map((n) => fs.lstat(`${dir}/${n}`).catch(() => null)));
  const files = infos.filter((i) => i !== null);
  return { bytes: files.reduce((sum, i) => sum + i.size, 0), files: files.length };
}

/** `measure`: containers as the runtime was last listed; one that runs no more leaves. */
export function logMetrics(
  metrics: Metrics,
  o: { fs: Pick<HostFs, 'readdir' | 'lstat'>; registry: Pick<Registry, 'read'>; podLogsDir: string },
): { measure(): Promise<void> } {
  const labelNames = ['uid', 'namespace', 'pod', 'container'];
  const help = 'Bytes that the logs of a running container take on disk';
  const show = gaugeRows(metrics.gauge('kubelet_container_log_filesystem_used_bytes', help, labelNames));
  return {
    async measure() {
      const rows = new Map<string, readonly [Record<string, string>, number]>();
      for (const { pod, container } of running(o.registry)) {
        const size = await logSize(o.fs, containerLogDir(o.podLogsDir, podFolder(pod), pathName(container)));
        const labels = { uid: pod.uid, namespace: pod.namespace, pod: pod.name, container };
        // Two instances of a container have one folder.
        if (size !== null) rows.set(`${pod.uid}/${container}`, [labels, size.bytes]);
      }
      show(rows.values());
    },
  };
}

function running(registry: Pick<Registry, 'read'>): { pod: PodRef; container: string }[] {
  return [...(registry.read(runtimePodsView)?.value.pods.values() ?? [])].flatMap(({ uid, name, namespace, containers }) =>
    containers.filter((c) => c.state === 'running').map((c) => ({ pod: { uid, name, namespace }, container: c.name })),
  );
}
