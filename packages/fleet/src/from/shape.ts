/** What schedulers and autoscalers know of a node, taken from its object. Whatever of it is no fact of a fleet file is left out. Pure. */
import type { ConfigTaint } from '@actorlet/kubelet/machines/config/config.ts';
import { dnsSubdomain, HUGE_PAGES_PREFIX, qualifiedName } from '@actorlet/kubelet/machines/kube/names.ts';
import { quantityToInteger, quantityToMilli } from '@actorlet/kubelet/machines/kube/quantity.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { recordOf } from '@actorlet/kubelet/machines/shape/lenient.ts';
import { FLEET_LABEL } from '../file.ts';
import { wrongLabel } from '../spec/machines.ts';
import { MACHINE, VERSION } from '../spec/table.ts';

type Fields = Record<string, unknown>;
type Amounts = Record<string, number>;

/** Nodes of one shape are a group. */
export interface Shape {
  labels: Record<string, string>;
  taints: ConfigTaint[];
  unschedulable: boolean;
  /** cpu in whole processors, memory and disk in bytes; huge pages and extended resources under their names. */
  capacity: Amounts;
  /** cpu in thousandths. */
  allocatable: Amounts;
  machine: Record<string, string>;
  version: string;
  handlers: string[];
  /** Of the provider's ids: `aws`; '': there is none. */
  provider: string;
}
export interface NodeFacts {
  name: string;
  providerID: string;
  /** Labels that name this one node. */
  own: Record<string, string>;
  shape: Shape;
  ready: boolean;
  /** What of it is not in its shape, for people. */
  leftOut: string[];
}

export const INSTANCE_TYPES = ['node.kubernetes.io/instance-type', 'beta.kubernetes.io/instance-type'];
const LABELS_MAX = 256;
const TAINTS_MAX = 64;
const ADDRESSES_MAX = 64;
const HANDLERS_MAX = 16;
const TEXT_MAX = 128;
const PODS_MAX = 10_000;
const CPUS_MAX = 1_024;
const PLAIN_TEXT = /^[ -~]+$/;
const PROVIDER = /^([a-z][a-z0-9+.-]{0,30}):\/\/[!-~]{1,500}$/;
/** A shorter piece stands in many values by chance. */
const IDENTITY_MIN = 4;
const HAS_DIGIT = /\d/;
const ALPHANUMERIC = /[A-Za-z0-9]/;
const VERSION_OF = new RegExp(VERSION);
const HOSTNAME = 'kubernetes.io/hostname';
/** Taints of a moment: the cluster's controllers put them on nodes and take them away. */
const STATE_TAINT =
  /^(?:node\.kubernetes\.io\/(?:not-ready|unreachable|unschedulable|memory-pressure|disk-pressure|pid-pressure|network-unavailable)|node\.cloudprovider\.kubernetes\.io\/uninitialized)$/;
const EFFECTS: readonly string[] = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] satisfies ConfigTaint['effect'][];

/** A text: why the object is no node that a fleet can have. Without `keepNames` no taint names the machine. */
export function nodeFactsOf(object: Fields, { keepNames }: { keepNames: boolean }): NodeFacts | string {
  const metadata = recordOf(object.metadata);
  const spec = recordOf(object.spec);
  const status = recordOf(object.status);
  const { name } = metadata;
  if (typeof name !== 'string' || dnsSubdomain(name) !== null) return 'its name is none that a node can have';
  const leftOut: string[] = [];
  const amounts = amountsOf(status, leftOut);
  if (typeof amounts === 'string') return amounts;
  const info = recordOf(status.nodeInfo);
  const machine = machineOf(info, leftOut);
  const providerID = typeof spec.providerID === 'string' && PROVIDER.test(spec.providerID) ? spec.providerID : '';
  if (providerID === '' && spec.providerID !== undefined && spec.providerID !== '') leftOut.push('its providerID');
  const labels = labelsOf(recordOf(metadata.labels), machine, leftOut);
  const isOwn = namesOne(identities({ name, providerID, status, info }));
  const own = Object.fromEntries(Object.entries(labels).filter(([key, value]) => key === HOSTNAME || isOwn(value) || isOwn(key)));
  const shared = Object.fromEntries(Object.entries(labels).filter(([key]) => !(key in own)));
  // The node says it itself.
  if (own[HOSTNAME] === name) delete own[HOSTNAME];
  const { kubeletVersion } = info;
  const version = typeof kubeletVersion === 'string' && VERSION_OF.test(kubeletVersion) ? kubeletVersion : '';
  if (version === '') leftOut.push('its version');
  const taints = taintsOf(spec.taints, leftOut);
  const shape = {
    ...{
      labels: sorted(shared),
      taints: keepNames ? taints : taints.map((taint) => (isOwn(taint.value) ? { ...taint, value: '' } : taint)),
      unschedulable: spec.unschedulable === true,
    },
    ...{ ...amounts, machine, version, handlers: handlersOf(status.runtimeHandlers) },
    provider: PROVIDER.exec(providerID)?.[1] ?? '',
  };
  return { name, providerID, own, shape, ready: isReady(status.conditions), leftOut };
}

