/** GET /debug/pprof/: profiles of the daemon itself; PUT /debug/flags/v: its log verbosity (boot-and-node 8.2). */
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import type { Logger, Profiler } from '../../../ports/ports.ts';
import type { HttpReply, HttpRequest } from '../../../ports/sockets/net.ts';
import { METHOD_NOT_ALLOWED, NOT_FOUND, text } from '../answers/answers.ts';

/** Go's own default for a profile. */
const CPU_SECONDS = 30;
/** Go shows a heap at once. V8 has to watch it for a while; scrapers give up after 10 s. */
const HEAP_SECONDS = 5;
const SECONDS_MAX = 300;
/** The largest verbosity that klog takes. */
const VERBOSITY_MAX = 2 ** 31 - 1;

export interface DebugOptions {
  profiler: Profiler | undefined;
  log: Logger;
  /** enableProfilingHandler. */
  profiling: boolean;
  /** enableDebugFlagsHandler. */
  flags: boolean;
  /** The actors of the node, in lines. */
  actors(): readonly string[];
}

const PROFILES = {
  profile: { take: 'cpu', suffix: 'cpuprofile', seconds: CPU_SECONDS },
  heap: { take: 'heap', suffix: 'heapprofile', seconds: HEAP_SECONDS },
  // V8 samples what is allocated, for both.
  allocs: { take: 'heap', suffix: 'heapprofile', seconds: HEAP_SECONDS },
} as const;
const INDEX = `/debug/pprof/

The daemon runs on Node.js; its profiles are V8's own, to be opened with the developer tools of a browser, or with
an editor or viewer that knows .cpuprofile and .heapprofile.

profile?seconds=${CPU_SECONDS}   what the main thread spends its time on
heap?seconds=${HEAP_SECONDS}       what is allocated meanwhile and still held at the end
allocs?seconds=${HEAP_SECONDS}     the same
goroutine               the actors of the node with their states, as text

block, mutex, threadcreate, symbol and trace are Go's own. The command line is in /flagz.
`;

/** `parts`: the path below /debug/. */
export async function debugPages(o: DebugOptions, req: HttpRequest, parts: readonly string[]): Promise<HttpReply> {
  const [first, ...rest] = parts;
  if (first === 'pprof') return o.profiling ? pprof(o, req, rest) : text('profiling endpoint is disabled.\n', 405);
  if (first === 'flags' && rest.join('/') === 'v') return o.flags ? verbosity(o, req) : text('flags endpoint is disabled.\n', 405);
  return NOT_FOUND;
}

async function pprof(o: DebugOptions, req: HttpRequest, rest: readonly string[]): Promise<HttpReply> {
  if (req.method !== 'GET' && req.method !== 'HEAD') return METHOD_NOT_ALLOWED;
  const [name, ...below] = rest;
  if (name === undefined) return text(INDEX);
  if (name === 'goroutine' && below.length === 0) return text(`${o.actors().join('\n')}\n`);
  if (!Object.hasOwn(PROFILES, name) || below.length > 0) {
    const there = Object.keys(PROFILES).join(', ');
    return text(`Unknown profile: a daemon on Node.js has ${there} and goroutine, see /debug/pprof/\n`, 404);
  }
  if (o.profiler === undefined) return text('there is no process here that could be profiled\n', 501);
  const { take, suffix, seconds: usual } = PROFILES[name as keyof typeof PROFILES];
  const seconds = secondsOf(req.query.get('seconds'), usual);
  if (seconds === undefined) return text(`seconds must be a number from 1 to ${SECONDS_MAX}\n`, 400);
  try {
    const body = await o.profiler[take](seconds * 1000, req.signal);
    return {
      status: 200,
      headers: {
        'content-type': 'application/json',
        'content-disposition': `attachment; filename="actorlet.${suffix}"`,
        'x-content-type-options': 'nosniff',
      },
      body,
    };
  } catch (error) {
    const busy = codeOf(error) === 'EBUSY';
    const reply = text(`no profile: ${messageOf(error)}\n`, busy ? 429 : 500);
    return busy ? { ...reply, headers: { ...reply.headers, 'retry-after': String(CPU_SECONDS) } } : reply;
  }
}

function secondsOf(given: string | null, usual: number): number | undefined {
  if (given === null || given === '') return usual;
  const seconds = /^\d{1,4}$/.test(given) ? Number(given) : 0;
  return seconds >= 1 && seconds <= SECONDS_MAX ? seconds : undefined;
}

function verbosity(o: DebugOptions, req: HttpRequest): HttpReply {
  if (req.method !== 'PUT') return text('unsupported http method\n', 406);
  const given = new TextDecoder().decode(req.body).trim();
  const level = /^\d{1,10}$/.test(given) ? Number(given) : Number.NaN;
  if (!(level <= VERBOSITY_MAX)) return text('the verbosity must be a whole number, such as 4\n', 400);
  if (o.log.setVerbosity === undefined) return text('the verbosity of this log is fixed\n', 501);
  o.log.setVerbosity(level);
  o.log.info({ verbosity: level }, 'the verbosity of the log was set through the API');
  return text(`successfully set klog.logging.verbosity to ${level}\n`);
}
