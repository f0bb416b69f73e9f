/** Answers of the proxy itself, as an API server writes them. */
import type { Refusal } from '../../proxy/trouble.ts';

export function statusFields({ code, reason, message, retryAfter }: Refusal): object {
  const details = retryAfter === undefined ? {} : { details: { retryAfterSeconds: retryAfter } };
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, ...details, code };
}

export function statusOf(refusal: Refusal): Buffer {
  return Buffer.from(`${JSON.stringify(statusFields(refusal))}\n`);
}
