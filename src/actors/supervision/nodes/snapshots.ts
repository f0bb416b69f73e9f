/** Reading xstate snapshots for people: dotted state values, and the reason that the innermost state gives. */

/** `syncing.pulling`; parallel regions in brackets: `up(net.ok,disk.ok)`. '' for what is no machine. */
export function dottedState(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return '';
  const parts = Object.entries(value).map(([name, inner]) => {
    const below = dottedState(inner);
    if (below === '') return name;
    return below.startsWith('(') ? `${name}${below}` : `${name}.${below}`;
  });
  return parts.length === 1 ? (parts[0] ?? '') : `(${parts.join(',')})`;
}

interface NodeLike {
  path?: readonly string[];
  meta?: { reason?: unknown; message?: unknown };
}

/** `meta.reason` and `meta.message` (a string, or a function of context) of the innermost active state that has them. */
export function reasonOf(snapshot: unknown): { reason: string; message: string } {
  const { _nodes: nodes, context } = (snapshot ?? {}) as { _nodes?: readonly NodeLike[]; context?: unknown };
  let best: NodeLike | null = null;
  for (const node of nodes ?? []) {
    if (node.meta?.reason === undefined) continue;
    if (best === null || (node.path?.length ?? 0) > (best.path?.length ?? 0)) best = node;
  }
  if (best === null) return { reason: '', message: '' };
  return { reason: text(best.meta?.reason, context), message: text(best.meta?.message, context) };
}

function text(value: unknown, context: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'function') return '';
  try {
    return String(value(context));
  } catch (thrown) {
    return `(meta threw: ${thrown instanceof Error ? thrown.message : String(thrown)})`;
  }
}
