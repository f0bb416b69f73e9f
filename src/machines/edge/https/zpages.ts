/** /statusz and /flagz (boot-and-node 8.12): text for a person who looks at a node, objects for programs. Pure. */

const WARNING =
  'Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.';
const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

const GROUP = 'config.k8s.io';
/** The second one is deprecated, and answers say so. */
const VERSIONS = ['v1beta1', 'v1alpha1'];
const TEXT_TYPES: readonly string[] = ['*/*', 'text/*', 'text/plain'];
const JSON_TYPES: readonly string[] = ['application/json', 'application/*'];

export type ZPageForm = { text: true } | { text: false; apiVersion: string; deprecated: boolean };

/** What a client that says this is shown; null: nothing that it takes. Nothing said: it takes text. */
export function zPageForm(accept: string | undefined, kind: 'Statusz' | 'Flagz'): ZPageForm | null {
  const clauses = (accept ?? '')
    .split(',')
    .map(clauseOf)
    .filter(({ type }) => type !== '');
  if (clauses.length === 0) return { text: true };
  for (const { type, parameters } of clauses.sort((a, b) => b.quality - a.quality)) {
    const version = parameters.get('v') ?? '';
    const asked = parameters.get('as') === kind && parameters.get('g') === GROUP && VERSIONS.includes(version);
    if (JSON_TYPES.includes(type) && asked) {
      return { text: false, apiVersion: `${GROUP}/${version}`, deprecated: version !== VERSIONS[0] };
    }
    if (TEXT_TYPES.includes(type) && !parameters.has('as')) return { text: true };
  }
  return null;
}

function clauseOf(clause: string): { type: string; parameters: ReadonlyMap<string, string>; quality: number } {
  const [type = '', ...rest] = clause.split(';').map((part) => part.trim());
  const parameters = new Map(
    rest.map((part) => {
      const at = part.indexOf('=');
      return at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)];
    }),
  );
  const quality = Number(parameters.get('q') ?? '1');
  return { type: type.toLowerCase(), parameters, quality: Number.isNaN(quality) ? 0 : quality };
}

/** `Sun Nov 22 02:03:04 UTC 2026`. */
function unixDate(ms: number): string {
  const at = new Date(ms);
  const two = (n: number): string => String(n).padStart(2, '0');
  const time = [at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()].map(two).join(':');
  const day = String(at.getUTCDate()).padStart(2);
  return `${DAYS[at.getUTCDay()]} ${MONTHS[at.getUTCMonth()]} ${day} ${time} UTC ${at.getUTCFullYear()}`;
}

export interface Status {
  /** Wall time, ms. */
  startedMs: number;
  /** How long it has been up, by the monotonic clock. */
  upMs: number;
  /** As `--version` prints it. */
  version: string;
  /** What runs it: `Node.js v24.1.0`. */
  runtime: string;
  paths: readonly string[];
}
export function statuszText({ startedMs, upMs, version, runtime, paths }: Status): string {
  const seconds = Math.max(0, Math.floor(upMs / 1000));
  const up = `${Math.floor(seconds / 3600)} hr ${String(Math.floor(seconds / 60) % 60).padStart(2, '0')} min ${String(seconds % 60).padStart(2, '0')} sec`;
  const lines = [
    `Started: ${unixDate(startedMs)}`,
    `Up: ${up}`,
    `Go version: none, ${runtime}`,
    `Binary version: ${version}`,
    `Paths: ${[...paths].sort().join(' ')}`,
  ];
  return `\nkubelet statusz\n${WARNING}\n\n${lines.join('\n')}\n`;
}

export function statuszObject({ startedMs, upMs, version, runtime, paths }: Status, apiVersion: string): object {
  return {
    ...{ kind: 'Statusz', apiVersion, metadata: { name: 'kubelet' } },
    startTime: `${new Date(startedMs).toISOString().slice(0, 19)}Z`,
    uptimeSeconds: Math.max(0, Math.floor(upMs / 1000)),
    goVersion: `none, ${runtime}`,
    binaryVersion: version,
    paths: [...paths].sort(),
  };
}

export function flagzObject(flags: Readonly<Record<string, string>>, apiVersion: string): object {
  const sorted = Object.entries(flags).sort(([a], [b]) => (a < b ? -1 : 1));
  return { kind: 'Flagz', apiVersion, metadata: { name: 'kubelet' }, flags: Object.fromEntries(sorted) };
}

/** By name, without dashes. */
export function flagzText(flags: Readonly<Record<string, string>>): string {
  const lines = Object.entries(flags)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}\n`);
  return `\nkubelet flagz\n${WARNING}\n${lines.join('')}`;
}