function amountsOf(status: Fields, leftOut: string[]): Pick<Shape, 'capacity' | 'allocatable'> | string {
  const capacity = recordOf(status.capacity);
  const usable = recordOf(status.allocatable);
  const whole = (of: Fields, key: string): number | undefined => amountOf(of[key], quantityToInteger);
  const [cpus, memory, pods] = [
    amountOf(capacity.cpu, quantityToMilli),
    whole(capacity, 'memory'),
    whole(usable, 'pods') ?? whole(capacity, 'pods'),
  ];
  if (cpus === undefined || memory === undefined || pods === undefined) return 'it reports no cpu, memory or pods';
  const there: Amounts = { cpu: Math.ceil(cpus / 1_000), memory, pods, 'ephemeral-storage': whole(capacity, 'ephemeral-storage') ?? 0 };
  if (there.cpu === 0 || (there.cpu ?? 0) > CPUS_MAX || pods === 0 || pods > PODS_MAX)
    return `it has ${cpus / 1_000} cpu and ${pods} pods, which no node of a fleet has`;
  for (const key of Object.keys(capacity)) {
    if (key in there || key.startsWith('attachable-volumes-')) continue;
    const isHuge = key.startsWith(HUGE_PAGES_PREFIX);
    const amount = isHuge || qualifiedName(key) !== null ? whole(capacity, key) : (whole(usable, key) ?? whole(capacity, key));
    const fits = isHuge ? /^hugepages-[1-9]\d{0,9}[KMGT]i$/.test(key) : key.includes('/') && qualifiedName(key) === null;
    if (!fits || amount === undefined) leftOut.push('a resource that no node can have');
    else if (amount > 0 || !isHuge) there[key] = amount;
  }
  const huge = Object.entries(there).reduce((sum, [key, bytes]) => sum + (key.startsWith(HUGE_PAGES_PREFIX) ? bytes : 0), 0);
  if (huge > memory) return 'its huge pages are more than its memory';
  const most = { cpu: (there.cpu ?? 0) * 1_000, memory: memory - huge, 'ephemeral-storage': there['ephemeral-storage'] ?? 0 };
  return {
    capacity: sorted(there),
    allocatable: {
      cpu: Math.min(most.cpu, amountOf(usable.cpu, quantityToMilli) ?? Math.min(cpus, most.cpu)),
      memory: Math.min(most.memory, whole(usable, 'memory') ?? most.memory),
      'ephemeral-storage': Math.min(most['ephemeral-storage'], whole(usable, 'ephemeral-storage') ?? most['ephemeral-storage']),
    },
  };
}

function amountOf(value: unknown, read: (of: string | number) => number): number | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined;
  const amount = read(value);
  return Number.isSafeInteger(amount) && amount >= 0 ? amount : undefined;
}

