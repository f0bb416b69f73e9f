/** Facts about a death that the views of other actors hold. Pure. */
import { apiView } from '@actorlet/kubelet/machines/api/messages.ts';
import { eventsView, type RecordedEvent } from '@actorlet/kubelet/machines/foundation/messages.ts';
import { userOfImage } from '@actorlet/kubelet/machines/kube/imageRef.ts';
import type { Container, Probe } from '@actorlet/kubelet/machines/kube/podTable.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { PROBE_FIELDS, PROBE_NAMES, PROBE_TYPES } from '@actorlet/kubelet/machines/pod/probes/probes.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import type { Death } from '@actorlet/kubelet/machines/reclaim/deaths/messages.ts';
import { pressureView } from '@actorlet/kubelet/machines/reclaim/eviction/messages.ts';
import { imagesOfPod } from '@actorlet/kubelet/machines/reclaim/imageGc/imageGc.ts';
import type { Moment } from '@actorlet/kubelet/machines/recorder/moment.ts';
import { criView } from '@actorlet/kubelet/machines/runtime/cri/messages.ts';
import { type OomReport, oomView } from '@actorlet/kubelet/machines/runtime/oom.ts';
import { probesView } from '@actorlet/kubelet/machines/services/probes/messages.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { GroupRead, NodeThen, ProbeShown } from './bundle.ts';

export function eventsOf(m: Pick<Moment, 'read'>, uid: string): RecordedEvent[] {
  return (m.read(eventsView) ?? []).filter((e) => e.pod?.uid === uid);
}

const STEPS_OF_A_START: readonly string[] = ['Pulling', 'Pulled', 'Failed', 'BackOff', 'Created', 'Started'];
/** How far the start of a container got, in the words of its events. */
export function lastSaid(m: Pick<Moment, 'read'>, { uid, container }: { uid: string; container: string }): RecordedEvent | undefined {
  return eventsOf(m, uid).findLast((e) => STEPS_OF_A_START.includes(e.reason) && (e.fieldPath ?? '').endsWith(`{${container}}`));
}

export function containerOf(pod: Pod | undefined, name: string): Container | undefined {
  const { initContainers = [], containers = [] } = pod?.spec ?? {};
  return [...initContainers, ...containers].find((c) => c.name === name);
}

/** What failed probes said stands in events. */
const SAID_MAX = 5;
export function probesOf(m: Pick<Moment, 'read'>, death: Death, container: Container | undefined): ProbeShown[] {
  const results = m.read(probesView)?.get(death.end?.containerId ?? '');
  const events = eventsOf(m, death.pod.uid).filter((e) => e.reason === 'Unhealthy' && (e.fieldPath ?? '').endsWith(`{${death.container}}`));
  return PROBE_TYPES.flatMap((type) => {
    const probe = container?.[PROBE_FIELDS[type]];
    if (probe === undefined) return [];
    const begin = `${PROBE_NAMES[type]} probe `;
    const said = events
      .filter((e) => e.message.startsWith(begin))
      .map((e) => `${e.message.slice(begin.length).replace(/^failed: /, '')}${e.count > 1 ? ` (${e.count} times)` : ''}`);
    return [{ type, how: probeHow(probe), last: results?.[type] ?? '', said: said.slice(-SAID_MAX) }];
  });
}

/** The path is shown without its query, and a command not at all: both may hold a secret. */
function probeHow({ httpGet, tcpSocket, grpc, exec, ...times }: Probe): string {
  const what =
    httpGet !== undefined
      ? `GET ${(httpGet.scheme ?? 'HTTP').toLowerCase()}://${httpGet.host ?? ''}:${httpGet.port}${(httpGet.path ?? '/').split('?', 1)[0]}`
      : tcpSocket !== undefined
        ? `a connection to port ${tcpSocket.port}`
        : grpc !== undefined
          ? `gRPC health on port ${grpc.port}`
          : exec !== undefined
            ? 'a command in the container'
            : 'nothing';
  const { periodSeconds = 10, failureThreshold = 3, timeoutSeconds = 1, initialDelaySeconds = 0 } = times;
  const delay = initialDelaySeconds > 0 ? `, first after ${initialDelaySeconds}s` : '';
  return `${what}, every ${periodSeconds}s${delay}, within ${timeoutSeconds}s, ${failureThreshold} failures in a row are too many`;
}

/** Of the kernel's reports those that are about this container, or its pod. */
export function kernelLines(m: Pick<Moment, 'read'>, death: Death): string[] {
  const own = reportsOf(m, death);
  if (own.length > 0) return own.flatMap(({ lines }) => lines).slice(-KERNEL_LINES_MAX);
  // The container may have been killed for a process in a group of its own.
  const ofPod = m.read(oomView)?.reports.findLast((report) => isAbout(report, death.pod.uid));
  return death.kind === 'oom' || death.kind === 'evicted' ? (ofPod?.lines ?? []).slice(-KERNEL_LINES_MAX) : [];
}
/** Whether the kernel killed it for want of memory, as its log says, or the runtime. Both may say it only later. */
export function wasOutOfMemory(m: Pick<Moment, 'read'>, death: Death): boolean {
  const { containerStatuses = [], initContainerStatuses = [] } = m.read(statusesView)?.get(death.pod.uid)?.status ?? {};
  const ends = [...initContainerStatuses, ...containerStatuses].flatMap((c) => [c.state.terminated, c.lastState.terminated]);
  const id = death.end?.containerId ?? '';
  const saidSo = ends.some((end) => end?.reason === 'OOMKilled' && id !== '' && end.containerID?.endsWith(id) === true);
  return saidSo || reportsOf(m, death).length > 0;
}
function reportsOf(m: Pick<Moment, 'read'>, { end }: Death): readonly OomReport[] {
  const id = end?.containerId ?? '';
  return id === '' ? [] : (m.read(oomView)?.reports ?? []).filter(({ group }) => group.includes(id));
}
const KERNEL_LINES_MAX = 24;
function isAbout({ group }: OomReport, uid: string): boolean {
  return uid !== '' && (group.includes(uid) || group.includes(uid.replaceAll('-', '_')));
}

