/** Waiting that ends when the fault behind it is healed. */
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';

export type PauseEnd = 'time' | 'healed' | 'given-up';

/** `ms` null: until it is healed or given up. Leaves no timer and no listener. */
export function pause(clock: Clock, ms: number | null, ends: { healed: AbortSignal; givenUp?: AbortSignal }): Promise<PauseEnd> {
  return new Promise((resolve) => {
    const { healed, givenUp } = ends;
    const finish = (end: PauseEnd) => {
      if (timer !== undefined) clock.clearTimeout(timer);
      healed.removeEventListener('abort', onHealed);
      givenUp?.removeEventListener('abort', onGivenUp);
      resolve(end);
    };
    const onHealed = () => finish('healed');
    const onGivenUp = () => finish('given-up');
    let timer: unknown;
    if (givenUp?.aborted === true) return finish('given-up');
    if (healed.aborted) return finish('healed');
    healed.addEventListener('abort', onHealed);
    givenUp?.addEventListener('abort', onGivenUp);
    if (ms !== null) timer = clock.setTimeout(() => finish('time'), ms);
  });
}

/** `port` with some methods replaced; every other member is its own, bound to it. */
export function override<T extends object>(port: T, methods: Partial<T>): T {
  return new Proxy(port, {
    get(target, name) {
      const own = Reflect.get(methods, name) as unknown;
      if (own !== undefined) return own;
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
