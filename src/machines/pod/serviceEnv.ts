/** Environment variables that tell containers where services are (pod lifecycle 5.11). Pure. */

import type { ServiceEntry } from '../kube/objects.ts';
import type { KubeObject } from '../kube/request.ts';
import { isRecord } from '../shape/conform.ts';
import { listOf, textOf } from '../shape/lenient.ts';
import { EXEC_BYTES_MAX } from './execLimits.ts';

/** Where the service of the API server itself is; every container is told of it. */
const MASTER_NAMESPACE = 'default';
const MASTER_SERVICE = 'kubernetes';

/** What variables need of a service. Null: the service has no address of its own that a variable could name. */
export function toServiceEntry(object: KubeObject): ServiceEntry | null {
  const spec = isRecord(object.spec) ? object.spec : {};
  const { clusterIP } = spec;
  if (typeof clusterIP !== 'string' || clusterIP === '' || clusterIP === 'None') return null;
  const ports = listOf(spec.ports)
    .filter(isRecord)
    .flatMap(({ name, protocol, port }) =>
      typeof port === 'number'
        ? [
            {
              name: textOf(name),
              protocol: typeof protocol === 'string' && protocol !== '' ? protocol : 'TCP',
              port,
            },
          ]
        : [],
    );
  return { namespace: object.metadata.namespace ?? '', name: object.metadata.name, clusterIP, ports };
}

function variableName(text: string): string {
  return text.replaceAll('-', '_').toUpperCase();
}

/**
 * Sorted by service. `links`: `enableServiceLinks` of the pod; without it only the API server's own service is told. Of more than a
 * process can be started with the rest is left out: the container is refused.
 */
export function serviceVariables(services: readonly ServiceEntry[], pod: { namespace: string; links: boolean }): Map<string, string> {
  const chosen = new Map<string, ServiceEntry>();
  for (const s of services) {
    if (s.namespace === MASTER_NAMESPACE && s.name === MASTER_SERVICE) {
      if (!chosen.has(s.name)) chosen.set(s.name, s);
    } else if (s.namespace === pod.namespace && pod.links) chosen.set(s.name, s);
  }
  const result = new Map<string, string>();
  let chars = 0;
  for (const name of [...chosen.keys()].sort()) {
    const service = chosen.get(name);
    if (service === undefined || chars > EXEC_BYTES_MAX) continue;
    for (const [key, value] of ofService(service)) {
      result.set(key, value);
      chars += key.length + value.length;
    }
  }
  return result;
}

function ofService(service: ServiceEntry): [string, string][] {
  const name = variableName(service.name);
  const { clusterIP, ports } = service;
  const host = clusterIP.includes(':') ? `[${clusterIP}]` : clusterIP;
  const [first] = ports;
  const result: [string, string][] = [[`${name}_SERVICE_HOST`, clusterIP]];
  if (first === undefined) return result;
  result.push([`${name}_SERVICE_PORT`, String(first.port)]);
  for (const p of ports) if (p.name !== '') result.push([`${name}_SERVICE_PORT_${variableName(p.name)}`, String(p.port)]);
  result.push([`${name}_PORT`, `${first.protocol.toLowerCase()}://${host}:${first.port}`]);
  for (const p of ports) {
    const prefix = `${name}_PORT_${p.port}_${p.protocol.toUpperCase()}`;
    const protocol = p.protocol.toLowerCase();
    result.push([prefix, `${protocol}://${host}:${p.port}`], [`${prefix}_PROTO`, protocol]);
    result.push([`${prefix}_PORT`, String(p.port)], [`${prefix}_ADDR`, clusterIP]);
  }
  return result;
}
