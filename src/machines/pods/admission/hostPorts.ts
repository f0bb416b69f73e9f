/** Ports of the host that pods take. Pure. */
import type { Pod } from '../../kube/types.ts';
import { isRestartableInit } from '../../pod/runtime/shouldRestart.ts';

interface HostPort {
  protocol: string;
  ip: string;
  port: number;
}

const EVERY_ADDRESS = '0.0.0.0';

/** Ports of regular containers and sidecars; other init containers are gone when the pod runs. */
function hostPorts(pod: Pod): HostPort[] {
  return [...pod.spec.containers, ...(pod.spec.initContainers ?? []).filter(isRestartableInit)].flatMap((c) =>
    (c.ports ?? []).flatMap((p) =>
      (p.hostPort ?? 0) > 0 ? [{ protocol: p.protocol || 'TCP', ip: p.hostIP || EVERY_ADDRESS, port: p.hostPort ?? 0 }] : [],
    ),
  );
}

/** The pod that holds each address of a port, the first of each; '' is any. */
function holders(pods: readonly Pod[]): Map<string, Map<string, Pod>> {
  const held = new Map<string, Map<string, Pod>>();
  for (const pod of pods) {
    for (const port of hostPorts(pod)) {
      const byAddress = held.get(keyOf(port)) ?? new Map<string, Pod>();
      held.set(keyOf(port), byAddress);
      for (const ip of ['', port.ip]) if (!byAddress.has(ip)) byAddress.set(ip, pod);
    }
  }
  return held;
}
const keyOf = ({ protocol, port }: HostPort): string => `${protocol}/${port}`;

/** The first port of the pod that another pod holds, in words; null when all are free. */
export function takenPort(pod: Pod, others: readonly Pod[]): string | null {
  const wanted = hostPorts(pod);
  if (wanted.length === 0) return null;
  const held = holders(others);
  for (const want of wanted) {
    const byAddress = held.get(keyOf(want));
    const holder = want.ip === EVERY_ADDRESS ? byAddress?.get('') : (byAddress?.get(want.ip) ?? byAddress?.get(EVERY_ADDRESS));
    if (holder === undefined) continue;
    const { namespace, name } = holder.metadata;
    return `${want.protocol}/${want.ip}:${want.port} is used by ${namespace}/${name}`;
  }
  return null;
}
