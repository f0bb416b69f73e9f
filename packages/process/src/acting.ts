/** Which actor it is that does something, also after it waited. */
import { AsyncLocalStorage } from 'node:async_hooks';

interface Who {
  readonly path: string;
  readonly event: string;
}

/** `acting` runs the step of an actor; `now` tells whose step began what runs; after `leave` it is nobody's. */
export function whoActs(): { acting(who: Who, step: () => void): void; now(): Who | undefined; leave(): void } {
  const storage = new AsyncLocalStorage<Who | undefined>();
  return {
    acting: (who, step) => storage.run(who, step),
    now: () => storage.getStore(),
    leave: () => storage.enterWith(undefined),
  };
}
