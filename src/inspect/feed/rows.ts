/** The supervision tree and the pods as flat rows, and what changed between two looks. */
import type { ActorState, Registry } from '../../actors/supervision/types.ts';
import { summarizePods } from '../../machines/podSummary.ts';
import { addr, view } from '../../machines/protocol.ts';
import { treeHealth } from '../../machines/supervision/actorState.ts';
import type { ActorRow, PodRow } from './frames.ts';

/** Since-times of rows are computed from ages: less than this apart they are the same moment. */
const SINCE_JITTER_MS = 50;
const UNDER_A_POD = [`${addr.workers.path}/`, `${addr.probes.path}/`];

export function actorRows(root: ActorState, o: { nowMs: number; podName(uid: string): string | undefined }): ActorRow[] {
  const bad = new Set(treeHealth(root).flatMap((h) => (h.ok ? [] : [h.path])));
  const rows: ActorRow[] = [];
  const visit = (a: ActorState, parent: string) => {
    const last = a.path.slice(a.path.lastIndexOf('/') + 1);
    const pod = podOf(a.path);
    rows.push({
      path: a.path,
      parent,
      name: nameOf(last, pod, o.podName(pod)),
      type: a.type,
      lifecycle: a.lifecycle,
      state: a.state,
      reason: a.reason,
      message: a.message,
      sinceMs: Math.round(o.nowMs - a.ageMs),
      restarts: a.restarts,
      incarnation: a.incarnation,
      ok: !bad.has(a.path),
      mail:
        a.mailbox === undefined
          ? null
          : {
              depth: a.mailbox.depth,
              depthMax: a.mailbox.depthMax,
              oldestAtMs: a.mailbox.depth === 0 ? 0 : Math.round(o.nowMs - a.mailbox.oldestAgeMs),
              coalesced: a.mailbox.coalesced,
              dropped: a.mailbox.dropped,
              suspended: a.mailbox.suspended,
            },
      error: a.lastError ?? '',
      pod,
    });
    for (const child of a.children) visit(child, a.path);
  };
  visit(root, '');
  return rows;
}

/** The UID in an actor's path; ''. */
export function podOf(path: string): string {
  const under = UNDER_A_POD.find((prefix) => path.startsWith(prefix));
  return under === undefined ? '' : (path.slice(under.length).split('/', 1)[0] ?? '');
}

/** Children of the probe manager are named `UID/CONTAINER/TYPE` in one part or several. */
function nameOf(last: string, pod: string, name: string | undefined): string {
  if (pod === '' || name === undefined) return last;
  return last === pod ? name : last.replace(pod, name);
}

/** `only`: these alone. */
export function podRows(registry: Registry, nowMs: number, only?: ReadonlySet<string>): PodRow[] {
  const pods = registry.read(view.pods)?.value;
  if (pods === undefined) return [];
  const wanted = only === undefined ? pods : { ...pods, records: new Map([...pods.records].filter(([uid]) => only.has(uid))) };
  return summarizePods(wanted, registry.read(view.statuses)?.value, nowMs).map(({ ageMs, ...row }) => ({
    ...row,
    seenAtMs: Math.round(nowMs - ageMs),
  }));
}

/** Remembers what was sent, by key; times that only jitter are no change. */
export class Rows<R extends object> {
  readonly #key: (row: R) => string;
  #known = new Map<string, { row: R; text: string }>();

  constructor(key: (row: R) => string) {
    this.#key = key;
  }

  get all(): R[] {
    return [...this.#known.values()].map((k) => k.row);
  }

  update(rows: readonly R[]): { changed: R[]; gone: string[] } {
    const next = new Map<string, { row: R; text: string }>();
    const changed: R[] = [];
    for (const row of rows) {
      const key = this.#key(row);
      const known = this.#known.get(key);
      const settled = known === undefined ? row : steadyTimes(row, known.row);
      const text = JSON.stringify(settled);
      next.set(key, { row: settled, text });
      if (known?.text !== text) changed.push(settled);
    }
    const gone = [...this.#known.keys()].filter((key) => !next.has(key));
    this.#known = next;
    return { changed, gone };
  }
}

function steadyTimes<R extends object>(row: R, before: R): R {
  const out: R = { ...row };
  for (const key of ['sinceMs', 'seenAtMs'] as const) {
    const [now, then]: unknown[] = [Reflect.get(row, key), Reflect.get(before, key)];
    if (typeof now === 'number' && typeof then === 'number' && Math.abs(now - then) < SINCE_JITTER_MS) Reflect.set(out, key, then);
  }
  const [mail, old]: unknown[] = [Reflect.get(row, 'mail'), Reflect.get(before, 'mail')];
  if (isMail(mail) && isMail(old) && Math.abs(mail.oldestAtMs - old.oldestAtMs) < SINCE_JITTER_MS) {
    Reflect.set(out, 'mail', { ...mail, oldestAtMs: old.oldestAtMs });
  }
  return out;
}
function isMail(value: unknown): value is { oldestAtMs: number } {
  return typeof value === 'object' && value !== null && 'oldestAtMs' in value;
}
