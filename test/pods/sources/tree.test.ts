/** Sources and podConfig under the real supervision: killed in each of their states, they come back to the same pods. */
import { rename, unlink, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fromCallback } from 'xstate';
import { configSpec } from '../../../src/actors/pods/podConfig/podConfig.ts';
import { fileSourceSpec } from '../../../src/actors/pods/sources/file.ts';
import { createTree } from '../../../src/actors/supervision/tree.ts';
import type { ActorSpec, Tree } from '../../../src/actors/supervision/types.ts';
import { createClock, createEntropy, createYield } from '../../../src/boot/dependencies/clock.ts';
import { createHostFs } from '../../../src/boot/dependencies/fs.ts';
import { createSys } from '../../../src/boot/dependencies/machine/sys.ts';
import { type PodOpEvent, type PodRecord, podsView } from '../../../src/machines/pods/manager/messages.ts';
import { RUNNING } from '../../lifeStates.ts';
import { fakePorts } from '../../supervision/fakePorts.ts';
import { tempDir, yaml } from './harness.ts';

const SUPERVISION = {
  restart: 'permanent',
  shutdownMs: 1_000,
  intensity: { max: 50, periodMs: 60_000 },
  backoff: { minMs: 5, maxMs: 20, factor: 2, jitter: 0 },
} as const;

let t: Awaited<ReturnType<typeof tempDir>>;
let tree: Tree;
let wanted: Map<string, PodRecord>;
let seen: PodOpEvent[];

/** Stands for the pod manager: keeps what the operations say, and publishes it. */
const podManager: ActorSpec<PodOpEvent> = {
  ...SUPERVISION,
  type: 'actor',
  id: 'podManager',
  start: (ctx) => ({
    logic: fromCallback(({ receive }) => {
      receive((event) => {
        const e = event as PodOpEvent;
        seen.push(e);
        for (const pod of e.pods) {
          if (e.op === 'REMOVE') wanted.delete(pod.metadata.uid);
          else wanted.set(pod.metadata.uid, { pod, source: e.source, state: RUNNING, seenAtMs: 0, worker: null });
        }
        for (const [uid, r] of wanted) if (r.source === e.source && e.complete?.includes(uid) === false) wanted.delete(uid);
        ctx.publish(podsView, { records: new Map(wanted), sourcesReady: true });
      });
    }),
  }),
};

beforeEach(async () => {
  t = await tempDir();
  wanted = new Map();
  seen = [];
  const supervisor = { ...SUPERVISION, type: 'supervisor', escalate: 'parent' } as const;
  const source = fileSourceSpec({ path: t.dir, checkFrequencyMs: 20_000, nodeName: 'n1', preventApiReferences: true });
  const ports = fakePorts({
    clock: createClock(),
    fs: createHostFs(),
    sys: createSys({ notify: () => false }),
    entropy: createEntropy(),
    yield: createYield(),
  });
  tree = createTree(
    {
      ...supervisor,
      id: 'node',
      strategy: 'one_for_one',
      children: [
        {
          ...supervisor,
          id: 'pods',
          strategy: 'rest_for_one',
          children: [
            podManager,
            { ...configSpec({ sources: ['file'], listingWaitMs: 0 }), backoff: SUPERVISION.backoff },
            { ...supervisor, id: 'sources', strategy: 'one_for_one', children: [{ ...source, backoff: SUPERVISION.backoff }] },
          ],
        },
      ],
    },
    ports,
  );
  await tree.start();
});
afterEach(async () => {
  await tree.stop();
  await t.remove();
});

const podNames = () => [...wanted.values()].map((r) => r.pod.metadata.name).sort();
async function eventually(what: string, condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`never: ${what}; have ${podNames()}; ${JSON.stringify(tree.state())}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
async function place(name: string): Promise<void> {
  await writeFile(t.file(`.${name}`), yaml(name));
  await rename(t.file(`.${name}`), t.file(`${name}.yaml`));
}
const sets = () => seen.length;

describe('under supervision', () => {
  it('carries a manifest through to the pod manager with its cause, and takes it back', async () => {
    await place('web');
    await eventually('web', () => podNames().join() === 'web-n1');
    expect(seen.at(-1)?.causes?.map((c) => [c.by, c.what])).toEqual([
      ['node/pods/sources/file', `manifest ${t.file('web.yaml')} appeared`],
      ['node/pods/config', 'source file: ADD of 1 pod'],
    ]);
    await unlink(t.file('web.yaml'));
    await eventually('nothing', () => podNames().length === 0);
  });

  it.each(['node/pods/sources/file', 'node/pods/config'])(
    'loses no pod and invents none when %s is killed again and again',
    async (path) => {
      await place('keep');
      await place('drop');
      await eventually('both', () => podNames().length === 2);
      const uids = [...wanted.keys()].sort();
      for (let i = 0; i < 3; i += 1) {
        await eventually('a living actor', () => tree.kill(path, 'test'));
        // Struck while it is starting, listing or settling, too.
        tree.kill(path, 'test');
      }
      await unlink(t.file('drop.yaml'));
      await eventually('the removed one gone', () => podNames().join() === 'keep-n1');
      await place('late');
      await eventually('the late one there', () => podNames().join() === 'keep-n1,late-n1');
      expect(uids).toContain([...wanted.values()].find((r) => r.pod.metadata.name === 'keep-n1')?.pod.metadata.uid);
    },
  );

  it('removes a pod whose manifest vanished while podConfig was away', async () => {
    await place('keep');
    await place('drop');
    await eventually('both', () => podNames().length === 2);
    const before = sets();
    const removal = unlink(t.file('drop.yaml'));
    tree.kill('node/pods/config', 'test');
    await removal;
    await eventually('the removed one gone', () => sets() > before && podNames().join() === 'keep-n1');
  });
});
