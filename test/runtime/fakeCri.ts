/** A scripted runtime: each method answers by a function, or hangs until the test lets go; hints are pushed by hand. */
import { CRI_LABELS, type CriContainer, type CriContainerState, type PodSandbox, type RuntimeHint } from '../../src/machines/wire/cri.ts';
import type { CriMethod, CriRequest } from '../../src/machines/wire/criCalls.ts';
import { type Cri, CriError } from '../../src/ports/ports.ts';

export interface FakeCall {
  method: CriMethod;
  request: unknown;
  timeoutMs: number | null;
  signal: AbortSignal;
  resolve(value: unknown): void;
  reject(o: { code: number; outcome?: 'failed' | 'unknown'; details?: string }): void;
}
export interface FakeCri extends Cri {
  /** Every call so far. */
  readonly calls: FakeCall[];
  of(method: CriMethod): FakeCall[];
  /** Answers from now on; a function that throws rejects the call. Without one, the call hangs. */
  answer<M extends CriMethod>(method: M, fn: ((request: CriRequest<M>) => unknown) | 'hang'): void;
  hint(hint: RuntimeHint): void;
  endHints(error?: CriError): void;
  /** Streams opened so far. */
  opened(): number;
  dials(): number;
  hintsVia: 'cri' | 'containerd' | 'none';
}

export function fail(code: number, details: string, outcome: 'failed' | 'unknown' = 'failed'): never {
  throw new CriError({ method: 'fake', code, outcome, details });
}

export function fakeCri(): FakeCri {
  const calls: FakeCall[] = [];
  const answers = new Map<CriMethod, (request: never) => unknown>();
  let push: ((hint: RuntimeHint | CriError | null) => void) | undefined;
  let opened = 0;
  let dials = 0;
  const cri: FakeCri = {
    calls,
    hintsVia: 'containerd',
    of: (method) => calls.filter((c) => c.method === method),
    answer: (method, fn) => {
      if (fn === 'hang') answers.delete(method);
      else answers.set(method, fn as (request: never) => unknown);
    },
    hint: (hint) => push?.(hint),
    endHints: (error) => push?.(error ?? null),
    opened: () => opened,
    dials: () => dials,
    call: (method, request, opts) =>
      new Promise((resolve, reject) => {
        const error = (o: { code: number; outcome?: 'failed' | 'unknown'; details?: string }) =>
          new CriError({ method, code: o.code, outcome: o.outcome ?? 'failed', details: o.details ?? 'scripted' });
        const record: FakeCall = {
          method,
          request,
          timeoutMs: opts.timeoutMs,
          signal: opts.signal,
          resolve: (value) => resolve(value as never),
          reject: (o) => reject(error(o)),
        };
        calls.push(record);
        opts.signal.addEventListener('abort', () => reject(error({ code: 1, outcome: 'unknown', details: 'cancelled' })), { once: true });
        const fn = answers.get(method);
        if (fn === undefined) return;
        try {
          resolve(fn(request as never) as never);
        } catch (thrown) {
          reject(thrown instanceof CriError ? error({ code: thrown.code, outcome: thrown.outcome, details: thrown.details }) : thrown);
        }
      }),
    hints: async (signal) => {
      opened++;
      if (cri.hintsVia === 'none') throw new CriError({ method: 'hints', code: 12, outcome: 'failed', details: 'unknown service' });
      const queue: (RuntimeHint | CriError | null)[] = [];
      let wake: () => void = () => {};
      push = (hint) => {
        queue.push(hint);
        wake();
      };
      signal.addEventListener('abort', () => push?.(null), { once: true });
      const stream = (async function* () {
        for (;;) {
          const next = queue.shift();
          if (next === null) return;
          if (next instanceof CriError) throw next;
          if (next === undefined) {
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
            continue;
          }
          yield next;
        }
      })();
      return { via: cri.hintsVia, stream };
    },
    reconnect: () => void dials++,
    close: () => {},
  };
  return cri;
}

/** Answers Version, RuntimeConfig and Status as a healthy runtime. */
export function healthy(cri: FakeCri): FakeCri {
  cri.answer('Version', () => ({ version: '0.1.0', runtimeName: 'fake', runtimeVersion: '1', runtimeApiVersion: 'v1' }));
  cri.answer('RuntimeConfig', () => ({ linux: { cgroupDriver: 'CGROUPFS' } }));
  cri.answer('Status', () => ({
    status: { conditions: ['RuntimeReady', 'NetworkReady'].map((type) => ({ type, status: true, reason: '', message: '' })) },
    info: {},
  }));
  return cri;
}

export function listedSandbox(uid: string, o: Partial<PodSandbox> = {}): PodSandbox {
  return {
    id: `s-${uid}`,
    metadata: { name: uid, uid, namespace: 'default', attempt: 0 },
    state: 'SANDBOX_READY',
    createdAt: '1',
    labels: {},
    annotations: {},
    runtimeHandler: '',
    ...o,
  };
}
export function listedContainer(uid: string, id: string, state: CriContainerState): CriContainer {
  return {
    id,
    podSandboxId: `s-${uid}`,
    metadata: { name: 'main', attempt: 0 },
    image: null,
    imageRef: '',
    state,
    createdAt: '1',
    labels: {
      [CRI_LABELS.podUid]: uid,
      [CRI_LABELS.podName]: uid,
      [CRI_LABELS.podNamespace]: 'default',
      [CRI_LABELS.containerName]: 'main',
    },
    annotations: {},
  };
}
