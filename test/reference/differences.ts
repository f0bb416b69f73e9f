/** What differs between two tellings of the same thing, once names and times that are new each time are left out. Pure. */

/** A line for each difference: where, what the reference says, what actorlet says. */
export type Difference = readonly [where: string, reference: string, actorlet: string];

const NEW_EACH_TIME: readonly (readonly [RegExp, string])[] = [
  [/[0-9a-f]{64}/g, 'ID'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\b/g, 'UID'],
  [/\b[0-9a-f]{32}\b/g, 'UID'],
  [/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME'],
  [/\b10\.\d+\.\d+\.\d+\b/g, 'ADDRESS'],
  [/kube-api-access-\w+/g, 'kube-api-access'],
  [/\b127\.0\.0\.1:\d+/g, 'HOST'],
  [/\balab[0-9a-f]{8}\b/g, 'BRIDGE'],
  [/actorlet-(?:e2e|lab|cluster)-\w+/g, 'FOLDER'],
  [/\b\d[\d.]*m?s\b/g, 'DURATION'],
];

/** As text, without what is new each time. */
export function plainly(value: unknown): string {
  return NEW_EACH_TIME.reduce((text, [what, name]) => text.replaceAll(what, name), String(value));
}

/** Values by path; of a list whose members have a `type` or a `name`, by that instead of the place. */
export function flat(value: unknown, at = ''): Map<string, string> {
  if (typeof value !== 'object' || value === null) return new Map([[at, plainly(value)]]);
  const entries = Array.isArray(value)
    ? value.map((one: unknown, i) => [`[${nameOf(one) ?? i}]`, one] as const)
    : Object.entries(value).map(([key, one]: [string, unknown]) => [`.${key}`, one] as const);
  if (entries.length === 0) return new Map([[at, Array.isArray(value) ? '[]' : '{}']]);
  return new Map(entries.flatMap(([key, one]) => [...flat(one, `${at}${key}`)]));
}
function nameOf(value: unknown): string | undefined {
  const { type, name } = (value ?? {}) as { type?: unknown; name?: unknown };
  return typeof type === 'string' ? type : typeof name === 'string' ? plainly(name) : undefined;
}

export function differences(where: string, reference: unknown, actorlet: unknown): Difference[] {
  const [theirs, ours] = [flat(reference), flat(actorlet)];
  const paths = [...new Set([...theirs.keys(), ...ours.keys()])].sort();
  return paths.flatMap((path): Difference[] => {
    const [their = '-', our = '-'] = [theirs.get(path), ours.get(path)];
    return their === our ? [] : [[`${where}${path}`, their, our]];
  });
}

/** Of two sets of lines: those that only one of them has. */
export function onlyInOne(where: string, reference: readonly string[], actorlet: readonly string[]): Difference[] {
  const [theirs, ours] = [reference, actorlet].map((all) => new Set(all.map(plainly))) as [Set<string>, Set<string>];
  return [
    ...[...theirs].filter((line) => !ours.has(line)).map((line): Difference => [where, line, '-']),
    ...[...ours].filter((line) => !theirs.has(line)).map((line): Difference => [where, '-', line]),
  ];
}

/** `name type label,label` of each family of Prometheus text. */
export function families(text: string): string[] {
  const labels = new Map<string, Set<string>>();
  const types = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, named = '', type = ''] = /^# TYPE (\S+) (\S+)/.exec(line) ?? [];
    if (named !== '') types.set(named, type);
    const [, name = '', inside = ''] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? /.exec(line) ?? [];
    const family = [name, name.replace(/_(?:bucket|sum|count)$/, '')].find((n) => types.has(n));
    if (family === undefined) continue;
    const seen = labels.get(family) ?? new Set();
    for (const [, label = ''] of inside.matchAll(/(\w+)="/g)) seen.add(label);
    labels.set(family, seen);
  }
  return [...types].map(([name, type]) => `${name} ${type} ${[...(labels.get(name) ?? [])].sort().join(',')}`.trim()).sort();
}
