/** What supervision means for pods: quarantine, layers that give up, a root that gives up, orphans, a worker's own look. */
import { describe, expect, it } from 'vitest';
import { eventsView } from '../../../src/machines/foundation/messages.ts';
import { allActors, notRunning, workerless } from '../kill/killing.ts';
import { pod, type VirtualNode, virtualNode } from '../virtualNode.ts';

const up = (h: VirtualNode, name: string) => h.phase(name) === 'Running' && h.running(name).length === 1;

describe('a worker that keeps crashing', () => {
  async function quarantined(h: VirtualNode, name: string): Promise<void> {
    const path = h.workerPath(name);
    for (let i = 0; i < 6; i++) {
      await h.until('the worker is up', () => notRunning(h).length === 0);
      h.kill(path);
      await h.settle();
    }
    await h.until('it is quarantined', () => h.actor(path)?.lifecycle === 'quarantined');
  }

  it('is set aside alone: its container and all other pods go on', async () => {
    await using h = await virtualNode({ manifests: { bad: pod('bad'), good: pod('good') } });
    await h.until('both run', () => up(h, 'bad') && up(h, 'good'));
    const before = h.running().map((c) => c.id);
    await quarantined(h, 'bad');
    await h.advance(120_000);
    expect((h.tree.registry.read(eventsView)?.value ?? []).filter((e) => e.reason === 'WorkerQuarantined')).toMatchObject([
      { type: 'Warning', pod: { name: 'bad-n1' } },
    ]);
    expect(h.running().map((c) => c.id)).toEqual(before);
    expect(h.actor(h.workerPath('good'))?.incarnation).toBe(1);
  });

  it('does not keep its pod from being removed', async () => {
    await using h = await virtualNode({ manifests: { bad: pod('bad') } });
    await h.until('it runs', () => up(h, 'bad'));
    await quarantined(h, 'bad');
    h.remove('bad');
    await h.until('nothing is left', () => h.runtime.dump().containers.length === 0 && h.runtime.dump().sandboxes.length === 0, 300_000);
    await h.until('nor a record', () => h.record('bad') === undefined);
  });

  it('does not keep its manifest from being edited: the old containers go, the new pod runs', async () => {
    await using h = await virtualNode({ manifests: { bad: pod('bad') } });
    await h.until('it runs', () => up(h, 'bad'));
    const [old] = h.running('bad');
    await quarantined(h, 'bad');
    h.write('bad', pod('bad', { container: { image: 'busybox:2' } }));
    await h.until('only the new one runs', () => up(h, 'bad') && h.running('bad')[0]?.podUid !== old?.podUid, 300_000);
    expect(h.running()).toHaveLength(1);
  });

  it('with a pinned UID begins again when its manifest goes and comes back', async () => {
    await using h = await virtualNode({ manifests: { bad: pod('bad', { uid: 'pinned-1' }) } });
    await h.until('it runs', () => up(h, 'bad'));
    await quarantined(h, 'bad');
    h.remove('bad');
    await h.until('nothing is left', () => h.runtime.dump().containers.length === 0, 300_000);
    h.write('bad', pod('bad', { uid: 'pinned-1' }));
    await h.until('it runs again', () => up(h, 'bad'), 300_000);
    expect(workerless(h)).toEqual([]);
  });
});

describe('a layer', () => {
  it.each([
    'node/pods/podManager',
    'node/pods/config',
    'node/pods/workers',
    'node/runtime/cri',
    'node/pods/sources/file',
    'node/reclaim/housekeeping',
    'node/services/volumes',
  ])('that gives up because %s keeps dying is started anew, and no container notices', async (path) => {
    await using h = await virtualNode({ manifests: { web: pod('web'), full: pod('full', { inits: [{ restartPolicy: 'Always' }] }) } });
    await h.until('all run', () => up(h, 'web') && h.running('full').length === 2);
    await h.advance(5_000);
    const before = h.running().map((c) => c.id);
    const layer = path.split('/').slice(0, -1).join('/');
    const first = h.actor(layer)?.incarnation ?? 0;
    for (let i = 0; i < 12 && h.actor(layer)?.incarnation === first; i++) {
      await h.until(`${path} runs`, () => h.actor(path)?.lifecycle === 'running');
      h.kill(path);
      await h.advance(200);
    }
    await h.until('all run', () => notRunning(h).length === 0, 120_000);
    expect(h.actor(layer)?.incarnation).toBeGreaterThan(first);
    await h.advance(60_000);
    expect(h.running().map((c) => c.id)).toEqual(before);
    expect(workerless(h)).toEqual([]);
    h.remove('web');
    await h.until('a removal is still carried out', () => h.running().length === 2 && h.record('web') === undefined);
  });

  it('that gives up again and again ends the node with its reason, and containers are left as they are', async () => {
    await using h = await virtualNode({ manifests: { web: pod('web') } });
    await h.until('it runs', () => up(h, 'web'));
    const before = h.running();
    let failure: Error | undefined;
    void h.tree.failed.then((error) => {
      failure = error;
    });
    for (let i = 0; i < 8 && failure === undefined; i++) {
      h.kill('node/pods');
      await h.advance(10_000);
    }
    expect(failure?.message).toMatch(/node/);
    expect(h.running()).toEqual(before);
    await h.restart();
    await h.until('a new node takes over', () => up(h, 'web') && h.running()[0]?.id === before[0]?.id);
  });
});

