/**
 * What a pod sets that this node cannot honour, by the table of fields (`fieldTable.ts`): it refuses the pod at
 * admission, with the path in the message.
 */
import { isExtendedResource } from '../../allocation/devices/rules.ts';
import type { Pod } from '../../k8s.ts';
import type { Shape } from '../../shape/shape.ts';
import { ErrorList, quoted } from '../../text/errorList.ts';
import { limitsNotKept } from '../podLevel.ts';
import { FIELD_TABLE, type FieldRule, NO_SUCH_RESOURCE } from './fieldTable.ts';
import { podShape } from './podTable.ts';
import { isRecord } from './schema.ts';

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
    at.leaf = rule;
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
    if (pattern.endsWith('*') && pattern !== '[*]' && key.startsWith(pattern.slice(0, -1))) return child;
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
  schema: Shape | undefined;
}

function walk(step: Step, found: (path: string) => void): void {
  const { value, path, node, schema } = step;
  if (schema === undefined) {
    found(`${path} (unknown field)`);
    return;
  }
  if (isDefault(value, path)) return;
  if (node === undefined) {
    found(path);
    return;
  }
  if (node.leaf !== null) {
    if (node.leaf.refused !== undefined) found(`${path} (${node.leaf.refused})`);
    else if (node.leaf.only !== undefined && !node.leaf.only.includes(value)) found(`${path} (value ${quoted(value)})`);
    return;
  }
  if (Array.isArray(value)) {
    const element = schema.t === 'list' ? schema.of : undefined;
    value.forEach((v: unknown, i) => {
      walk({ value: v, path: `${path}[${i}]`, node: node.children.get('[*]'), schema: element }, found);
    });
  } else if (isRecord(value)) {
    for (const [key, v] of Object.entries(value)) {
      const field =
        schema.t === 'map' ? schema.of : schema.t === 'object' && Object.hasOwn(schema.fields, key) ? schema.fields[key] : undefined;
      walk({ value: v, path: `${path}.${key}`, node: childOf(node, key), schema: field }, found);
    }
  } else found(path);
}

/** An extended resource of a container, as it was found not to be one of this node's own. */
function mayBePlugins(found: string): boolean {
  const why = ` (${NO_SUCH_RESOURCE})`;
  const match = /^spec\.(?:initC|c)ontainers\[\d+\]\.resources\.(?:limits|requests)\./.exec(found);
  return match !== null && found.endsWith(why) && isExtendedResource(found.slice(match[0].length, -why.length));
}

/** Top-level keys of a Pod. */
const TOP = ['apiVersion', 'kind', 'metadata', 'spec', 'status'];

/**
 * Paths of what the pod sets that this node cannot honour yet, in the order of the manifest, the first ones and how many more;
 * a field that no Pod has is marked `(unknown field)`. Empty: the node can run the pod in full.
 */
export function unsupportedFields(
  pod: Pod,
  o: {
    /** Objects of an API server can be asked for. Default false. */
    api?: boolean;
    /** Somebody else knows which extended resources there are. Default false: there are none. */
    devices?: boolean;
    /** A cgroup holds each pod as a whole. Default false. */
    podGroups?: boolean;
  } = {},
): string[] {
  const errors = new ErrorList();
  const found = (path: string): void => {
    if (o.devices !== true || !mayBePlugins(path)) errors.add(path);
  };
  for (const key of Object.keys(pod)) if (!TOP.includes(key)) found(`${key} (unknown field)`);
  walk(
    { value: pod.spec, path: 'spec', node: childOf(o.api === true ? TREE_WITH_API : MANIFEST_RULES, 'spec'), schema: podShape.fields.spec },
    found,
  );
  for (const path of limitsNotKept(pod, o)) found(`${path} (${LIMITS_NOT_KEPT})`);
  return errors.list();
}
