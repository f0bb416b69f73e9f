/** The query of /logs/: what services of the node wrote, or a file below its log folder (boot-and-node 8.10). Pure. */

/** Counted from the end. */
const TAIL_LINES_MAX = 100_000;
const SERVICE_CHARACTERS_MAX = 256;
const SERVICES_MAX = 4;
/** Our own; it is handed to a program as one argument. */
const PATTERN_CHARACTERS_MAX = 1_024;

export interface JournalOptions {
  sinceMs: number | null;
  untilMs: number | null;
  tailLines: number | null;
  /** 0 = this start of the machine, -1 = the one before; null = all. */
  boot: number | null;
  /** A regular expression of PCRE2; '' = none. */
  pattern: string;
}
/** `none`: nothing of this is asked for. 400: what cannot be read; 406: what cannot be had. */
export type LogQuery =
  | { kind: 'none' }
  | { kind: 'refused'; status: 400 | 406; problems: readonly string[] }
  | { kind: 'file'; parts: readonly string[] }
  | { kind: 'services'; services: readonly string[]; options: JournalOptions };

const NAMES = ['query', 'sinceTime', 'untilTime', 'tailLines', 'boot', 'pattern'];

/** `below`: the path asked for has something below /logs/. */
export function readLogQuery(query: URLSearchParams, o: { below: boolean }): LogQuery {
  if (!NAMES.some((name) => query.has(name))) return { kind: 'none' };
  const problems: string[] = [];
  const bad = (name: string, what: string): null => {
    problems.push(`${name}: ${what}`);
    return null;
  };
  const asked = query.getAll('query').filter((q) => q.trim() !== '');
  if (query.has('query') && asked.length === 0) bad('query', 'cannot be empty');
  const options: JournalOptions = {
    sinceMs: timeOf(query, 'sinceTime', bad),
    untilMs: timeOf(query, 'untilTime', bad),
    tailLines: integerOf(query, 'tailLines', bad),
    boot: integerOf(query, 'boot', bad),
    pattern: query.get('pattern') ?? '',
  };
  if (problems.length > 0) return { kind: 'refused', status: 400, problems };
  return judged(asked, options, o);
}

function judged(asked: readonly string[], options: JournalOptions, o: { below: boolean }): LogQuery {
  const { sinceMs, untilMs, tailLines, boot, pattern } = options;
  const problems: string[] = [];
  const files = asked.filter(isFile);
  const services = asked.filter((q) => !isFile(q));
  const plain = sinceMs === null && untilMs === null && tailLines === null && boot === null && pattern === '';
  if (o.below) problems.push('query: a path below /logs/ cannot be asked for at the same time');
  if (asked.length === 0) problems.push('query: cannot be empty with options');
  for (const name of services) {
    if (name.length > SERVICE_CHARACTERS_MAX) problems.push(`query: a name has at most ${SERVICE_CHARACTERS_MAX} characters`);
    else if (!/^[\w@.:-]+$/.test(name) || /^\.+$/.test(name))
      problems.push(`query: ${JSON.stringify(name)} is not the name of a service: letters, digits and -_@.: only`);
  }
  if (services.length > SERVICES_MAX) problems.push(`query: must have at most ${SERVICES_MAX} items`);
  if (files.length > 0 && services.length > 0) problems.push('query: cannot specify a file and service');
  else if (files.length > 1) problems.push('query: cannot specify more than one file');
  else if (files.length === 1 && !plain) problems.push('query: cannot specify file with options');
  const parts = (files[0] ?? '').split(/[/\\]/).filter((part) => part !== '');
  if (parts.some((part) => part === '.' || part === '..' || part.includes('\0'))) problems.push('query: a path must not have . or ..');
  if (sinceMs !== null && untilMs !== null && sinceMs > untilMs) problems.push('untilTime: must be after `sinceTime`');
  if (boot !== null && boot > 0) problems.push('boot: must be less than 1');
  if (tailLines !== null && (tailLines < 0 || tailLines > TAIL_LINES_MAX))
    problems.push(`tailLines: must be between 0 and ${TAIL_LINES_MAX}, inclusive`);
  if (pattern.length > PATTERN_CHARACTERS_MAX) problems.push(`pattern: has at most ${PATTERN_CHARACTERS_MAX} characters`);
  if (pattern.includes('\0')) problems.push('pattern: must have no null character');
  if (problems.length > 0) return { kind: 'refused', status: 406, problems };
  return files.length === 1 ? { kind: 'file', parts } : { kind: 'services', services, options };
}

const isFile = (query: string): boolean => /[/\\]/.test(query);

type Bad = (name: string, what: string) => null;

function timeOf(query: URLSearchParams, name: string, bad: Bad): number | null {
  const text = query.get(name) ?? '';
  if (text === '') return null;
  const ms = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? bad(name, 'invalid time format: it must be as in 2026-01-02T03:04:05Z') : ms;
}
function integerOf(query: URLSearchParams, name: string, bad: Bad): number | null {
  const text = query.get(name) ?? '';
  if (text === '') return null;
  return /^[+-]?\d{1,9}$/.test(text) ? Number(text) : bad(name, `${JSON.stringify(text)} is no whole number`);
}

export function hasOptions(o: JournalOptions): boolean {
  return o.sinceMs !== null || o.untilMs !== null || o.tailLines !== null || o.boot !== null || o.pattern !== '';
}

/** Names every unit that has ever written to the journal, one a line. */
export const UNITS_ARGUMENTS: readonly string[] = ['--field', '_SYSTEMD_UNIT'];

/** Whether that listing has the service. */
export function isUnit(units: readonly string[], service: string): boolean {
  return units.some((unit) => unit === service || unit === `${service}.service`);
}

/** For journalctl. Each value is one argument behind its option's name, so that none of them can be another option. */
export function journalArguments(services: readonly string[], o: JournalOptions): string[] {
  // Times are read in the zone that they name, whatever the output is in.
  const time = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
  return [
    ...['--utc', '--no-pager', '--output=short-precise'],
    ...(o.sinceMs === null ? [] : [`--since=${time(o.sinceMs)}`]),
    ...(o.untilMs === null ? [] : [`--until=${time(o.untilMs)}`]),
    ...(o.tailLines === null ? [] : ['--pager-end', `--lines=${o.tailLines}`]),
    ...services.map((service) => `--unit=${service}`),
    ...(o.pattern === '' ? [] : [`--grep=${o.pattern}`]),
    ...(o.boot === null ? [] : [`--boot=${o.boot}`]),
  ];
}

/** Where a service that is not in the journal may write, below the log folder, in this order. */
export function filesOfService(service: string): readonly string[] {
  return [service, `${service}.log`, `${service}/${service}.log`];
}
