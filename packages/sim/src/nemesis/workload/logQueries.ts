/** What is asked of a node about the logs of its machine: what may be asked, what is not there, and what no program may be given. */
import { HOST_LOG, LOG_LINK } from '@actorlet/world/src/beside/beside.ts';
import { JOURNAL_UNITS } from '@actorlet/world/src/beside/journal.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';

export const LOGS_PATH = '/logs/';
const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

/** What lies outside of the log folder, whatever its name says: forbidden to everybody. */
export const OUTSIDE = `/${nameOf(LOG_LINK)}`;
/** Services by their units, in full and in short, in no journal, and by a file of theirs. */
const SERVICES = [...JOURNAL_UNITS, 'kubelet', 'containerd', 'nobody', 'audit', '-x'];
/** Refused before any program hears of them. */
export const REFUSED_QUERIES = ['--vacuum-size=1', '--file=/etc/shadow', 'a b', 'kubelet;reboot', '..', '$(reboot)', ''] as const;
const FILES = [`./${nameOf(HOST_LOG)}`, `/${nameOf(HOST_LOG)}`, OUTSIDE, '../etc/ssh/host.key', '/nothing.log'];

export function drawLogQuery(rng: SimRng): Record<string, string> {
  if (rng.chance(0.25)) return { query: rng.pick(REFUSED_QUERIES) ?? '' };
  if (rng.chance(0.25)) return { query: rng.pick(FILES) ?? '' };
  return {
    query: rng.pick(SERVICES) ?? 'kubelet',
    ...(rng.chance(0.3) ? { tailLines: String(rng.int(20)) } : {}),
    ...(rng.chance(0.2) ? { sinceTime: '2026-01-01T00:00:00Z' } : {}),
    ...(rng.chance(0.2) ? { pattern: rng.pick(['line 1', '--file=/etc/shadow', '-x']) ?? 'line' } : {}),
    ...(rng.chance(0.2) ? { boot: rng.pick(['0', '-1']) ?? '0' } : {}),
  };
}
