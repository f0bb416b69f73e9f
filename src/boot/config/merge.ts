/** Defaulting and merging of decoded values by the schema (boot-and-node 2.3, 3). Pure. */

import { defaultKubeletConfiguration } from '../../machines/config/defaults.ts';
import { KUBELET_CONFIGURATION } from '../../machines/config/schema.ts';
import type { KubeletConfiguration } from '../../machines/config.ts';
import type { Fields, Shape } from '../../machines/shape/shape.ts';
import { getPath, isTree, type Tree } from './paths.ts';

/** A file's values with every default filled in: zero means "unset" except in pointer fields. */
export function applyDefaults(values: Tree): KubeletConfiguration {
  const base = defaultKubeletConfiguration();
  // This default depends on what the file says elsewhere.
  const update = getPath(values, 'nodeStatusUpdateFrequency');
  if (typeof update === 'number' && update !== 0) base.nodeStatusReportFrequency = update;
  return { ...base, ...overlayFields(new Map(Object.entries(base)), values, { fields: KUBELET_CONFIGURATION, zeroIsUnset: true }) };
}

/** Values over a whole configuration, no defaulting: scalars and lists replace, objects and maps merge by key. */
export function mergeDropIn(base: KubeletConfiguration, values: Tree): KubeletConfiguration {
  return { ...base, ...overlayFields(new Map(Object.entries(base)), values, { fields: KUBELET_CONFIGURATION, zeroIsUnset: false }) };
}

interface Rules {
  fields: Fields;
  zeroIsUnset: boolean;
}

function overlayFields(base: ReadonlyMap<string, unknown>, values: Tree, rules: Rules): Tree {
  const out: Tree = {};
  for (const [name, field] of Object.entries(rules.fields)) {
    const value = values[name];
    if (value === undefined || (rules.zeroIsUnset && isUnset(value, field))) {
      if (base.has(name)) out[name] = base.get(name);
    } else out[name] = overlayValue(base.get(name), value, { field, zeroIsUnset: rules.zeroIsUnset });
  }
  return out;
}

function overlayValue(base: unknown, value: unknown, rules: { field: Shape; zeroIsUnset: boolean }): unknown {
  const type = rules.field;
  if (type.t === 'object' && isTree(value)) {
    // An object that was null (tracing) starts with its fields unset.
    const under = isTree(base) ? base : Object.fromEntries(Object.keys(type.fields).map((k) => [k, null]));
    return overlayFields(new Map(Object.entries(under)), value, { fields: type.fields, zeroIsUnset: rules.zeroIsUnset });
  }
  const mergesByKey = type.t === 'map' && !rules.zeroIsUnset;
  return mergesByKey && isTree(base) && isTree(value) ? { ...base, ...value } : value;
}

function isUnset(value: unknown, field: Shape): boolean {
  return !field.pointer && (value === 0 || value === '' || value === false);
}
