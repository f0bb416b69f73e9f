/** From a gRPC status to a {@link CriError}: above all, whether the call may have had its effect. */
import { type ServiceError, status } from '@grpc/grpc-js';
import type { CriMethod } from '../../../machines/wire/criCalls.ts';
import { CRI_METHODS } from '../../../machines/wire/criMethods.ts';
import { CriError } from '../../../ports/ports.ts';

/** Statuses the client itself made before any byte of the request left: nothing can have happened. */
const NEVER_SENT =
  /^(No connection established|Name resolution failed|Stream refused by server|Request message serialization failure|Attempted to send message with a size larger|Channel closed|The channel has been closed)/;
/** Statuses the client made after a call had begun: the connection or the stream broke. */
const BROKEN = /^(Connection dropped|Received RST_STREAM|Call cancelled|No status information|Received HTTP status)|ECONNRESET|EPIPE/;

/** A status that came over the wire: answered without headers it carries its content type, else headers came first. */
function fromServer(error: ServiceError, headersSeen: boolean): boolean {
  if (error.metadata?.get('content-type').length > 0) return true;
  return headersSeen && !BROKEN.test(error.details);
}

/** What grpc-js adds for its own debugging is left out; the runtime's words stay as they are. */
function plain(details: string): string {
  return details
    .replace(/^No connection established\. Last error: (?:Error: )?/, 'no connection: ')
    .replace(/\. ?Resolution note:.*$/, '')
    .replace(/^Deadline exceeded after ([\d.]+)s,.*$/, 'no answer within $1 s');
}

export function toCriError(method: CriMethod | 'hints', error: ServiceError, headersSeen: boolean): CriError {
  const code = error.code ?? status.UNKNOWN;
  const details = error.details || error.message;
  const mutating = method !== 'hints' && CRI_METHODS[method].mutating;
  const timed = code === status.DEADLINE_EXCEEDED || code === status.CANCELLED;
  const settled = !mutating || NEVER_SENT.test(details) || (!timed && fromServer(error, headersSeen));
  return new CriError({ method, code, details: plain(details), outcome: settled ? 'failed' : 'unknown' });
}
