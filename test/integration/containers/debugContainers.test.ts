/**
 * Ephemeral containers, as `kubectl debug` adds them to a pod that runs: started beside its containers, with sight of
 * the one they are aimed at, never restarted, and stopped with the pod.
 */
import { describe, expect } from 'vitest';
import { created, createReady, drop, inApi, isReady, must, NS } from '../cluster/clusterPods.ts';
import { itOnCluster as it } from '../onNode.ts';
import type { VirtualNode } from '../virtualNode.ts';

function debug(h: VirtualNode, name: string, container: object): void {
  const ephemeralContainers = [{ image: 'busybox:1', imagePullPolicy: 'IfNotPresent', ...container }];
  const path = `${NS}/pods/${name}`;
  must(h, { verb: 'PATCH', path, patchType: 'merge', body: { spec: { ephemeralContainers } } });
}
const state = (h: VirtualNode, name: string) => inApi(h, name)?.status.ephemeralContainerStatuses?.[0]?.state;
const held = (h: VirtualNode) => h.runtime.dump().containers.map((c) => [c.labels['io.kubernetes.container.name'], c.id]);
const running = (h: VirtualNode) => h.running().map((c) => c.id);

describe('an ephemeral container', () => {
  it('runs beside the containers of its pod, sees the one it is aimed at, and does not touch it', async ({ h }) => {
    await createReady(h, 'web');
    const main = running(h);
    expect(main).toHaveLength(1);
    debug(h, 'web', { name: 'debugger', targetContainerName: 'main' });
    await h.until('runs', () => state(h, 'web')?.running !== undefined);
    expect(isReady(h, 'web')).toBe(true);
    const config = created(h, 'web').find((c) => c.metadata.name === 'debugger');
    expect(config?.linux?.securityContext?.namespaceOptions).toMatchObject({ pid: 'TARGET', targetId: main[0] });
    expect(running(h)).toContain(main[0]);
    drop(h, 'pods/web', 2);
    await h.until('gone', () => inApi(h, 'web') === undefined, 60_000);
    expect(running(h)).toEqual([]);
    expect(h.violations).toEqual([]);
  });

  it('that ends is not started again, also not after a restart of the daemon, and its pod stays Ready', async ({ h }) => {
    await createReady(h, 'web', { lives: { debugger: 'run=1s,exit=3' } });
    debug(h, 'web', { name: 'debugger' });
    await h.until('ended', () => state(h, 'web')?.terminated !== undefined);
    expect(state(h, 'web')?.terminated).toMatchObject({ exitCode: 3 });
    const before = held(h);
    expect(before.map(([name]) => name).sort()).toEqual(['debugger', 'main']);
    await h.restart();
    await h.advance(120_000);
    expect(held(h)).toEqual(before);
    expect(isReady(h, 'web')).toBe(true);
    expect(created(h, 'web').filter((c) => c.metadata.name === 'debugger')).toHaveLength(1);
  });

  it('that cannot be started says why, and holds up nothing', async ({ h }) => {
    await createReady(h, 'web');
    debug(h, 'web', { name: 'debugger', targetContainerName: 'nobody' });
    await h.until('said', () => state(h, 'web')?.waiting?.reason === 'CreateContainerConfigError');
    expect(state(h, 'web')?.waiting?.message).toContain('nobody');
    expect(isReady(h, 'web')).toBe(true);
  });
});
