/** Ports of the host that pods take. Pure. */
import type { Pod } from '../../k8s.ts';
import { isRestartableInit } from '../shouldRestart.ts';

interface HostPort {
  protocol: string;
  ip: string;
  port: number;
}

const EVERY_ADDRESS = '0.0.0.0';

/** Those of regular containers and sidecars; other init containers are gone when the pod runs. */
function hostPorts(pod: Pod): HostPort[] {
  return [...pod.spec.containers, ...(pod.spec.initContainers ?? []).filter(isRestartableInit)].flatMap((c) =>
    (c.ports ?? []).flatMap((p) =>
      (p.hostPort ?? 0) > 0 ? [{ protocol: p.protocol || 'TCP', ip: p.hostIP || EVERY_ADDRESS, port: p.hostPort ?? 0 }] : [],
    ),
  );
}

function clash(a: HostPort, b: HostPort): boolean {
  return a.port === b.port && a.protocol === b.protocol && (a.ip === b.ip || a.ip === EVERY_ADDRESS || b.ip === EVERY_ADDRESS);
}

/** The first port of the pod that another pod holds, in words; null when all are free. */
export function takenPort(pod: Pod, others: readonly Pod[]): string | null {
  const wanted = hostPorts(pod);
  if (wanted.length === 0) return null;
  for (const want of wanted) {
    const holder = others.find((other) => hostPorts(other).some((held) => clash(want, held)));
    if (holder === undefined) continue;
    const { namespace, name } = holder.metadata;
    return `${want.protocol}/${want.ip}:${want.port} is used by ${namespace}/${name}`;
  }
  return null;
}
