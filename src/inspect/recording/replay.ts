/** Leads a picture of the supervision tree on by what the flight recorder saw. Pure. */

import { workersAddr } from '../../machines/pods/workers/messages.ts';
import { probesAddr } from '../../machines/services/probes/messages.ts';
import type { RecorderEntry } from '../../machines/shown/recorderEntry.ts';
import type { ActorRow } from '../feed/frames.ts';
import { podOf } from '../feed/podOf.ts';

/** Lifecycles of an actor that is not well. */
const UNWELL = new Set(['restarting', 'failed', 'parked', 'quarantined', 'stopped']);
/** A pod's worker leaves the tree when it has ended. */
const LEAVES = [`${workersAddr.path}/`, `${probesAddr.path}/`, 'node/api/podWriters/'];
const STARTED = /^incarnation (\d{1,15})$/;
const CAME = /^on (\S+)(?: \((.*)\))?$/s;

/** What a transition's entry says: where to, on what, and the reason of the state. */
export function transitionOf(e: RecorderEntry): { from: string; to: string; event: string; reason: string } {
  const cut = e.what.indexOf(' -> ');
  const said = CAME.exec(e.detail);
  return {
    from: cut < 0 ? '' : e.what.slice(0, cut),
    to: cut < 0 ? e.what : e.what.slice(cut + ' -> '.length),
    event: said?.[1] ?? '',
    reason: said?.[2] ?? '',
  };
}

/** Changes `rows` by one entry. */
export function replay(rows: Map<string, ActorRow>, e: RecorderEntry): void {
  const row = rows.get(e.path) ?? (e.kind === 'child.started' ? newRow(e) : null);
  if (row === null) return;
  const next = changed(row, e);
  if (next === null) rows.delete(e.path);
  else if (next !== row || !rows.has(e.path)) rows.set(e.path, { ...next, ok: !UNWELL.has(next.lifecycle) });
}

/** Null: it is no longer in the tree. */
function changed(row: ActorRow, e: RecorderEntry): ActorRow | null {
  const since = { sinceMs: e.atMs };
  switch (e.kind) {
    case 'transition': {
      const { to, reason } = transitionOf(e);
      return { ...row, ...since, lifecycle: 'running', state: to, reason, message: '' };
    }
    case 'child.started':
      return { ...row, ...since, lifecycle: 'running', state: '', incarnation: Number(STARTED.exec(e.what)?.[1] ?? row.incarnation) };
    case 'child.exited': {
      const error = e.what.startsWith('error: ') ? e.what.slice('error: '.length) : e.what;
      const orderly = e.what === 'normal' || e.what === 'shutdown';
      if (orderly && LEAVES.some((below) => e.path.startsWith(below))) return null;
      return { ...row, ...since, lifecycle: 'stopped', state: '', reason: '', message: '', error: orderly ? row.error : error };
    }
    case 'child.restarting':
      return { ...row, ...since, lifecycle: 'restarting', restarts: row.restarts + 1 };
    case 'supervisor.escalated':
      return { ...row, ...since, lifecycle: 'failed', error: e.what };
    case 'quarantined':
      return { ...row, ...since, lifecycle: 'quarantined', error: e.what };
    default:
      return row;
  }
}

function newRow(e: RecorderEntry): ActorRow {
  const cut = e.path.lastIndexOf('/');
  return {
    path: e.path,
    parent: cut < 0 ? '' : e.path.slice(0, cut),
    name: e.path.slice(cut + 1),
    type: 'actor',
    lifecycle: 'running',
    state: '',
    reason: '',
    message: '',
    sinceMs: e.atMs,
    restarts: 0,
    incarnation: 1,
    ok: true,
    mail: null,
    error: '',
    pod: podOf(e.path),
  };
}
