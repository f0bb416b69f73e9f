/** Validation of probes and lifecycle hooks. Pure. */

import { portName } from '../../../kube/names.ts';
import type { Container, LifecycleHandler, Probe } from '../../../kube/podTable.ts';
import type { IntOrString } from '../../../kube/types.ts';
import { PORTS, SCHEMES } from '../../../kube/words.ts';
import { STOP_SIGNALS } from '../../../pod/runtime/stopSignal.ts';
import type { Problems } from './problems.ts';

const HEADER_NAME = /^[-A-Za-z0-9]+$/;

function port(p: Problems, path: string, value: IntOrString | undefined): void {
  if (value === undefined) p.add(path, 'required');
  else if (typeof value === 'number') p.range(path, value, PORTS);
  else p.check(path, portName(value));
}

function handler(p: Problems, path: string, h: LifecycleHandler & { grpc?: { port: number } }, graceSeconds?: number): void {
  const set = (['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep'] as const).filter((k) => h[k] !== undefined);
  if (set.length === 0) p.add(path, 'must name one handler (exec, httpGet, tcpSocket or another)');
  if (set.length > 1) p.add(path, `must name one handler only, not ${set.join(' and ')}`);
  if (h.exec !== undefined && (h.exec.command ?? []).length === 0) p.add(`${path}.exec.command`, 'required');
  if (h.tcpSocket !== undefined) port(p, `${path}.tcpSocket.port`, h.tcpSocket.port);
  if (h.grpc !== undefined) port(p, `${path}.grpc.port`, h.grpc.port);
  if (h.sleep !== undefined)
    p.range(`${path}.sleep.seconds`, h.sleep.seconds ?? 0, { min: 0, ...(graceSeconds === undefined ? {} : { max: graceSeconds }) });
  if (h.httpGet === undefined) return;
  port(p, `${path}.httpGet.port`, h.httpGet.port);
  p.required(`${path}.httpGet.path`, h.httpGet.path);
  p.oneOf(`${path}.httpGet.scheme`, h.httpGet.scheme, SCHEMES);
  h.httpGet.httpHeaders?.forEach((header, i) => {
    if (!HEADER_NAME.test(header.name ?? '')) p.add(`${path}.httpGet.httpHeaders[${i}].name`, 'must be letters, digits and -');
  });
}

function probe(p: Problems, path: string, of: { probe: Probe | undefined; readiness: boolean }): void {
  const { probe: value, readiness } = of;
  if (value === undefined) return;
  handler(p, path, value);
  for (const key of ['initialDelaySeconds', 'timeoutSeconds', 'periodSeconds', 'successThreshold', 'failureThreshold'] as const) {
    p.range(`${path}.${key}`, value[key], { min: 0 });
  }
  if (!readiness && (value.successThreshold ?? 1) !== 1) p.add(`${path}.successThreshold`, 'must be 1');
  if (value.terminationGracePeriodSeconds !== undefined) {
    if (readiness) p.add(`${path}.terminationGracePeriodSeconds`, 'must not be set on a readiness probe');
    else p.range(`${path}.terminationGracePeriodSeconds`, value.terminationGracePeriodSeconds, { min: 1 });
  }
}

const WINDOWS_STOP_SIGNALS = ['SIGKILL', 'SIGTERM'];

/** Which signals there are is a matter of the operating system: without its name none is taken, as in the reference. */
function stopSignal(p: Problems, path: string, signal: string | undefined, os: string): void {
  if (signal === undefined) return;
  if (os === '') p.add(path, 'must not be set without spec.os.name');
  else p.oneOf(path, signal, os === 'windows' ? WINDOWS_STOP_SIGNALS : STOP_SIGNALS);
}

export interface ProbesScope {
  container: Container;
  /** The container keeps running beside others, so it may have probes and hooks. */
  allowed: boolean;
  graceSeconds: number;
  /** `spec.os.name`; '' where it is not said. */
  os: string;
}
export function validateProbes(p: Problems, path: string, of: ProbesScope): void {
  const { container: c, allowed, graceSeconds, os } = of;
  const probes = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const;
  for (const key of probes) {
    if (c[key] !== undefined && !allowed) p.add(`${path}.${key}`, 'must not be set on an init container that is no sidecar');
    probe(p, `${path}.${key}`, { probe: c[key], readiness: key === 'readinessProbe' });
  }
  if (c.lifecycle === undefined) return;
  if (!allowed) p.add(`${path}.lifecycle`, 'must not be set on an init container that is no sidecar');
  if (c.lifecycle.postStart !== undefined) handler(p, `${path}.lifecycle.postStart`, c.lifecycle.postStart, graceSeconds);
  if (c.lifecycle.preStop !== undefined) handler(p, `${path}.lifecycle.preStop`, c.lifecycle.preStop, graceSeconds);
  stopSignal(p, `${path}.lifecycle.stopSignal`, c.lifecycle.stopSignal, os);
}
