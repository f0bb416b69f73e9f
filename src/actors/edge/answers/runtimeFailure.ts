import { messageOf } from '../../../machines/text/errors.ts';
import { CriError } from '../../../ports/ports.ts';
import type { HttpReply } from '../../../ports/sockets/net.ts';
import { text } from './answers.ts';

/** gRPC status codes that have an HTTP status of their own here. */
const NOT_FOUND = 5;
const RESOURCE_EXHAUSTED = 8;
/** What a client is told to wait when the runtime has too many streams open. */
const RETRY_AFTER_SECONDS = 60;

/** What a failure of the runtime is to the client. */
export function runtimeFailure(error: unknown): HttpReply {
  const message = error instanceof CriError ? error.details : messageOf(error);
  const code = error instanceof CriError ? error.code : 0;
  if (code === NOT_FOUND) return text(`${message}\n`, 404);
  if (code !== RESOURCE_EXHAUSTED) return text(`${message}\n`, 500);
  const reply = text(`${message}\n`, 429);
  return { ...reply, headers: { ...reply.headers, 'retry-after': String(RETRY_AFTER_SECONDS) } };
}
