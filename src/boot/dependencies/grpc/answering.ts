/** How a server on a unix socket answers one request: bounded in rate, and with the words of what went wrong. */
import { type ServerUnaryCall, type sendUnaryData, status } from '@grpc/grpc-js';
import { messageOf } from '../../../machines/text/errors.ts';

/** What was asked for is not there. */
export class NotFound extends Error {}

/** @param admit False: too many ask. The caller is told to try again. */
export function answering<Request>(admit: () => boolean, answer: (request: Request) => object) {
  return (call: ServerUnaryCall<Request, object>, done: sendUnaryData<object>): void => {
    if (!admit()) {
      done({ code: status.RESOURCE_EXHAUSTED, details: 'rejected by rate limit' });
      return;
    }
    let value: object;
    try {
      value = answer(call.request);
    } catch (error) {
      done({ code: error instanceof NotFound ? status.NOT_FOUND : status.UNKNOWN, details: messageOf(error) });
      return;
    }
    done(null, value);
  };
}