export function nodeThen(m: Moment, host: { kernel: string; memory: NodeThen['memory'] }): NodeThen {
  const cri = m.read(criView);
  const object = m.read(apiView.nodeObject)?.object;
  const status = isRecord(object?.status) ? object.status : {};
  const listed: readonly unknown[] = Array.isArray(status.conditions) ? status.conditions : [];
  return {
    name: m.name,
    version: m.version,
    runtime: cri === undefined ? '' : `${cri.runtimeName} ${cri.runtimeVersion}`.trim(),
    kernel: host.kernel,
    pressures: [...(m.read(pressureView)?.pressures ?? [])],
    conditions: listed
      .slice(0, CONDITIONS_MAX)
      .filter(isRecord)
      .map((c) => ({
        ...{ type: textOf(c.type), status: textOf(c.status), reason: textOf(c.reason), message: textOf(c.message) },
      })),
    memory: host.memory,
    startedAtMs: m.startedAtMs ?? 0,
  };
}
const CONDITIONS_MAX = 20;
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Files of a pod's group in either version of the kernel's interface. */
export const GROUP_FILES = [
  ...['memory.current', 'memory.peak', 'memory.max', 'memory.events'].map((file) => ({ controller: 'memory', file })),
  { controller: 'cpu', file: 'cpu.stat' },
  ...['memory.usage_in_bytes', 'memory.max_usage_in_bytes', 'memory.limit_in_bytes'].map((file) => ({ controller: 'memory', file })),
  { controller: 'cpuacct', file: 'cpuacct.usage' },
];
/** The first version writes a number near 2^63 where there is no limit. */
const NO_LIMIT = 2 ** 60;

export function groupRead(texts: readonly string[]): GroupRead | null {
  const [current = '', peak = '', max = '', events = '', cpu = '', usage = '', maxUsage = '', limit = '', acct = ''] = texts;
  if (texts.every((text) => text === '')) return null;
  const number = (text: string): number | null => (/^\d+\s*$/.test(text) ? Number(text) : null);
  const field = (text: string, name: string): number | null => {
    const [, value] = new RegExp(`^${name} (\\d+)$`, 'm').exec(text) ?? [];
    return value === undefined ? null : Number(value);
  };
  const per = (value: number | null, unit: number): number | null => (value === null ? null : value / unit);
  const maxBytes = number(max) ?? number(limit);
  return {
    memoryBytes: number(current) ?? number(usage),
    peakBytes: number(peak) ?? number(maxUsage),
    maxBytes: maxBytes === null || maxBytes > NO_LIMIT ? null : maxBytes,
    oomKills: field(events, 'oom_kill'),
    cpuSeconds: per(field(cpu, 'usage_usec'), 1e6) ?? per(number(acct), 1e9),
    throttledSeconds: per(field(cpu, 'throttled_usec'), 1e6) ?? per(field(cpu, 'throttled_time'), 1e9),
  };
}

/** What a pod's definition has that is secret, beside what the runtime was told. */
export function secretsOfPod(pod: Pod | undefined): string[] {
  if (pod === undefined) return [];
  const { initContainers = [], containers = [], ephemeralContainers = [] } = pod.spec;
  const words: unknown[] = imagesOfPod(pod).flatMap(userOf);
  const handlers = (c: Partial<Container>) => [
    c.livenessProbe,
    c.readinessProbe,
    c.startupProbe,
    c.lifecycle?.postStart,
    c.lifecycle?.preStop,
  ];
  for (const c of [...initContainers, ...containers, ...ephemeralContainers] as readonly Partial<Container>[]) {
    words.push(...(c.command ?? []), ...(c.args ?? []), ...(c.env ?? []).map(({ value }) => value));
    for (const handler of handlers(c)) {
      words.push(...(handler?.exec?.command ?? []), ...(handler?.httpGet?.httpHeaders ?? []).map(({ value }) => value));
      const query = handler?.httpGet?.path?.split('?')[1];
      if (query !== undefined) words.push(query, ...new URLSearchParams(query).values());
    }
  }
  const { name, namespace, uid } = pod.metadata;
  return words.filter((word): word is string => typeof word === 'string' && word !== '' && ![name, namespace, uid].includes(word));
}

/** Before an image: name and password together, and each. */
function userOf(image: string): string[] {
  const user = userOfImage(image);
  if (user === null) return [];
  const both = image.slice(user.from, user.to);
  return [both, ...both.split(':')];
}

/** First words of commands, as far as they look like a program. */
export function programsOf(pod: Pod | undefined): string[] {
  const { initContainers = [], containers = [], ephemeralContainers = [] } = pod?.spec ?? {};
  const all = ([...initContainers, ...containers, ...ephemeralContainers] as readonly Partial<Container>[]).flatMap((c) => [
    c.command?.[0],
    ...[c.livenessProbe, c.readinessProbe, c.startupProbe, c.lifecycle?.postStart, c.lifecycle?.preStop].map((h) => h?.exec?.command?.[0]),
  ]);
  return [...new Set(all.filter((word): word is string => word !== undefined && PROGRAM.test(word)))];
}
/** Small letters and few digits: passwords and tokens have others. */
const PROGRAM = /^(?!.*\d(?:[^/\d]*\d){4})\/?[a-z\d_.+-]{1,32}(?:\/[a-z\d_.+-]{1,32}){0,16}$/;
