/** The query of /containerLogs (boot-and-node 8.6). Pure. */
import { type LogOptions, nanosOf } from './logLines.ts';

export type ParsedLogOptions = { ok: true; options: LogOptions } | { ok: false; status: 400 | 422; body: string };

const UNDECODABLE = { ok: false, status: 400, body: '{"message": "Unable to decode query."}' } as const;
const INVALID = { ok: false, status: 422, body: '{"message": "Invalid request."}' } as const;

/** An integer as it is written, null where the parameter is absent, `undefined` where it is no integer. */
function integer(query: URLSearchParams, name: string): number | null | undefined {
  const text = query.get(name);
  if (text === null) return null;
  if (!/^[+-]?\d{1,19}$/.test(text)) return undefined;
  return Number(text);
}

/** Present and not `false` or `0`. */
function flag(query: URLSearchParams, name: string): boolean {
  const text = query.get(name);
  return text !== null && !['false', '0'].includes(text.toLowerCase());
}

export function parseLogOptions(query: URLSearchParams, nowMs: number): ParsedLogOptions {
  const sinceSeconds = integer(query, 'sinceSeconds');
  const limitBytes = integer(query, 'limitBytes');
  const tailLines = legacyTail(query) ?? { lines: integer(query, 'tailLines') };
  if (sinceSeconds === undefined || limitBytes === undefined || tailLines.lines === undefined) return UNDECODABLE;
  const sinceTime = query.get('sinceTime');
  const sinceTimeNs = sinceTime === null || sinceTime === '' ? null : nanosOf(sinceTime);
  if (sinceTimeNs === undefined) return UNDECODABLE;

  if (tailLines.lines !== null && tailLines.lines < 0) return INVALID;
  if (limitBytes !== null && limitBytes < 1) return INVALID;
  if (sinceSeconds !== null && sinceSeconds < 1) return INVALID;
  if (sinceSeconds !== null && sinceTimeNs !== null) return INVALID;
  const stream = query.get('stream') ?? 'All';
  if (stream !== 'All' && stream !== 'Stdout' && stream !== 'Stderr') return INVALID;
  // Lines are counted before streams are told apart, so the two together would give fewer lines than asked for.
  if (stream !== 'All' && tailLines.lines !== null) return INVALID;
  return {
    ok: true,
    options: {
      follow: flag(query, 'follow'),
      previous: flag(query, 'previous'),
      timestamps: flag(query, 'timestamps'),
      sinceNs: sinceTimeNs ?? (sinceSeconds === null ? null : BigInt(Math.round(nowMs) - sinceSeconds * 1000) * 1_000_000n),
      tailLines: tailLines.lines,
      limitBytes,
      stream: stream === 'All' ? null : stream === 'Stdout' ? 'stdout' : 'stderr',
    },
  };
}

/** The older `tail` wins over tailLines; `all` lifts the limit. */
function legacyTail(query: URLSearchParams): { lines: number | null | undefined } | undefined {
  const tail = query.get('tail');
  if (tail === null || tail === '') return undefined;
  return { lines: tail === 'all' ? null : integer(query, 'tail') };
}
