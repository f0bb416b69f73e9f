/** A bounded stream of hints for one reader: when the reader is too slow the stream ends with an error, as a runtime's would. */
import type { RuntimeHint } from '@actorlet/kubelet/machines/wire/cri.ts';

/** Hints waiting for a slow reader before its stream is cut. */
const WAITING_MAX = 4096;

export interface HintStream {
  push(hint: RuntimeHint): void;
  /** Ends the stream after what is queued; with an error, that error is thrown to the reader. Idempotent. */
  end(error?: Error): void;
  readonly iterable: AsyncIterable<RuntimeHint>;
}

export function createHintStream(onClosed: () => void): HintStream {
  const queue: RuntimeHint[] = [];
  let ended = false;
  let failure: Error | undefined;
  let wake: (() => void) | undefined;

  const end = (error?: Error): void => {
    if (ended) return;
    ended = true;
    failure = error;
    wake?.();
    onClosed();
  };
  async function* read(): AsyncGenerator<RuntimeHint, void, undefined> {
    try {
      for (;;) {
        const next = queue.shift();
        if (next !== undefined) {
          yield next;
          continue;
        }
        if (ended) break;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        wake = undefined;
      }
      if (failure !== undefined) throw failure;
    } finally {
      end();
    }
  }
  return {
    push(hint) {
      if (ended) return;
      if (queue.length >= WAITING_MAX) {
        end(new Error(`hint stream: reader is ${WAITING_MAX} hints behind`));
        return;
      }
      queue.push(hint);
      wake?.();
    },
    end,
    iterable: { [Symbol.asyncIterator]: read },
  };
}
