/** Defaulting and merging of configurations by the schema (boot-and-node 2.3, 3). Pure. */

import type { KubeletConfiguration } from '../../machines/config/config.ts';
import { defaultKubeletConfiguration } from '../../machines/config/defaults.ts';
import { KUBELET_CONFIGURATION } from '../../machines/config/schema.ts';
import { own, put } from '../../machines/data/own.ts';
import type { Fields, Shape } from '../../machines/shape/shape.ts';
import { getPath, isTree, type Tree } from './paths.ts';

/** Decoded values with every default filled in: zero means "unset" except in pointer fields. `over`: other defaults. */
export function applyDefaults(values: Tree, over: Partial<KubeletConfiguration> = {}): KubeletConfiguration {
  const base = { ...defaultKubeletConfiguration(), ...over };
  // This default depends on what the file says elsewhere.
  const update = getPath(values, 'nodeStatusUpdateFrequency');
  if (typeof update === 'number' && update !== 0) base.nodeStatusReportFrequency = update;
  return { ...base, ...overlayFields(new Map(Object.entries(base)), values, KUBELET_CONFIGURATION) };
}

/** A JSON merge patch (RFC 7386), as the reference merges drop-ins: objects by key, null takes away, all else replaces. */
export function mergePatch(base: unknown, patch: unknown): unknown {
  if (!isTree(patch)) return patch;
  const out: Tree = isTree(base) ? { ...base } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete out[key];
    else put(out, key, mergePatch(own(out, key), value));
  }
  return out;
}

function overlayFields(base: ReadonlyMap<string, unknown>, values: Tree, fields: Fields): Tree {
  const out: Tree = {};
  for (const [name, field] of Object.entries(fields)) {
    const value = values[name];
    if (value === undefined || isUnset(value, field)) {
      if (base.has(name)) out[name] = base.get(name);
    } else out[name] = overlayValue(base.get(name), value, field);
  }
  return out;
}

function overlayValue(base: unknown, value: unknown, type: Shape): unknown {
  if (type.t !== 'object' || !isTree(value)) return value;
  // An object that was null (tracing) starts with its fields unset.
  const under = isTree(base) ? base : Object.fromEntries(Object.keys(type.fields).map((k) => [k, null]));
  return overlayFields(new Map(Object.entries(under)), value, type.fields);
}

function isUnset(value: unknown, field: Shape): boolean {
  return !field.pointer && (value === 0 || value === '' || value === false);
}
