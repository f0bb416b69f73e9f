/** A fleet file that is like a cluster: objects of the cluster come in, one after the other, and a file comes out. Pure. */
import { SCENARIO_API_VERSION } from '@actorlet/faults/src/table.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { Document, isMap, isScalar, isSeq, type Pair, visit } from 'yaml';
import { counted } from '../run/counted.ts';
import { FLEET_KIND } from '../spec/table.ts';
import { NodeShapes } from './groups.ts';
import { ImageUses } from './pods.ts';
import { nodeFactsOf } from './shape.ts';

export interface TwinOptions {
  name: string;
  seed: number;
  keepNames: boolean;
}
export interface WrittenTwin {
  text: string;
  nodes: number;
  pods: number;
  groups: number;
  rules: number;
  /** What is not as it is there, for people. */
  notes: readonly string[];
}

/** Objects that are told of, of all that are left out. */
const TROUBLES_MAX = 20;
/** Of the API: each image is told once, by the nodes that have it. */
const KINDS: Readonly<Record<string, (of: Record<string, unknown>) => boolean>> = {
  Node: (of) => isRecord(of.status) && isRecord(of.status.nodeInfo),
  Pod: (of) => isRecord(of.spec) && Array.isArray(of.spec.containers) && isRecord(of.status),
  PodMetrics: (of) => Array.isArray(of.containers) && typeof of.window === 'string',
};
const METRICS_GROUP = 'metrics.k8s.io/';

export class Twin {
  readonly #o: TwinOptions;
  readonly #nodes: NodeShapes;
  readonly #images: ImageUses;
  readonly #troubles: string[] = [];
  #troubled = 0;
  #others = 0;

  constructor(o: TwinOptions) {
    this.#o = o;
    this.#nodes = new NodeShapes(o.keepNames);
    this.#images = new ImageUses(o.keepNames);
  }

  /** An object of whatever kind. Those of no use here are counted and forgotten. `from`: where it stands, for people. */
  add(object: unknown, from: string): void {
    const kind = kindOf(object);
    if (!isRecord(object) || kind === null) {
      this.#others += 1;
      return;
    }
    if (kind === 'Node') this.#addNode(object, from);
    else this.#told(kind === 'Pod' ? this.#images.addPod(object) : this.#images.addMetrics(object), { kind, object, from });
  }

  /** What stands there cannot be read. */
  unreadable(from: string, why: string): void {
    this.#trouble(`${from}: ${why}`);
  }

  #addNode(object: Record<string, unknown>, from: string): void {
    const facts = nodeFactsOf(object, this.#o);
    if (typeof facts === 'string') {
      this.#told(facts, { kind: 'Node', object, from });
      return;
    }
    const { leftOut } = facts;
    if (leftOut.length > 0) this.#told(`left out: ${[...new Set(leftOut)].join(', ')}`, { kind: 'Node', object, from });
    if (this.#nodes.add(facts) && isRecord(object.status)) this.#images.addSizes(object.status.images);
  }

  #told(why: string | null, { kind, object, from }: { kind: string; object: Record<string, unknown>; from: string }): void {
    if (why === null) return;
    const name = isRecord(object.metadata) && typeof object.metadata.name === 'string' ? object.metadata.name : '';
    this.#trouble(`${from}: ${kind} ${JSON.stringify(name.slice(0, 80))}: ${why}`);
  }

  #trouble(text: string): void {
    this.#troubled += 1;
    if (this.#troubles.length < TROUBLES_MAX) this.#troubles.push(text);
  }

  /** @throws Error where there is no node. */
  written(): WrittenTwin {
    const { name, seed, keepNames } = this.#o;
    const notes = [...this.#troubles];
    if (this.#troubled > TROUBLES_MAX) notes.push(`... and ${this.#troubled - TROUBLES_MAX} more objects`);
    if (this.#nodes.count === 0) throw new Error(['there is no node that a fleet can have', ...notes].join('\n'));
    const { groups, notes: ofNodes } = this.#nodes.written();
    const { images, pods, notes: ofPods } = this.#images.written();
    if (this.#others > 0) notes.push(`of no use here: ${counted(this.#others, 'objects')}, neither nodes, pods nor metrics of pods`);
    notes.push(...ofNodes, ...ofPods);
    const file = {
      apiVersion: SCENARIO_API_VERSION,
      kind: FLEET_KIND,
      metadata: { name },
      spec: { seed, groups, ...(images.length === 0 ? {} : { images }), ...(pods.length === 0 ? {} : { pods }) },
    };
    const head = headOf({ keepNames, nodes: this.#nodes.count, pods: this.#images.count });
    return {
      text: `${head}${yamlOf(file)}`,
      nodes: this.#nodes.count,
      pods: this.#images.count,
      groups: groups.length,
      rules: pods.length,
      notes,
    };
  }
}

/** Lists of some programs leave the kinds of their items out. */
function kindOf(object: unknown): 'Node' | 'Pod' | 'PodMetrics' | null {
  if (!isRecord(object)) return null;
  const { kind, apiVersion } = object;
  if (kind === undefined) return (Object.keys(KINDS).find((of) => KINDS[of]?.(object)) ?? null) as ReturnType<typeof kindOf>;
  if (apiVersion === 'v1' && (kind === 'Node' || kind === 'Pod')) return kind;
  return kind === 'PodMetrics' && typeof apiVersion === 'string' && apiVersion.startsWith(METRICS_GROUP) ? kind : null;
}

function headOf({ keepNames, nodes, pods }: { keepNames: boolean; nodes: number; pods: number }): string {
  const lines = [
    `Written by \`actorlet fleet from\`, of ${counted(nodes, 'nodes')} and ${counted(pods, 'pods')}.`,
    'Kept: labels, taints, sizes, versions, kernels and systems of nodes; of pods how containers started and ended, and their usage, by image.',
    keepNames
      ? 'Names of nodes, their ids at their provider, and registries of images are kept, too.'
      : 'Names of nodes are replaced. Labels that name one node, ids at the provider, and registries of images are left out.',
    'Nothing else is kept: no environment, no annotation, no argument, no address, no name of a pod or a namespace.',
  ];
  return lines.map((line) => `# ${line}\n`).join('');
}

/** Short lists and mappings stand on one line. */
function yamlOf(file: unknown): string {
  const doc = new Document(file, { aliasDuplicateObjects: false });
  visit(doc, {
    Seq: (_, seq) => {
      if (seq.items.every((item) => isScalar(item))) seq.flow = true;
    },
    Pair: (_, pair: Pair) => {
      if (!isScalar(pair.key) || !isMap(pair.value)) return;
      if (INLINE.includes(String(pair.key.value))) pair.value.flow = true;
    },
    Map: (key, map, path) => {
      const parent = path.at(-1);
      if (isSeq(parent) && typeof key === 'number' && map.items.every((pair) => isScalar(pair.value))) map.flow = true;
    },
  });
  return doc.toString({ lineWidth: 0, flowCollectionPadding: true });
}
const INLINE = ['capacity', 'allocatable', 'machine', 'metadata', 'start', 'run'];
