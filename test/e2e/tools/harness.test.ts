/** The users' harness on a real containerd: a test node with real containers, and what it leaves to others. */
import { existsSync } from 'node:fs';
import { startNode } from '@actorlet/harness/src/index.ts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Containerd, startContainerd } from '../lab/containerd.ts';
import { runPod } from '../lab/pods.ts';
import { manifest, sh, steady } from '../manifests.ts';
import { sandboxes } from '../runtime.ts';

let lab: Containerd;
beforeAll(async () => {
  lab = await startContainerd();
});
afterAll(async () => {
  expect(await lab?.stop()).toEqual([]);
});

const options = () => ({ runtime: 'containerd', endpoint: lab.endpoint, timeoutMs: 60_000 }) as const;

it('runs pods as containers, through a fault and the death of its daemon, and removes them with itself', async () => {
  const node = await startNode(options());
  try {
    const web = await node.apply(manifest('web', [steady('main'), sh('side', 'echo hello from $0; exec sleep 3600')]));
    await web.ready();
    await web.logged('hello from', { container: 'side' });
    const before = await node.containers();
    expect(before.map((c) => [c.pod, c.name, c.state])).toEqual(
      expect.arrayContaining([
        ['web', 'main', 'running'],
        ['web', 'side', 'running'],
      ]),
    );

    await using fault = await node.inject({
      apiVersion: 'actorlet.dev/v1alpha1',
      kind: 'FaultScenario',
      metadata: { name: 'away' },
      spec: { faults: [{ kind: 'runtime.down', for: '2s' }] },
    });
    await web.stays('keep running', (p) => p.phase === 'Running' && p.restarts === 0, { forMs: 3_000 });
    await fault.stop();

    await node.kill();
    await node.restart();
    await web.ready();
    expect(await node.containers()).toEqual(before);

    // Its pods would be somebody's whom another node does not know.
    const samePlace = lab.endpoint.replace(/\/([^/]+)$/, '/./$1');
    await expect(startNode({ ...options(), endpoint: samePlace })).rejects.toThrow('another test node uses the runtime at');
  } finally {
    await node.dispose();
  }
  expect(await sandboxes(lab)).toEqual([]);
  expect(existsSync(node.dir)).toBe(false);
});

it('refuses a runtime that holds pods of somebody else, and leaves them alone', async () => {
  const { sandboxId } = await runPod(lab.cri, {
    name: 'theirs',
    uid: 'uid-theirs',
    cgroupParent: lab.cgroupParent,
    command: ['sh', '-c', 'exec sleep 3600'],
  });
  await expect(startNode(options())).rejects.toThrow(`the runtime at ${lab.socket} holds 1 pods (theirs)`);
  expect(await sandboxes(lab)).toEqual([expect.objectContaining({ id: sandboxId, ready: true })]);
});
