/** GET /logs/?query=: what services of the node wrote, from the journal, or from their files where they are not in it. */

import {
  filesOfService,
  hasOptions,
  isUnit,
  type JournalOptions,
  journalArguments,
  type LogQuery,
  UNITS_ARGUMENTS,
} from '../../../../machines/edge/https/logs/logQuery.ts';
import { codeOf } from '../../../../machines/text/errors.ts';
import type { Ports } from '../../../../ports/ports.ts';
import type { HttpReply, HttpRequest } from '../../../../ports/sockets/net.ts';
import { METHOD_NOT_ALLOWED, text } from '../../answers/answers.ts';
import { contents, type HostLogsOptions, hostLogs } from './hostLogs.ts';

/** For all that a request makes run. */
const QUERY_TIMEOUT_MS = 30_000;
/** Size of the list of units. */
const UNITS_BYTES_MAX = 4 * 1024 * 1024;

export type LogQueryOptions = Omit<HostLogsOptions, 'ports'> & { ports: Pick<Ports, 'fs' | 'journal' | 'clock'> };

export async function queriedLogs(o: LogQueryOptions, req: HttpRequest, asked: Exclude<LogQuery, { kind: 'none' }>): Promise<HttpReply> {
  if (req.method !== 'GET' && req.method !== 'HEAD') return METHOD_NOT_ALLOWED;
  switch (asked.kind) {
    case 'refused':
      return text(`${asked.problems.join('\n')}\n`, asked.status);
    case 'file': {
      const path = [o.dir, ...asked.parts].join('/');
      // What lies outside is as if it were not there.
      const there = await o.ports.fs.lstat(path, { within: [o.dir, ...o.linked] }).catch(() => null);
      return there === null ? text(`query: there is no ${asked.parts.join('/')}\n`, 406) : hostLogs(o, req, asked.parts);
    }
    case 'services': {
      const headers = { 'content-type': 'text/plain;charset=UTF-8', 'cache-control': 'no-store' };
      return { status: 200, headers, body: written(o, asked, req.signal) };
    }
  }
}

async function* written(
  o: LogQueryOptions,
  asked: { services: readonly string[]; options: JournalOptions },
  signal: AbortSignal,
): AsyncGenerator<string | Uint8Array> {
  const { services, options } = asked;
  const until = o.ports.clock.monoMs() + QUERY_TIMEOUT_MS;
  const limit = () => ({ timeoutMs: Math.max(0, until - o.ports.clock.monoMs()), signal });
  const units = await unitsOf(o, limit());
  const inJournal = services.filter((service) => isUnit(units, service));
  const inFiles = services.filter((service) => !inJournal.includes(service));
  if (inJournal.length > 0 && o.ports.journal !== undefined) {
    try {
      yield* o.ports.journal.read(journalArguments(inJournal, options), limit());
    } catch {
      yield '\nerror: journal output not available\n';
    }
  }
  if (inFiles.length === 0) return;
  if (hasOptions(options)) {
    yield `\noptions present and query resolved to log files for [${inFiles.join(' ')}]\ntry without specifying options\n`;
    return;
  }
  for (const service of inFiles) yield* fileOf(o, service, signal);
}

/** None where there is no journal: then services are looked for among the files. */
async function unitsOf(o: LogQueryOptions, limit: { timeoutMs: number; signal: AbortSignal }): Promise<readonly string[]> {
  const decoder = new TextDecoder();
  let found = '';
  try {
    for await (const chunk of o.ports.journal?.read(UNITS_ARGUMENTS, limit) ?? []) {
      found += decoder.decode(chunk, { stream: true });
      if (found.length > UNITS_BYTES_MAX) break;
    }
  } catch {
    return [];
  }
  return found.split('\n');
}

async function* fileOf(o: LogQueryOptions, service: string, signal: AbortSignal): AsyncGenerator<string | Uint8Array> {
  const { fs } = o.ports;
  for (const name of filesOfService(service)) {
    try {
      const path = `${o.dir}/${name}`;
      const file = await fs.openRead(path, { within: [o.dir, ...o.linked] });
      yield* contents(file, (await file.stat()).size, signal);
      return;
    } catch (error) {
      const code = codeOf(error);
      // EINVAL: a folder of that name, which may hold the file.
      if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EINVAL') continue;
      yield `\nerror getting log for ${service}: ${code === '' ? 'it cannot be read' : code}\n`;
      return;
    }
  }
  yield `\nlog not found for ${service}\n`;
}
