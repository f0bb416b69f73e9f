/**
 * One client of a hollow runtime: deadlines, cancellation and streams as a gRPC client has them. A call that times
 * out or is cancelled still has its effect: the outcome is unknown, as with a real runtime.
 */

import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { CriMethod, CriRequest, CriResponse } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { type Clock, type Cri, CriError } from '@actorlet/kubelet/ports/ports.ts';
import { CODE, RuntimeRefusal } from '../shared/model.ts';
import { createHintStream, type HintStream } from './hints.ts';

export interface HollowClientDeps {
  clock: Clock;
  run<M extends CriMethod>(method: M, req: CriRequest<M>): Promise<CriResponse<M>>;
  /** The runtime's open streams: this client adds and removes its own. */
  streams: Set<HintStream>;
}

export function createHollowClient({ clock, run, streams }: HollowClientDeps): Cri {
  const mine = new Set<HintStream>();
  const pending = new Set<(error: CriError) => void>();

  const cut = (why: string): void => {
    for (const s of [...mine]) s.end(new Error(why));
  };

  return {
    call<M extends CriMethod>(method: M, req: CriRequest<M>, opts: { timeoutMs: number | null; signal: AbortSignal }) {
      return new Promise<CriResponse<M>>((resolve, reject) => {
        const failed = (code: number, outcome: 'failed' | 'unknown', details: string) => new CriError({ method, code, outcome, details });
        if (opts.signal.aborted) {
          reject(failed(CODE.cancelled, 'failed', 'cancelled before it was sent'));
          return;
        }
        let timer: unknown;
        const settle = (fn: () => void): void => {
          clock.clearTimeout(timer);
          opts.signal.removeEventListener('abort', onAbort);
          pending.delete(giveUp);
          fn();
        };
        const giveUp = (error: CriError): void => settle(() => reject(error));
        const onAbort = (): void => giveUp(failed(CODE.cancelled, 'unknown', 'cancelled by the caller'));
        opts.signal.addEventListener('abort', onAbort, { once: true });
        pending.add(giveUp);
        if (opts.timeoutMs !== null) {
          const limitMs = opts.timeoutMs;
          timer = clock.setTimeout(() => giveUp(failed(CODE.deadlineExceeded, 'unknown', `no answer within ${limitMs} ms`)), limitMs);
        }
        run(method, req).then(
          (value) => settle(() => resolve(value)),
          (error: unknown) => {
            const refusal = error instanceof RuntimeRefusal ? error : undefined;
            const details = messageOf(error);
            settle(() => reject(failed(refusal?.code ?? CODE.internal, 'failed', details)));
          },
        );
      });
    },
    async hints(signal) {
      if (signal.aborted)
        throw new CriError({ method: 'GetContainerEvents', code: CODE.cancelled, outcome: 'failed', details: 'cancelled' });
      const onAbort = (): void => stream.end();
      const stream = createHintStream(() => {
        mine.delete(stream);
        streams.delete(stream);
        signal.removeEventListener('abort', onAbort);
      });
      mine.add(stream);
      streams.add(stream);
      signal.addEventListener('abort', onAbort, { once: true });
      return { via: 'cri', stream: stream.iterable };
    },
    reconnect: () => cut('the connection was dropped'),
    close() {
      cut('the client was closed');
      for (const giveUp of [...pending]) {
        giveUp(new CriError({ method: 'any', code: CODE.unavailable, outcome: 'unknown', details: 'the client was closed' }));
      }
    },
  };
}
