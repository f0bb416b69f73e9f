/** What most e2e files begin and end with: a containerd, a daemon on it, and nothing that is left behind. */
import { afterAll, beforeAll, expect } from 'vitest';
import { buildDaemon, createDaemon, type Daemon } from './daemon.ts';
import { type Containerd, startContainerd } from './lab/containerd.ts';

interface Options {
  config?: Record<string, unknown>;
  flags?: readonly string[];
  /** What the tests may not leave, listed before the daemon ends. */
  left?: () => string[];
}

/** `given` gets both before the daemon starts. */
export function onContainerd(given: (made: { lab: Containerd; daemon: Daemon }) => unknown, o: Options = {}): void {
  let lab: Containerd | undefined;
  let daemon: Daemon | undefined;
  beforeAll(async () => {
    await buildDaemon();
    lab = await startContainerd();
    daemon = await createDaemon(lab, o.config, o.flags);
    await given({ lab, daemon });
    await daemon.start();
  });
  afterAll(async () => {
    const left = daemon === undefined ? [] : (o.left?.() ?? []);
    await daemon?.dispose();
    expect(await lab?.stop()).toEqual([]);
    expect(left).toEqual([]);
  });
}
