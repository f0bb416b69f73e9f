/** Which nodes a fleet adopts, of which shape they are, and what becomes of each: drawn by the seed, in the order of their coming. Pure. */

import { parseLabelSelector } from '@actorlet/kubelet/machines/kube/read/labelSelector.ts';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Rng } from '@actorlet/kubelet/ports/ports.ts';
import { globToRegExp } from '@actorlet/shown/src/match.ts';
import { INSTANCE_TYPES, nodeFactsOf, type Shape } from '../from/shape.ts';
import type { AdoptSpec } from '../spec/adopt.ts';
import { drawn } from '../spec/delay.ts';
import { DEFAULT_GROUP, type GroupSpec } from '../spec/groups.ts';
import { MACHINE } from '../spec/table.ts';
import type { Adopted, Fate } from './messages.ts';

/** No provider's id is longer, and what a pattern costs grows with it. */
const MATCHED_CHARS_MAX = 1_024;
const HUGE_PAGES = 'hugepages-';

export class Adopters {
  readonly #rules: readonly Adopter[];
  readonly #groups: readonly GroupSpec[];

  constructor(rules: readonly AdoptSpec[], { groups, rngOf }: { groups: readonly GroupSpec[]; rngOf(rule: string): Rng }) {
    this.#rules = rules.map((rule) => new Adopter(rule, rngOf(rule.name)));
    this.#groups = groups;
  }

  /** Of all nodes that are adopted; '': they have no selector in common. */
  get selector(): string {
    return this.#rules.length === 1 ? (this.#rules[0]?.spec.selector ?? '') : '';
  }

  /** The first rule that matches; null: none. `isKnown`: its kubelet was here before, so it comes at once. */
  choose(node: KubeObject, isKnown: boolean): Adopted | null {
    const rule = this.#rules.find((one) => one.matches(node));
    if (rule === undefined) return null;
    const { name, uid } = node.metadata;
    const fate = isKnown ? ({ what: 'comes', afterMs: 0 } as const) : rule.fate();
    const shape = this.#shapeOf(node, rule.spec);
    const group = { ...shape, ...PLAIN, name: rule.spec.name };
    return { shape: shape.name, name, uid: String(uid ?? ''), rule: rule.spec.name, providerID: providerOf(node), group, fate };
  }

  /** By the type of its machine, by its rule, by what its status says, or a default node. */
  #shapeOf(node: KubeObject, rule: AdoptSpec): GroupSpec {
    const labels = labelsOf(node);
    const type = INSTANCE_TYPES.map((key) => labels[key]).find((of) => of !== undefined && of !== '');
    const ofType =
      type === undefined ? undefined : this.#groups.find((g) => g.name === type || INSTANCE_TYPES.some((key) => g.labels[key] === type));
    const found = ofType ?? this.#groups.find(({ name }) => name === rule.group);
    if (found !== undefined) return found;
    const facts = nodeFactsOf({ ...node }, { keepNames: true });
    const shape = typeof facts === 'string' ? undefined : facts.shape;
    return {
      ...DEFAULT_GROUP,
      nodeName: '',
      count: 0,
      name: '',
      ...(shape === undefined ? {} : capacityOf(shape)),
      machine: machineOf(labels, shape?.machine),
    };
  }
}

/** Who made the node said these of it, and its kubelet does not say otherwise. */
const PLAIN = { count: 1, nodes: [], labels: {}, taints: [], unschedulable: false, providerID: '' } as const;

class Adopter {
  readonly spec: AdoptSpec;
  readonly #rng: Rng;
  readonly #fits: (labels: Record<string, string>) => boolean;
  readonly #names: readonly RegExp[] | null;
  readonly #providerIDs: readonly RegExp[] | null;
  #adopted = 0;

  constructor(spec: AdoptSpec, rng: Rng) {
    this.spec = spec;
    this.#rng = rng;
    const fits = parseLabelSelector(spec.selector ?? '');
    this.#fits = typeof fits === 'string' ? () => false : fits;
    this.#names = spec.names?.map(globToRegExp) ?? null;
    this.#providerIDs = spec.providerIDs?.map(globToRegExp) ?? null;
  }

  matches(node: KubeObject): boolean {
    const any = (patterns: readonly RegExp[] | null, text: string): boolean =>
      patterns === null || (text.length <= MATCHED_CHARS_MAX && patterns.some((p) => p.test(text)));
    return this.#fits(labelsOf(node)) && any(this.#names, node.metadata.name) && any(this.#providerIDs, providerOf(node));
  }

  /** As many draws for each node, whatever comes out: what one rule says shifts no other node. */
  fate(): Fate {
    this.#adopted += 1;
    const next = (): number => this.#rng.next();
    let left = next();
    const refused = this.spec.refuse.find(({ share = 0, order }) => {
      if (order !== undefined) return order.includes(this.#adopted);
      left -= share;
      return left < 0;
    });
    const afterMs = drawn(this.spec.registration, next) + drawn(refused?.as === 'late' ? refused.by : undefined, next);
    return { what: refused === undefined || refused.as === 'late' ? 'comes' : refused.as, afterMs };
  }
}

function capacityOf({ capacity, allocatable }: Shape) {
  const of = (amounts: Record<string, number>, key: string): number => amounts[key] ?? 0;
  const named = Object.entries(capacity);
  const hugePages = named
    .filter(([key]) => key.startsWith(HUGE_PAGES))
    .map(([key, bytes]) => [key.slice(HUGE_PAGES.length), bytes] as const);
  const inHugePages = hugePages.reduce((sum, [, bytes]) => sum + bytes, 0);
  const [cpus, memoryBytes, storageBytes] = [of(capacity, 'cpu'), of(capacity, 'memory'), of(capacity, 'ephemeral-storage')];
  return {
    ...{ cpus, memoryBytes, pods: of(capacity, 'pods') },
    // A provider that says nothing of disks has some.
    storageBytes: storageBytes === 0 ? null : storageBytes,
    hugePages: Object.fromEntries(hugePages),
    extended: Object.fromEntries(named.filter(([key]) => key.includes('/'))),
    reserved: {
      cpuMilli: cpus * 1_000 - of(allocatable, 'cpu'),
      memoryBytes: memoryBytes - inHugePages - of(allocatable, 'memory'),
      storageBytes: storageBytes - of(allocatable, 'ephemeral-storage'),
    },
  };
}

/** As its labels say, else as its status: pods are placed by labels, and the kubelet would put them right. */
function machineOf(labels: Record<string, string>, said: Readonly<Record<string, string>> = {}): GroupSpec['machine'] {
  const word = <T extends string>(shape: { words?: readonly T[] }, value: string | undefined): T | undefined =>
    shape.words?.find((of) => of === value);
  const arch = word(
    MACHINE.arch as { words?: readonly NonNullable<GroupSpec['machine']['arch']>[] },
    labels['kubernetes.io/arch'] ?? said.arch,
  );
  const os = word(MACHINE.os as { words?: readonly NonNullable<GroupSpec['machine']['os']>[] }, labels['kubernetes.io/os'] ?? said.os);
  const { kernel, osImage } = said;
  const all = { kernel, osImage, arch, os };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

function labelsOf({ metadata }: KubeObject): Record<string, string> {
  return isRecord(metadata.labels) ? (metadata.labels as Record<string, string>) : {};
}

function providerOf({ spec }: KubeObject): string {
  return isRecord(spec) && typeof spec.providerID === 'string' ? spec.providerID : '';
}