function machineOf(info: Fields, leftOut: string[]): Record<string, string> {
  const text = (of: unknown): string | undefined =>
    typeof of === 'string' && of.length <= TEXT_MAX && PLAIN_TEXT.test(of) ? of : undefined;
  const word = (of: unknown, known: readonly string[] = []): string | undefined => known.find((one) => one === of);
  const machine = {
    kernel: text(info.kernelVersion),
    osImage: text(info.osImage),
    arch: word(info.architecture, MACHINE.arch.t === 'string' ? MACHINE.arch.words : []),
    os: word(info.operatingSystem, MACHINE.os.t === 'string' ? MACHINE.os.words : []),
  };
  const given = { kernel: info.kernelVersion, osImage: info.osImage, arch: info.architecture, os: info.operatingSystem };
  for (const [key, value] of Object.entries(machine)) {
    if (value === undefined && given[key as keyof typeof given] !== undefined && given[key as keyof typeof given] !== '')
      leftOut.push(`its ${key}`);
  }
  return Object.fromEntries(Object.entries(machine).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

function labelsOf(labels: Fields, { os = 'linux', arch = 'amd64' }: Record<string, string>, leftOut: string[]): Record<string, string> {
  const ofMachine: Record<string, string> = {
    ...{ 'kubernetes.io/os': os, 'beta.kubernetes.io/os': os },
    ...{ 'kubernetes.io/arch': arch, 'beta.kubernetes.io/arch': arch },
  };
  const kept: Record<string, string> = {};
  for (const [key, value] of Object.entries(labels)) {
    if (key === FLEET_LABEL || ofMachine[key] === value) continue;
    if (typeof value !== 'string' || wrongLabel(key, value) !== null || Object.keys(kept).length >= LABELS_MAX) leftOut.push('a label');
    else kept[key] = value;
  }
  return kept;
}

interface Named {
  name: string;
  providerID: string;
  status: Fields;
  info: Fields;
}
/** Texts that name one machine. */
function identities({ name, providerID, status, info }: Named): string[] {
  const addresses = Array.isArray(status.addresses)
    ? status.addresses
        .slice(0, ADDRESSES_MAX)
        .filter(isRecord)
        .map(({ address }) => address)
    : [];
  const ips = addresses.flatMap((of) => (typeof of === 'string' && /^[\d.]+$/.test(of) ? [of, of.replaceAll('.', '-')] : [of]));
  const all = [name, providerID.split('/').pop(), info.machineID, info.systemUUID, ...ips];
  return all.filter((of): of is string => typeof of === 'string' && of.length >= IDENTITY_MIN);
}

function namesOne(identities: readonly string[]): (text: string) => boolean {
  return (text) => identities.some((one) => text === one || (HAS_DIGIT.test(one) && isWordIn(text, one)));
}

/** `a-1` is a word in `x.a-1`, and none in `a-10`. */
function isWordIn(text: string, word: string): boolean {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    if (!ALPHANUMERIC.test(text.charAt(at - 1)) && !ALPHANUMERIC.test(text.charAt(at + word.length))) return true;
  }
  return false;
}

function taintsOf(taints: unknown, leftOut: string[]): ConfigTaint[] {
  const kept: ConfigTaint[] = [];
  for (const taint of Array.isArray(taints) ? taints.slice(0, TAINTS_MAX) : []) {
    const { key, value = '', effect } = recordOf(taint);
    if (typeof key === 'string' && STATE_TAINT.test(key)) continue;
    const fits = typeof key === 'string' && typeof value === 'string' && typeof effect === 'string' && EFFECTS.includes(effect);
    if (!fits || wrongLabel(key, value) !== null) leftOut.push('a taint');
    else kept.push({ key, value, effect: effect as ConfigTaint['effect'] });
  }
  return kept.sort((a, b) => (textOf(a) < textOf(b) ? -1 : 1));
}

export function textOf({ key, value, effect }: ConfigTaint): string {
  return `${key}${value === '' ? '' : `=${value}`}:${effect}`;
}

function handlersOf(handlers: unknown): string[] {
  const names = Array.isArray(handlers) ? handlers.filter(isRecord).map(({ name }) => name) : [];
  return names
    .filter((name): name is string => typeof name === 'string' && name !== '' && dnsSubdomain(name) === null)
    .slice(0, HANDLERS_MAX)
    .sort();
}

function isReady(conditions: unknown): boolean {
  return Array.isArray(conditions) && conditions.some((c) => isRecord(c) && c.type === 'Ready' && c.status === 'True');
}

function sorted<T>(of: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(of).sort(([a], [b]) => (a < b ? -1 : 1)));
}
