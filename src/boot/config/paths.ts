/** Reading and replacing values of a nested configuration by dotted path. Pure; objects are copied, never changed. */

export type Tree = { [key: string]: unknown };

export function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function getPath(from: object, path: string): unknown {
  let value: unknown = from;
  for (const key of path.split('.')) {
    if (!isTree(value)) return undefined;
    value = value[key];
  }
  return value;
}

/** A copy of `from` in which `path` is `value`; objects on the way are created where absent. */
export function withPath(from: Tree, path: string, value: unknown): Tree {
  const dot = path.indexOf('.');
  if (dot < 0) return { ...from, [path]: value };
  const key = path.slice(0, dot);
  const inner = from[key];
  return { ...from, [key]: withPath(isTree(inner) ? inner : {}, path.slice(dot + 1), value) };
}
