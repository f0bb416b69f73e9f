/**
 * What a pod sets that this node cannot honour, by the table of fields (`fieldTable.ts`): what refuses the pod at admission, and
 * what is left alone.
 */
import { isExtendedResource } from '../../kube/names.ts';
import { metadata as metadataShape, podShape, spec as specShape } from '../../kube/podTable.ts';
import type { Pod } from '../../kube/types.ts';
import type { FieldRule } from '../../pod/fieldRule.ts';
import { limitsNotKept } from '../../pod/resources/podLevel.ts';
import { isRecord } from '../../shape/conform.ts';
import type { Shape } from '../../shape/shape.ts';
import { cut, ErrorList, quoted } from '../../text/errorList.ts';
import { didYouMean } from '../../text/nearest.ts';
import { FIELD_TABLE, NO_SUCH_RESOURCE } from './fieldTable.ts';

/** Why what only the API can tell is refused of a manifest. */
const NEEDS_API = 'only of a pod that came from an API server';

const LIMITS_NOT_KEPT =
  'this node limits containers, not pods, and these could go beyond it together: give them limits that come to no more than it';

/** The table as a tree, so that one walk over a pod decides everything. */
export interface RuleNode {
  leaf: FieldRule | null;
  readonly children: Map<string, RuleNode>;
}
function partsOf(rule: FieldRule): string[] {
  return rule.path.replaceAll('[*]', '.[*]').split('.');
}
function tableTree(withApi: boolean): RuleNode {
  const root: RuleNode = { leaf: null, children: new Map() };
  for (const rule of FIELD_TABLE) {
    if (rule.api === true && !withApi) continue;
    let at = root;
    for (const part of partsOf(rule)) {
      let next = at.children.get(part);
      if (next === undefined) {
        next = { leaf: null, children: new Map() };
        at.children.set(part, next);
      }
      at = next;
    }
    at.leaf = rule.apiElse === undefined || withApi ? rule : { path: rule.path, leftAlone: rule.apiElse };
  }
  return root;
}
/** Without an API, what leads nowhere but to its rules is refused as a whole: `envFrom`, not each of its fields. */
function standaloneTree(): RuleNode {
  const root = tableTree(false);
  for (const rule of FIELD_TABLE.filter((r) => r.api === true)) {
    let at = root;
    for (const part of partsOf(rule)) {
      const next = at.children.get(part);
      if (next === undefined) at.children.set(part, { leaf: { path: rule.path, refused: NEEDS_API }, children: new Map() });
      if (next === undefined || next.leaf !== null) break;
      at = next;
    }
  }
  return root;
}
/** What a manifest may say, without an API server to ask. */
export const MANIFEST_RULES: RuleNode = standaloneTree();
const TREE_WITH_API: RuleNode = tableTree(true);

/** The rules for a field, a key of a map, or with `[*]` an element of a list; undefined: nothing was decided. */
export function childOf(node: RuleNode, key: string): RuleNode | undefined {
  const exact = node.children.get(key);
  if (exact !== undefined) return exact;
  for (const [pattern, child] of node.children) {
    if (pattern === '*/*' ? key.includes('/') : pattern.endsWith('*') && pattern !== '[*]' && key.startsWith(pattern.slice(0, -1)))
      return child;
  }
  return undefined;
}

/** The rule for a path such as `spec.containers[*].image`, that of a field above it included; undefined: nothing was decided. */
export function fieldRule(path: string): FieldRule | undefined {
  let at: RuleNode | undefined = TREE_WITH_API;
  for (const part of partsOf({ path })) {
    at = childOf(at, part);
    if (at === undefined || at.leaf !== null) break;
  }
  return at?.leaf ?? undefined;
}

/** Absent in effect. An empty mapping is the default everywhere except where its mere presence chooses something. */
function isDefault(value: unknown, path: string): boolean {
  if (value === undefined || value === null || value === '') return true;
  if (Array.isArray(value)) return value.length === 0;
  if (isRecord(value)) return isEmpty(value) && !/^spec\.volumes\[\d+\]\./.test(path);
  return false;
}

function isEmpty(value: Record<string, unknown>): boolean {
  for (const key in value) if (Object.hasOwn(value, key)) return false;
  return true;
}

interface Step {
  value: unknown;
  path: string;
  node: RuleNode | undefined;
  schema: Shape;
}
interface Found {
  refused(path: string, why: string): void;
  leftAlone(path: string, why: string): void;
  /** A field that no Pod has; `names`: those that there are in its place. */
  unknown(path: string, key: string, names: readonly string[]): void;
}

