/**
 * What a person sees of a machine's context. Each machine chooses it itself, in the `meta` of its root: bounded, plain data,
 * never a secret, an environment, or what a container printed.
 */
export type Shown = null | boolean | number | string | readonly Shown[] | { readonly [key: string]: Shown };
export type Projection<C> = (context: C) => { readonly [field: string]: Shown };

/** Entries of a list. */
const LISTED_MAX = 12;

/** For the `meta` of a machine's root. */
export function projecting<C>(project: Projection<C>): { project: Projection<C> } {
  return { project };
}

/** What the machine shows of its contexts; null: it does not say. */
export function projectionOf(machine: unknown): Projection<unknown> | null {
  const meta = (machine as { root?: { meta?: { project?: unknown } } } | null | undefined)?.root?.meta;
  return typeof meta?.project === 'function' ? (meta.project as Projection<unknown>) : null;
}

/** The first ones, and how many more there are. */
export function some<T>(values: Iterable<T>, show: (value: T) => Shown): Shown {
  const shown: Shown[] = [];
  let more = 0;
  for (const value of values) {
    if (shown.length < LISTED_MAX) shown.push(show(value));
    else more += 1;
  }
  return more === 0 ? shown : [...shown, `… ${more} more`];
}

export const names = (values: Iterable<string>): Shown => some(values, (name) => name);

export function podName({ metadata }: { metadata: { namespace: string; name: string } }): string {
  return `${metadata.namespace}/${metadata.name}`;
}

/** What a person sees of a failed request to the API server. */
export function failureOf(failure: { code: number; reason: string; message: string } | null): Shown {
  return failure === null ? null : { code: failure.code, reason: failure.reason, message: failure.message };
}
