/** API defaulting of a decoded pod (spec: pod lifecycle 1.5): what the API server would have filled in. Pure. */

import { own, put } from '../../data/own.ts';
import { type Container, type LifecycleHandler, type Probe, VOLUME_SOURCES } from '../../kube/podTable.ts';
import type { Pod, Quantity } from '../../kube/types.ts';
import type { PullPolicy } from '../../kube/words.ts';
import { isPodLevel } from '../../pod/resources/podLevel.ts';
import { containersTotal } from '../../pod/resources/resources.ts';
import { isRecord } from '../../shape/conform.ts';

/** Octal 0644, the default mode of files in secret, config map, downward and projected volumes. */
const FILE_MODE = 0o644;

const DIGEST = /@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$/;
const PATH_PART = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const TAG = /^\w[\w.-]{0,127}$/;

/** The tag that an image's name has or comes to; '' with a digest alone, and for what is no image's name. */
function tagOf(image: string): string {
  const name = image.replace(DIGEST, '');
  const colon = name.indexOf(':', name.lastIndexOf('/') + 1);
  const tag = colon >= 0 ? name.slice(colon + 1) : name === image ? 'latest' : '';
  const parts = (colon >= 0 ? name.slice(0, colon) : name).split('/');
  const [domain = ''] = parts;
  const hasDomain = parts.length > 1 && (/[.:A-Z]/.test(domain) || domain === 'localhost');
  const isName = (hasDomain ? parts.slice(1) : parts).every((part) => PATH_PART.test(part));
  return isName && (colon < 0 || TAG.test(tag)) ? tag : '';
}

/** `Always` when the tag is, or resolves to, `latest`; a digest without a tag counts as pinned. */
export function defaultPullPolicy(image: string | undefined): PullPolicy {
  return tagOf(image ?? '') === 'latest' ? 'Always' : 'IfNotPresent';
}

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

/** Of files of the downward API, in a volume of their own or among others. */
function defaultItems(source: unknown): void {
  for (const item of isRecord(source) && Array.isArray(source.items) ? source.items : []) {
    const { fieldRef, resourceFieldRef } = isRecord(item) ? item : {};
    if (isRecord(fieldRef)) fieldRef.apiVersion ||= 'v1';
    if (isRecord(resourceFieldRef)) resourceFieldRef.divisor ??= '0';
  }
}

function defaultProjected(source: unknown): void {
  for (const part of isRecord(source) && Array.isArray(source.sources) ? source.sources : []) {
    if (!isRecord(part)) continue;
    defaultItems(part.downwardAPI);
    if (isRecord(part.serviceAccountToken)) part.serviceAccountToken.expirationSeconds ??= 3600;
  }
}

function defaultVolumes(pod: Pod): void {
  for (const volume of pod.spec.volumes ?? []) {
    const kinds = Object.keys(volume).filter((k) => VOLUME_SOURCES.includes(k));
    if (kinds.length === 0 && Object.keys(volume).length === 1) volume.emptyDir = {};
    for (const kind of ['configMap', 'secret', 'downwardAPI', 'projected']) {
      const source = volume[kind];
      if (isRecord(source)) source.defaultMode ??= FILE_MODE;
    }
    defaultItems(volume.downwardAPI);
    defaultProjected(volume.projected);
    const { hostPath, image } = volume;
    if (isRecord(hostPath)) hostPath.type ??= '';
    if (isRecord(image)) image.pullPolicy ||= defaultPullPolicy(typeof image.reference === 'string' ? image.reference : '');
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
