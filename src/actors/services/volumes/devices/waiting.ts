import type { VolumeTools } from '../kind.ts';

const LOOK_MS = 250;

/** Looks until there is something, or the time is over: then undefined. */
export async function untilThere<T>(
  { ports: { clock } }: Pick<VolumeTools, 'ports'>,
  waitMs: number,
  look: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const endMs = clock.monoMs() + waitMs;
  for (;;) {
    const found = await look();
    if (found !== undefined || clock.monoMs() >= endMs) return found;
    await new Promise<void>((resolve) => void clock.setTimeout(resolve, LOOK_MS));
  }
}