describe('many kills', () => {
  it('leave no actor and no timer behind, and no container notices', async () => {
    await using h = await virtualNode({
      manifests: { web: pod('web'), full: pod('full', { inits: [{ restartPolicy: 'Always' }] }) },
      servers: true,
    });
    await h.until('all run', () => up(h, 'web') && h.running('full').length === 2);
    // Until listings have slowed down.
    await h.advance(300_000);
    const ids = h.running().map((c) => c.id);
    const alive = h.tree.aliveActors();
    const timers = h.time.pendingTimers();
    const paths = allActors(h.tree.state()).flatMap((a) => (a.type === 'actor' ? [a.path] : []));
    for (const path of [...paths, ...paths]) {
      h.kill(path);
      await h.advance(31_000);
    }
    await h.advance(600_000);
    expect(h.running().map((c) => c.id)).toEqual(ids);
    expect(h.tree.aliveActors()).toBe(alive);
    expect(h.time.pendingTimers()).toBeLessThanOrEqual(timers + 2);
    expect(notRunning(h)).toEqual([]);
  });
});

describe('a URL that fails', () => {
  it.each(['node/pods/podManager', 'node/pods/config', 'node/pods', 'node/pods/sources/http'])(
    'while %s is killed costs none of its pods',
    async (path) => {
      const body = new TextEncoder().encode(JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items: [pod('far')] }));
      const good = () => Promise.resolve({ status: 200, body });
      await using h = await virtualNode({
        manifests: { near: pod('near') },
        config: { staticPodURL: 'http://example.test/pods' },
        before: (n) => {
          n.net.getBody = good;
        },
      });
      await h.until('both run', () => up(h, 'near') && up(h, 'far'));
      await h.advance(5_000);
      const ids = h.running().map((c) => c.id);
      h.net.getBody = () => Promise.reject(new Error('connection refused'));
      h.kill(path);
      await h.advance(300_000);
      expect(h.running().map((c) => c.id)).toEqual(ids);
      h.net.getBody = good;
      await h.until('both are shown', () => up(h, 'near') && up(h, 'far'));
      expect(h.running().map((c) => c.id)).toEqual(ids);
      expect(workerless(h)).toEqual([]);
    },
  );
});

describe('what the runtime holds and nobody wants', () => {
  it('is stopped when every source has delivered, not before', async () => {
    await using h = await virtualNode({
      manifests: { web: pod('web'), old: pod('old') },
      config: { staticPodURL: 'http://example.test/pods' },
    });
    await h.until('both run', () => up(h, 'web') && up(h, 'old'));
    await h.crash();
    h.remove('old');
    const { getBody } = h.net;
    h.net.getBody = () => new Promise(() => {});
    await h.boot();
    await h.advance(60_000);
    expect(h.running()).toHaveLength(2);
    h.net.getBody = getBody;
    h.kill('node/pods/sources/http');
    await h.until('the orphaned pod is gone', () => h.running().length === 1 && h.runtime.dump().sandboxes.length === 1, 120_000);
    expect(up(h, 'web')).toBe(true);
  });

  it('is stopped also when all workers die in the middle of it', async () => {
    await using h = await virtualNode({ manifests: { old: pod('old', { life: 'term=10s' }) } });
    await h.until('it runs', () => up(h, 'old'));
    await h.crash();
    h.remove('old');
    await h.boot();
    await h.until('the orphaned pod is being stopped', () =>
      h.actor('node/pods/workers')?.children.some((c) => c.state === 'terminating.stopping'),
    );
    h.kill('node/pods/workers');
    await h.until('nothing is left', () => h.runtime.dump().sandboxes.length === 0, 120_000);
    await h.advance(10_000);
    expect(h.actor('node/pods/workers')?.children).toEqual([]);
  });
});

describe('without hints and listings', () => {
  it('a worker finds an exit by its own look, within a period and a half', async () => {
    await using h = await virtualNode({ manifests: { web: pod('web') } });
    await h.until('it runs', () => up(h, 'web'));
    await h.advance(10_000);
    h.faults.hintCopies = 0;
    h.faults.fault = (m, req) => {
      const all = (m === 'ListPodSandbox' || m === 'ListContainers') && (req as { filter?: unknown }).filter === undefined;
      return all ? { kind: 'refuse', code: 2, details: 'too much to list' } : undefined;
    };
    await h.advance(100_000);
    h.runtime.exit(h.running('web')[0]?.id ?? '', { exitCode: 1 });
    await h.until('it was restarted', () => h.running('web')[0]?.attempt === 1, 91_000);
  });
});
