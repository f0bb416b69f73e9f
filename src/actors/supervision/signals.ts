/** A signal made of others, for as long as something is under way. */
export interface JoinedSignal extends Disposable {
  readonly signal: AbortSignal;
}

/**
 * Aborts with the first of `sources` that does, for the same reason; dispose it when what listens is done. The
 * platform's own composition keeps every composed signal that has a listener alive until a source aborts, and a source
 * here may be the signal of an actor that lives as long as the daemon.
 */
export function joinSignals(...sources: readonly AbortSignal[]): JoinedSignal {
  const joined = new AbortController();
  const left = () => {
    for (const s of sources) s.removeEventListener('abort', heard);
  };
  function heard(this: AbortSignal): void {
    left();
    joined.abort(this.reason);
  }
  const ended = sources.find((s) => s.aborted);
  if (ended !== undefined) joined.abort(ended.reason);
  else for (const s of sources) s.addEventListener('abort', heard);
  return { signal: joined.signal, [Symbol.dispose]: left };
}
