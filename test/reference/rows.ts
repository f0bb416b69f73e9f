/**
 * What was told, as rows: where it stands, and its value. A row of a metrics page is a series; of an object, a path; of text, a
 * line. Names and times that are new each time are left out, so that two tellings have the same rows. Pure.
 */
import { parseExposition } from '../e2e/lab/metricsApi.ts';
import { flat, plainly } from './differences.ts';
import type { Observed, Page } from './observe.ts';

/** Rows that cannot be told apart, those of two instances of a container, have their values side by side. */
export type Rows = ReadonlyMap<string, readonly string[]>;

type Row = readonly [where: string, value: string];

export function rowsOf(o: Observed): Rows {
  const rows: Row[] = [
    ...paths('node', o.node),
    ...paths('lease', o.lease),
    ...o.pods.flatMap((pod) => paths(`pod ${pod.metadata.name} `, pod)),
    ...o.events.flatMap(eventRow),
    ...Object.entries(o.resources).flatMap(([rpc, answer]) => paths(`resources ${rpc} `, answer)),
    ...Object.entries(o.pages).flatMap(([path, page]) => pageRows(path, page)),
    ...Object.entries(o.metrics).flatMap(([path, page]) => metricRows(path, page)),
  ];
  return together(rows);
}

/** Metrics are told by their path. */
export function rowsOfPages(pages: Readonly<Record<string, Page>>): Rows {
  return together(Object.entries(pages).flatMap(([path, page]) => (path.startsWith('/metrics') ? metricRows : pageRows)(path, page)));
}

function together(rows: readonly Row[]): Rows {
  const found = new Map<string, string[]>();
  for (const [where, value] of rows) found.set(where, [...(found.get(where) ?? []), value].sort());
  return found;
}

function paths(where: string, value: unknown): Row[] {
  return [...flat(value)].map(([path, one]) => [`${where}${path}`, one] as const);
}

function eventRow({ source, type, reason, message, involvedObject: { kind, name, fieldPath = '' } }: Observed['events'][number]): Row[] {
  return source?.component === 'kubelet' ? [[plainly(['event', kind, name, type, reason, `${fieldPath}: ${message}`].join(' ')), '']] : [];
}

function pageRows(path: string, { status, type, text }: Page): Row[] {
  const head: Row[] = [
    [`page ${path} status`, String(status)],
    [`page ${path} type`, type],
  ];
  if (type.includes('json')) return [...head, ...paths(`page ${path} `, withoutOrder(JSON.parse(text)))];
  return [...head, [`page ${path} text`, plainly(text)]];
}

/** Pods by name, as lists of pods have no order. */
function withoutOrder(value: unknown): unknown {
  const { items, pods } = (value ?? {}) as { items?: unknown[]; pods?: unknown[] };
  return { ...(value as object), ...(items && { items: byPod(items) }), ...(pods && { pods: byPod(pods) }) };
}
function byPod(list: readonly unknown[]): object {
  return Object.fromEntries(list.map((one) => [nameOf(one), one]));
}
function nameOf(one: unknown): string {
  const { metadata, podRef } = one as Record<'metadata' | 'podRef', { name: string; namespace: string } | undefined>;
  const { name = '', namespace = '' } = metadata ?? podRef ?? {};
  return `${namespace}/${name}`;
}

function metricRows(path: string, { status, type, text }: Page): Row[] {
  const families = [...text.matchAll(/^# TYPE (\S+) (\S+)/gm)].map(([, name, kind]): Row => [`${path} family ${name}`, String(kind)]);
  // Buckets say no more than their count does, once time is left out.
  const series = parseExposition(text.replaceAll(/^\S+_bucket\{.*\n/gm, '')).map(({ name, labels, value }): Row => {
    const inside = Object.keys(labels)
      .sort()
      .map((label) => `${label}="${plainly(labels[label])}"`);
    return [`${path} ${name}{${inside.join(',')}}`, String(value)];
  });
  return [[`${path} status`, String(status)], [`${path} type`, type], ...families, ...series];
}
