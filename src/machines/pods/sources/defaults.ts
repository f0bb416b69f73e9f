/** API defaulting of a decoded pod (spec: pod lifecycle 1.5): what the API server would have filled in. Pure. */

import { own, put } from '../../data/own.ts';
import type { Container, LifecycleHandler, Probe } from '../../kube/podTable.ts';
import { defaultPullPolicy } from '../../kube/pullPolicy.ts';
import type { Pod, Quantity } from '../../kube/types.ts';
import { VOLUME_SOURCES } from '../../kube/volumeTable.ts';
import { containersTotal, isPodLevel } from '../../pod/resources/podLevel.ts';
import { ASSUMED_FIELD, kindOfField } from '../../pod/volumes/kinds.ts';
import { isRecord } from '../../shape/conform.ts';

function defaultHandler(h: LifecycleHandler | undefined): void {
  if (h?.httpGet === undefined) return;
  h.httpGet.path = h.httpGet.path || '/';
  h.httpGet.scheme = h.httpGet.scheme || 'HTTP';
}

function defaultProbe(p: Probe | undefined): void {
  if (p === undefined) return;
  defaultHandler(p);
  p.timeoutSeconds ||= 1;
  p.periodSeconds ||= 10;
  p.successThreshold ||= 1;
  p.failureThreshold ||= 3;
  if (p.grpc !== undefined) p.grpc.service ??= '';
}

function defaultContainer(c: Container, hostNetwork: boolean): void {
  c.imagePullPolicy ||= defaultPullPolicy(c.image);
  c.terminationMessagePath ||= '/dev/termination-log';
  c.terminationMessagePolicy ||= 'File';
  c.resources ??= {};
  for (const [name, limit] of Object.entries(c.resources.limits ?? {})) {
    c.resources.requests ??= {};
    if (own(c.resources.requests, name) === undefined) put(c.resources.requests, name, limit);
  }
  for (const port of c.ports ?? []) {
    port.protocol ||= 'TCP';
    if (hostNetwork && !port.hostPort) port.hostPort = port.containerPort;
  }
  for (const env of c.env ?? []) {
    const from = env.valueFrom;
    if (from?.fieldRef !== undefined) from.fieldRef.apiVersion ||= 'v1';
    if (from?.resourceFieldRef !== undefined) from.resourceFieldRef.divisor ??= '0';
  }
  for (const p of [c.livenessProbe, c.readinessProbe, c.startupProbe]) defaultProbe(p);
  defaultHandler(c.lifecycle?.postStart);
  defaultHandler(c.lifecycle?.preStop);
}

/** The pod as a whole, where it names limits: it asks for what its containers come to, else for as much as it may have. */
function defaultPodResources(pod: Pod): void {
  const { resources } = pod.spec;
  const limits = Object.entries(resources?.limits ?? {}).filter(([name]) => isPodLevel(name));
  if (resources === undefined || limits.length === 0) return;
  const requests: Record<string, Quantity> = { ...resources.requests };
  const all = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  for (const name of new Set(all.flatMap((c) => Object.keys(c.resources?.requests ?? {})))) {
    const total = isPodLevel(name) && !name.startsWith('hugepages-') ? containersTotal(pod, 'requests', name) : undefined;
    if (total !== undefined) requests[name] ??= total;
  }
  for (const [name, limit] of limits) requests[name] ??= limit;
  resources.requests = requests;
}

function defaultVolumes(pod: Pod): void {
  for (const volume of pod.spec.volumes ?? []) {
    const kinds = Object.keys(volume).filter((k) => VOLUME_SOURCES.includes(k));
    if (kinds.length === 0 && Object.keys(volume).length === 1) volume[ASSUMED_FIELD] = {};
    for (const [field, content] of Object.entries(volume)) if (isRecord(content)) kindOfField(field)?.defaults?.(content);
  }
}

/** Fills the defaults in, in place. */
export function applyApiDefaults(pod: Pod): void {
  const { spec } = pod;
  spec.restartPolicy ||= 'Always';
  spec.dnsPolicy ||= 'ClusterFirst';
  spec.terminationGracePeriodSeconds ??= 30;
  spec.schedulerName ||= 'default-scheduler';
  spec.securityContext ??= {};
  spec.enableServiceLinks ??= true;
  // The two spellings name one field; the newer one rules.
  const account = spec.serviceAccountName || spec.serviceAccount;
  if (account) {
    spec.serviceAccountName = account;
    spec.serviceAccount = account;
  }
  const hostNetwork = spec.hostNetwork === true;
  for (const c of [...(spec.initContainers ?? []), ...spec.containers]) defaultContainer(c, hostNetwork);
  defaultPodResources(pod);
  defaultVolumes(pod);
}
