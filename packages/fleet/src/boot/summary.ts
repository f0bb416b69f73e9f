/** The table at the end of a run: what was expected, how long nodes and pods took, what the API server was asked most. */

import { renderTable } from '@actorlet/kubelet/machines/text/table.ts';
import { programOf } from '../proxy/request.ts';
import type { ApiHit } from '../proxy/trouble.ts';
import type { ExpectReport } from '../run/expectation.ts';
import type { FleetReport } from '../run.ts';

const CALLS_SHOWN = 8;
/** Of the proxy; `--json` has more. */
const HITS_SHOWN = 40;
const LEFT_SHOWN = 20;
const TO: Readonly<Record<keyof FleetReport['seconds'], string>> = {
  nodeReady: 'start of a daemon to Ready',
  podReady: 'creation of a pod to Ready',
  podStart: 'pod seen by its node to Ready',
};

export function summaryOf({ expect, seconds, calls, faults, left = [] }: FleetReport): string {
  const kinds = Object.entries(calls);
  const lines = [
    ...section(['EXPECTED', 'IS', 'RESULT'], expect.map(expected)),
    ...section(
      ['SECONDS FROM', 'COUNT', 'P50', 'P90', 'P99', 'MAX'],
      Object.entries(seconds).map(([of, { count, ...p }]) => [
        TO[of as keyof typeof TO],
        ...[count, p.p50, p.p90, p.p99, p.max].map(String),
      ]),
    ),
    ...section(
      ['REQUESTS OF NODES', 'COUNT'],
      kinds.slice(0, CALLS_SHOWN).map(([kind, count]) => [kind, String(count)]),
    ),
    ...section(
      ['REQUESTS OF CLIENTS', 'COUNT'],
      Object.entries(faults?.requests ?? {})
        .slice(0, CALLS_SHOWN)
        .map(([kind, count]) => [kind, String(count)]),
    ),
    ...section(
      ['LEFT BEHIND'],
      left.slice(0, LEFT_SHOWN).map((one) => [one]),
    ),
    ...section(
      ['FAULT', 'WHAT', 'HITS'],
      (faults?.injected ?? []).map(({ name, fault, hits }) => [name, fault, String(hits)]),
    ),
    ...section(['AT', 'FAULT', 'CLIENT', 'REQUEST', 'WHAT IT DID'], (faults?.hits ?? []).slice(0, HITS_SHOWN).map(hit)),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

function section(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return rows.length === 0 ? [] : renderTable(head, rows);
}

function expected({ expected: { name, withinMs, holds }, metMs, decided, is }: ExpectReport): string[] {
  const within = withinMs === null ? '' : ` within ${withinMs / 1_000} s`;
  const unmet = decided ? 'NOT MET' : 'not decided';
  const met = holds === 'throughout' ? 'held until' : 'met after';
  return [`${name}${within}`, is === null ? '-' : String(is), metMs === null ? unmet : `${met} ${(metMs / 1_000).toFixed(1)} s`];
}

function hit({ atMs, fault, userAgent, request, did }: ApiHit): string[] {
  return [`${(atMs / 1_000).toFixed(1)} s`, fault === '' ? '-' : fault, programOf(userAgent), request, did];
}
