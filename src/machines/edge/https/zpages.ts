/** /statusz and /flagz (boot-and-node 8.12): text for a person who looks at a node. Pure. */

const WARNING =
  'Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.';
const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Whether a client that says this takes plain text. Nothing said: it takes all. */
export function takesText(accept: string | undefined): boolean {
  const wanted = (accept ?? '').split(',').map((part) => part.split(';')[0]?.trim().toLowerCase() ?? '');
  return wanted.every((type) => type === '') || wanted.some((type) => ['*/*', 'text/*', 'text/plain'].includes(type));
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
  return `kubelet statusz\n${WARNING}\n\n${lines.join('\n')}\n`;
}

/** By name, without dashes. */
export function flagzText(flags: Readonly<Record<string, string>>): string {
  const lines = Object.entries(flags)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}\n`);
  return `kubelet flagz\n${WARNING}\n\n${lines.join('')}`;
}