function walk(step: Step, found: Found): void {
  const { value, path, node, schema } = step;
  if (isDefault(value, path)) return;
  const leaf = node?.leaf ?? null;
  if (node === undefined) found.leftAlone(path, 'this node has no rule for it');
  else if (leaf !== null) judge(leaf, step, found);
  else if (Array.isArray(value) && schema.t === 'list') {
    for (const [i, v] of value.entries())
      walk({ value: v, path: `${path}[${i}]`, node: node.children.get('[*]'), schema: schema.of }, found);
  } else if (isRecord(value) && schema.t === 'map') {
    for (const [key, v] of Object.entries(value))
      walk({ value: v, path: `${path}.${key}`, node: childOf(node, key), schema: schema.of }, found);
  } else if (isRecord(value) && schema.t === 'object') {
    for (const [key, v] of Object.entries(value)) {
      if (v === null || v === undefined) continue;
      const field = Object.hasOwn(schema.fields, key) ? schema.fields[key] : undefined;
      if (field !== undefined) walk({ value: v, path: `${path}.${key}`, node: childOf(node, key), schema: field }, found);
      else found.unknown(`${path}.${key}`, key, Object.keys(schema.fields));
    }
  }
}

function judge({ only, refused, leftAlone }: FieldRule, { value, path }: Step, found: Found): void {
  if (only?.includes(value) === true) return;
  const why = (text: string): string => (only === undefined ? text : `value ${quoted(value)}: ${text}`);
  if (refused !== undefined) found.refused(path, why(refused));
  else if (leftAlone !== undefined) found.leftAlone(path, why(leftAlone));
}

/** An extended resource of a container, which a device plugin may have. */
const PLUGINS = /^spec\.(?:initC|c)ontainers\[\d+\]\.resources\.(?:limits|requests)\.(.*)$/;
function mayBePlugins(path: string): boolean {
  const resource = PLUGINS.exec(path)?.[1];
  return resource !== undefined && isExtendedResource(resource);
}

/** Longer names are nobody's slip of the pen, and to compare them would cost more than they are long. */
const NAME_CHARS_MAX = 64;

export interface PodFields {
  /** What the pod sets that this node cannot honour and must not run without, as `path (why)`. Empty: the node can run it. */
  refused: string[];
  /** What it sets that has no effect here, as `path (why)`; of a field that no Pod has with the name that was meant, perhaps. */
  leftAlone: string[];
}

/** In the order of the manifest, the first ones and how many more. */
export function podFields(
  pod: Pod,
  o: {
    /** Objects of an API server can be asked for. Default false. */
    api?: boolean;
    /** The device manager knows which extended resources there are. Default false: there are none. */
    extendedResources?: boolean;
    /** A cgroup holds each pod as a whole. Default false. */
    podGroups?: boolean;
  } = {},
): PodFields {
  const refused = new ErrorList();
  const left = new ErrorList();
  const found: Found = {
    refused(path, why) {
      if (o.extendedResources !== true || why !== NO_SUCH_RESOURCE || !mayBePlugins(path)) refused.add(`${path} (${why})`);
    },
    leftAlone: (path, why) => left.add(`${path} (${why})`),
    unknown(path, key, names) {
      const meant = left.isFull || key.length > NAME_CHARS_MAX ? '' : didYouMean(key, names);
      left.add(`${cut(path, PATH_CHARS_MAX)} (unknown field)${meant}`);
    },
  };
  const { spec, metadata, ...rest } = pod;
  unknownOf(rest, { path: '', names: Object.keys(podShape.fields) }, found);
  unknownOf(metadata, { path: 'metadata.', names: Object.keys(metadataShape.fields) }, found);
  walk({ value: spec, path: 'spec', node: childOf(o.api === true ? TREE_WITH_API : MANIFEST_RULES, 'spec'), schema: specShape }, found);
  for (const path of limitsNotKept(pod, o)) refused.add(`${path} (${LIMITS_NOT_KEPT})`);
  return { refused: refused.list(), leftAlone: left.list() };
}
const PATH_CHARS_MAX = 300;

function unknownOf(value: object, at: { path: string; names: readonly string[] }, found: Found): void {
  for (const key of Object.keys(value)) if (!at.names.includes(key)) found.unknown(`${at.path}${key}`, key, at.names);
}
