/** For every state that can be held or caught: how a node is driven there. Comments only where the recipe is not plain. */
import { criClient } from '../../../src/actors/runtime/client.ts';
import { type PodRecord, podManagerAddr } from '../../../src/machines/pods/manager/messages.ts';
import { plegAddr } from '../../../src/machines/runtime/pleg/messages.ts';
import { MANIFESTS, pod, type VirtualNode } from '../virtualNode.ts';
import { BYSTANDERS, type KillCase, sharing } from './killing.ts';

const worker = (h: VirtualNode) => h.workerPath('subject');
const slow =
  (method: keyof VirtualNode['faults']['latencyMs'], ms = 500) =>
  (h: VirtualNode) => {
    h.faults.latencyMs[method] = ms;
  };
const runs =
  (count = 1) =>
  (h: VirtualNode) =>
    h.running('subject').length === count && h.phase('subject') === 'Running';
const gone = (h: VirtualNode) => h.containers('subject').length === 0 && h.record('subject') === undefined;
const up = (h: VirtualNode) => h.until('the subject runs', () => runs()(h));

/** A subject that is written after `hold`; by default it ends up running. */
function starting(covers: string, hold: (h: VirtualNode) => void, more: Partial<KillCase> & { subject?: object } = {}): KillCase {
  const { subject, ...rest } = more;
  return {
    covers,
    path: worker,
    arrange: async (h) => {
      hold(h);
      h.write('subject', subject ?? pod('subject'));
      await h.until('the pod is known', () => h.record('subject'));
    },
    rests: runs(),
    ...rest,
  };
}
/** A running subject whose manifest is removed after `hold`. */
function ending(covers: string, hold: (h: VirtualNode) => void, more: Partial<KillCase> & { life?: string } = {}): KillCase {
  const { life, ...rest } = more;
  return {
    covers,
    path: worker,
    arrange: async (h) => {
      h.write('subject', pod('subject', life === undefined ? {} : { life }));
      await up(h);
      await h.advance(5_000);
      hold(h);
      h.remove('subject');
    },
    rests: gone,
    ...rest,
  };
}
/** A running subject with a pinned UID that is edited after `hold`. */
function edited(covers: string, change: object, hold: (h: VirtualNode) => void, more: Partial<KillCase> = {}): KillCase {
  return {
    covers,
    path: worker,
    arrange: async (h) => {
      h.write('subject', pod('subject', { uid: 'pinned-1' }));
      await up(h);
      await h.advance(2_000);
      hold(h);
      h.write('subject', pod('subject', { uid: 'pinned-1', ...change }));
    },
    rests: runs(),
    ...more,
  };
}
function container(state: string, hold: (h: VirtualNode) => void, more: Partial<KillCase> & { subject?: object } = {}): KillCase {
  return starting(`container ${state}`, hold, { at: (h) => h.containerState('subject', 'main') === state, ...more });
}

async function killedWhileDeaf(h: VirtualNode): Promise<void> {
  h.faults.deaf = true;
  h.faults.latencyMs = { RunPodSandbox: 20_000 };
  h.write('subject', pod('subject'));
  await h.until('the sandbox is being made', () => h.record('subject') && h.state(worker(h)) === 'syncing.creatingSandbox');
  h.kill(worker(h));
}

export const WORKER_CASES: KillCase[] = [
  {
    // The fence waits for a call that its dead predecessor left with a runtime that does not notice.
    covers: 'podWorker fencing',
    path: worker,
    arrange: killedWhileDeaf,
    rests: runs(),
  },
  {
    // The fence waits for a call that its dead predecessor left with a runtime that does not notice; then the link goes.
    covers: 'podWorker fencingAgain',
    path: worker,
    arrange: async (h) => {
      await killedWhileDeaf(h);
      await h.until('the next worker waits', () => h.state(worker(h)) === 'fencing');
      await h.advance(500);
      h.kill('node/runtime/cri');
    },
    rests: runs(),
  },
  starting('podWorker syncing.inspecting', slow('ListContainers', 200)),
  starting(
    'podWorker syncing.mountingVolumes',
    (h) => {
      h.fs.delayMs = (op) => (op === 'mkdirp' ? 300 : 0);
    },
    { story: 'directories of a pod' },
  ),
  starting('podWorker syncing.creatingSandbox', slow('RunPodSandbox')),
  edited('podWorker syncing.killing.stopping', { spec: { hostNetwork: true } }, slow('StopPodSandbox')),
  {
    // The act in flight is a start that goes on although it was cancelled.
    covers: 'podWorker syncing.killing.fencing',
    path: worker,
    arrange: async (h) => {
      h.write('subject', pod('subject', { uid: 'pinned-1', lives: { second: 'startDelay=5s' }, spec: two() }));
      const both = () => h.running('subject').length === 1 && h.containerState('subject', 'second') === 'starting';
      h.faults.deaf = true;
      await h.until('main runs and second is being started', both);
      h.write('subject', pod('subject', { uid: 'pinned-1', lives: { second: 'startDelay=5s' }, spec: { ...two(), hostNetwork: true } }));
    },
    rests: runs(2),
  },
  {
    ...edited('podWorker syncing.killing.inspecting', { spec: { hostNetwork: true } }, () => {}),
    arrange: async (h) => {
      h.write('subject', pod('subject', { uid: 'pinned-1' }));
      await up(h);
      const path = worker(h);
      const seen = h.tree.observe((e) => {
        if (e.kind !== 'transition' || e.path !== path || e.to !== 'syncing.killing.fencing') return;
        seen[Symbol.dispose]();
        h.faults.latencyMs.ListContainers = 300;
      });
      h.write('subject', pod('subject', { uid: 'pinned-1', spec: { hostNetwork: true } }));
    },
  },
  edited('podWorker syncing.killingContainers', { container: { image: 'busybox:2' } }, slow('StopContainer')),
  starting('podWorker syncing.settled', () => {}, {
    at: (h) => runs()(h) && h.state(worker(h)) === 'syncing.settled',
  }),
  starting('podWorker syncing.actFailed', (h) => {
    h.faults.fault = (m) => (m === 'RunPodSandbox' ? { kind: 'refuse', code: 2, details: 'no sandbox today' } : undefined);
  }),
  starting('podWorker syncing.networkAway', (h) => h.runtime.setCondition('NetworkReady', false, 'cni plugin not initialized'), {
    arrange: async (h) => {
      h.runtime.setCondition('NetworkReady', false, 'cni plugin not initialized');
      await h.advance(10_000);
      h.write('subject', pod('subject'));
      await h.until('the pod is known', () => h.record('subject'));
    },
  }),
  starting('podWorker syncing.runtimeAway', (h) => {
    h.faults.fault = (m) => (m === 'ListContainers' ? { kind: 'refuse', code: 2, details: 'cannot list' } : undefined);
  }),
  // Its sandbox loses its address again and again.
  starting(
    'podWorker syncing.backingOff',
    (h) => {
      let left = 8;
      h.faults.fault = (m, req) => {
        if (m !== 'CreateContainer' || left <= 0) return undefined;
        left -= 1;
        void h.runtime.connect().call('StopPodSandbox', { podSandboxId: (req as { podSandboxId: string }).podSandboxId }, callOptions());
        return { kind: 'refuse', code: 9, details: 'the sandbox is gone' };
      };
    },
    { restsWithinMs: 600_000 },
  ),
  ending('podWorker terminating.fencing', () => {}, {
    // The runtime does not notice that the act in flight is given up.
    arrange: async (h) => {
      h.faults.deaf = true;
      h.faults.latencyMs = { RunPodSandbox: 20_000 };
      h.write('subject', pod('subject'));
      await h.until('the sandbox is being made', () => h.record('subject') && h.state(worker(h)) === 'syncing.creatingSandbox');
      h.remove('subject');
    },
  }),
  ending('podWorker terminating.inspecting', () => {}, {
    // Of a worker that has seen nothing itself.
    arrange: async (h) => {
      h.write('subject', pod('subject'));
      await up(h);
      h.faults.latencyMs.ListContainers = 400;
      h.kill(worker(h));
      h.remove('subject');
    },
  }),
  ending('podWorker terminating.stopping', () => {}, { life: 'term=5s' }),
  ending('podWorker terminating.verifying', () => {}, {
    life: 'term=1s',
    arrange: async (h) => {
      h.write('subject', pod('subject', { life: 'term=1s' }));
      await up(h);
      h.remove('subject');
      await h.until('it is being stopped', () => h.state(worker(h)) === 'terminating.stopping');
      h.faults.latencyMs.ContainerStatus = 400;
    },
  }),
  {
    ...ending('podWorker terminated', () => {}),
    arrange: async (h) => {
      h.write('subject', pod('subject'));
      await up(h);
      // The last fence of its life is asked of a link that is away.
      const path = worker(h);
      const seen = h.tree.observe((e) => {
        if (e.kind !== 'transition' || e.path !== path || e.to !== 'terminated') return;
        seen[Symbol.dispose]();
        h.kill(cri);
      });
      h.remove('subject');
    },
  },
  {
    ...ending('podWorker cleaningAgain', () => {}),
    // The last fence waits behind a garbage collection that does not end, then the link goes away.
    arrange: async (h) => {
      h.write('subject', pod('subject'));
      await up(h);
      const path = worker(h);
      const { uid } = (h.record('subject') as PodRecord).pod.metadata;
      const seen = h.tree.observe((e) => {
        if (e.kind !== 'transition' || e.path !== path || e.to !== 'terminating.verifying') return;
        seen[Symbol.dispose]();
        h.faults.latencyMs.UpdateContainerResources = 10_000;
        const call = { method: 'UpdateContainerResources' as const, request: { containerId: 'x' } };
        void criClient(h.tree.registry).act(uid, null, [call]);
      });
      h.remove('subject');
      await h.until('it waits for the fence', () => h.state(path) === 'terminated');
      await h.advance(500);
      h.kill(cri);
    },
  },
  {
    // An end is announced that the runtime does not show.
    covers: 'podWorker syncing.awaitingEnd',
    path: worker,
    arrange: async (h) => {
      h.write('subject', pod('subject'));
      await up(h);
      await h.advance(1_000);
      const [c] = h.running('subject');
      h.tree.registry.send(podManagerAddr, { type: 'pods.dirty', uid: h.uid('subject'), why: 'test', ended: [c?.id ?? ''] });
    },
    rests: runs(),
  },
  ending('podWorker terminating.again', (h) => {
    h.faults.fault = (m) => (m === 'StopContainer' ? { kind: 'refuse', code: 2, details: 'cannot be stopped' } : undefined);
  }),
];

export function two(): object {
  return {
    containers: [
      { name: 'main', image: 'busybox:1' },
      { name: 'second', image: 'busybox:1' },
    ],
  };
}
export function callOptions() {
  return { timeoutMs: null, signal: new AbortController().signal };
}

export const CONTAINER_CASES: KillCase[] = [
  container('waiting', () => {}, {
    subject: pod('subject', { lives: { 'init-0': 'run=3s' }, inits: [{}] }),
    at: (h) => h.containerState('subject', 'main') === 'waiting' && h.containerState('subject', 'init-0') === 'running',
  }),
  container('pulling', slow('PullImage', 3_000), { subject: pod('subject', { container: { image: 'large:1' } }) }),
  container('creating', slow('CreateContainer')),
  container('starting', slow('StartContainer')),
  {
    ...container('starting', () => {}, { subject: pod('subject', { life: 'startDelay=2s' }) }),
    covers: 'container starting (the runtime itself is slow)',
  },
  container('observing', () => {}, {
    arrange: async (h) => {
      h.write('subject', pod('subject', { life: 'startDelay=100ms' }));
      await h.until('it is being started', () => h.containerState('subject', 'main') === 'starting');
      h.faults.latencyMs.ListContainers = 300;
    },
  }),
  container('running', () => {}, { at: (h) => runs()(h) && h.containerState('subject', 'main') === 'running' }),
  container('exited', () => {}, {
    subject: pod('subject', { lives: { second: 'run=1s' }, spec: { ...two(), restartPolicy: 'Never' } }),
    at: (h) => h.containerState('subject', 'second') === 'exited',
  }),
  container('backingOff', () => {}, {
    subject: pod('subject', { life: 'run=1s,exit=1;run=1s,exit=1;run=forever' }),
    restsWithinMs: 300_000,
  }),
  container('failed', () => {}, {
    arrange: async (h) => {
      h.faults.fault = (m) => (m === 'CreateContainer' ? { kind: 'refuse', code: 2, details: 'no container today' } : undefined);
      h.write('subject', pod('subject'));
      await h.until('the pod is known', () => h.record('subject'));
    },
  }),
];

const http = { config: { staticPodURL: 'http://example.test/pods' } };
const file = 'node/pods/sources/file';
const inFile = (part: string) => (h: VirtualNode) => h.state(file).includes(part);
const pleg = 'node/runtime/pleg';
const inPleg = (part: string) => (h: VirtualNode) => h.state(pleg).includes(part);
const cri = 'node/runtime/cri';
const write = async (h: VirtualNode) => h.write('subject', pod('subject'));

export const POD_CASES: KillCase[] = [
  {
    covers: 'podManager waitingForSources',
    path: 'node/pods/podManager',
    options: { ...http, before: (h) => hang(h) },
    release: answer,
  },
  { covers: 'podManager ready', path: 'node/pods/podManager', arrange: write, rests: runs() },
  {
    // What it admitted before is asked for while the checkpoint reads its own file again.
    covers: 'podManager loading',
    path: 'node/pods/podManager',
    arrange: async (h) => {
      h.write('subject', pod('subject'));
      h.fs.delayMs = (op) => (op === 'readFile' || op === 'readdir' ? 3_000 : 0);
      h.kill('node/foundation/checkpoint');
      h.kill('node/pods/podManager');
    },
    rests: runs(),
  },
  {
    // No room, and the runtime cannot be listed after a restart of that layer: perhaps it is running here already.
    covers: 'podManager lookingAgain',
    path: 'node/pods/podManager',
    options: { config: { maxPods: 2 } },
    arrange: async (h) => {
      await h.crash();
      h.faults.fault = (m) => (m === 'ListPodSandbox' ? { kind: 'refuse', code: 2, details: 'cannot list' } : undefined);
      h.write('subject', pod('subject'));
      await h.boot();
    },
    rests: (h) => h.pods().length === 3,
  },
  { covers: 'config waiting', path: 'node/pods/config', options: { ...http, before: (h) => hang(h) }, release: answer },
  {
    covers: 'config waitingForListing.looking',
    path: 'node/pods/config',
    arrange: async (h) => {
      await h.crash();
      h.faults.fault = (m) => (m === 'ListPodSandbox' ? { kind: 'refuse', code: 2, details: 'cannot list' } : undefined);
      h.write('subject', pod('subject'));
      await h.boot();
    },
    rests: runs(),
  },
  { covers: 'config complete', path: 'node/pods/config', arrange: write, rests: runs() },
  { covers: 'status', path: 'node/pods/status', arrange: write, rests: runs() },
  ...sharing({ path: file }, [
    { covers: 'fileSource watch.trying.open', at: inFile('watch.trying.open') },
    {
      covers: 'fileSource watch.broken',
      arrange: async (h) => {
        h.fs.watchRefused = 'EMFILE';
        h.fs.breakWatches('queue overflow');
        await h.settle();
      },
      at: inFile('watch.broken'),
    },
    {
      covers: 'fileSource files.listing',
      arrange: async (h) => {
        h.fs.delayMs = (op) => (op === 'readdir' ? 500 : 0);
      },
      at: inFile('files.listing'),
    },
    {
      // The watch tells of no file: everything is listed.
      covers: 'fileSource files.relisting',
      arrange: async (h) => {
        h.fs.delayMs = (op) => (op === 'readdir' ? 500 : 0);
        h.fs.breakWatches('queue overflow');
      },
      at: inFile('files.relisting'),
    },
    { covers: 'fileSource files.watching.idle', at: inFile('files.watching.idle') },
    { covers: 'fileSource files.watching.settling', arrange: write, at: inFile('files.watching.settling'), rests: runs() },
    {
      covers: 'fileSource files.reading',
      arrange: async (h) => {
        h.fs.delayMs = (op) => (op === 'readFile' ? 500 : 0);
        h.write('subject', pod('subject'));
      },
      at: inFile('files.reading'),
      rests: runs(),
    },
    {
      // The path is not there; the bystanders come from the URL.
      covers: 'fileSource files.missing',
      options: { config: { ...http.config, staticPodPath: '/not-there' }, before: serveBystanders },
      at: inFile('files.missing'),
    },
    {
      covers: 'fileSource files.unreadable',
      arrange: async (h) => {
        h.fs.failing = (op, path) => (op === 'readdir' && path === MANIFESTS ? 'EIO' : undefined);
        await h.until('a listing failed', () => inFile('files.unreadable')(h));
      },
      at: inFile('files.unreadable'),
    },
  ]),
  ...sharing({ path: 'node/pods/sources/http', options: http }, [
    {
      covers: 'httpSource fetching',
      arrange: async (h) => hang(h),
      release: answer,
    },
    { covers: 'httpSource waiting' },
    {
      covers: 'httpSource failing',
      arrange: async (h) => {
        h.net.getBody = () => Promise.reject(new Error('connection refused'));
      },
      release: answer,
      errors: /connection refused/,
    },
  ]),
];

const EMPTY = new TextEncoder().encode('{"apiVersion":"v1","kind":"PodList","items":[]}');
function answer(h: VirtualNode): void {
  h.net.getBody = () => Promise.resolve({ status: 200, body: EMPTY });
}
/** The URL answers after 12 s. */
function hang(h: VirtualNode): void {
  h.net.getBody = () => new Promise((done) => void h.time.clock.setTimeout(() => done({ status: 200, body: EMPTY }), 12_000));
}
function serveBystanders(h: VirtualNode): void {
  const body = new TextEncoder().encode(JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items: Object.values(BYSTANDERS) }));
  h.net.getBody = () => Promise.resolve({ status: 200, body });
}
export const RUNTIME_CASES: KillCase[] = [
  { covers: 'criLink connecting', path: cri, arrange: async (h) => redial(h) },
  { covers: 'criLink ready.waiting', path: cri },
  { covers: 'criLink ready.polling', path: cri, arrange: async (h) => slow('Status')(h) },
  {
    covers: 'criLink lost',
    path: cri,
    arrange: async (h) => {
      h.faults.away = true;
      h.runtime.dropStreams();
    },
  },
  ...sharing({ path: pleg }, [
    { covers: 'pleg relist.waiting', at: inPleg('relist.waiting') },
    { covers: 'pleg relist.soon', arrange: write, at: inPleg('relist.soon'), rests: runs() },
    {
      covers: 'pleg relist.now',
      // A hint about something nobody knows, and the question whose it is fails.
      arrange: async (h) => {
        h.faults.fault = (_, req) =>
          JSON.stringify(req).includes('unknown') ? { kind: 'refuse', code: 2, details: 'cannot say' } : undefined;
        h.tree.registry.send(plegAddr, { type: 'pleg.hint', id: 'unknown', kind: 'stopped' });
        await h.settle();
      },
      at: inPleg('relist.now'),
    },
    {
      covers: 'pleg relist.listing',
      arrange: async (h) => slow('ListPodSandbox')(h),
      at: inPleg('relist.listing'),
    },
    { covers: 'pleg relist.noRuntime', arrange: async (h) => away(h), at: inPleg('relist.noRuntime') },
    { covers: 'pleg stream.noRuntime', arrange: async (h) => away(h), at: inPleg('stream.noRuntime') },
    { covers: 'pleg stream.open', at: inPleg('stream.open') },
    {
      covers: 'pleg stream.retrying',
      arrange: async (h) => {
        h.faults.hintsRefused = 12;
        h.runtime.dropStreams();
      },
      at: inPleg('stream.retrying'),
    },
  ]),
  { covers: 'imagePuller idle', path: 'node/runtime/imagePuller' },
  pulling('looking', slow('ImageStatus', 5_000)),
  pulling('collectingCredentials', (h) => {
    h.fs.delayMs = (op) => (op === 'writeFile' ? 3_000 : 0);
  }),
  pulling('pulling.queued', (h) => {
    slow('PullImage', 5_000)(h);
    h.write('before', pod('before', { container: { image: 'larger:1' } }));
  }),
  pulling('pulling.running', slow('PullImage', 5_000)),
  pulling('backingOff', (h) => {
    h.faults.fault = (m) => (m === 'PullImage' ? { kind: 'refuse', code: 2, details: 'no such image' } : undefined);
  }),
  {
    covers: 'imagePuller pulling',
    path: 'node/runtime/imagePuller',
    arrange: async (h) => {
      slow('PullImage', 5_000)(h);
      h.write('subject', pod('subject', { container: { image: 'large:1' } }));
    },
    rests: runs(),
  },
];
/** The image of the subject is on its way. */
function pulling(state: string, hold: (h: VirtualNode) => void): KillCase {
  const path = 'node/runtime/imagePuller';
  return {
    covers: `imagePull ${state}`,
    path,
    arrange: async (h) => {
      hold(h);
      h.write('subject', pod('subject', { container: { image: 'large:1' } }));
    },
    at: (h) => h.charts(path, 'default/subject').includes(state),
    rests: runs(),
  };
}
function redial(h: VirtualNode): void {
  h.faults.latencyMs.Version = 500;
  h.kill(cri);
}
function away(h: VirtualNode): void {
  h.faults.away = true;
  h.runtime.dropStreams();
}

/** The link is killed while a worker's act is with the runtime: unknown outcome, the effect comes all the same. */
export const LINK_CASES: KillCase[] = (
  ['RunPodSandbox', 'PullImage', 'CreateContainer', 'StartContainer', 'StopContainer', 'StopPodSandbox'] as const
).flatMap((method): KillCase[] => {
  const inFlight = async (h: VirtualNode, go: () => void) => {
    const flying: string[] = [];
    const latency = h.faults.latencyMs;
    latency[method] = 700;
    h.faults.fault = (m) => {
      if (m === method) flying.push(m);
      return undefined;
    };
    go();
    await h.until(`${method} is under way`, () => flying.length > 0);
    await h.advance(100);
  };
  const stops = method.startsWith('Stop');
  return [cri, 'node/runtime', 'node/pods', 'node/pods/workers', 'node/pods/status'].map((path) => ({
    covers: `act ${method} of ${path}`,
    story: `act ${method}`,
    path,
    at: () => true,
    arrange: async (h) => {
      if (!stops) return inFlight(h, () => h.write('subject', pod('subject', { container: { image: 'large:1' } })));
      h.write('subject', pod('subject'));
      await up(h);
      await inFlight(h, () => h.remove('subject'));
    },
    rests: stops ? gone : runs(),
  }));
});

const gc = 'node/reclaim/containerGc';
const imageGc = 'node/reclaim/imageGc';
const fullOfImages = {
  hollow: { images: ['left:1'] },
  before: (h: VirtualNode) => {
    h.fs.makeDir('/var/lib/hollow');
    h.fs.room = { ...h.fs.room, bytesAvailable: 0.1 * h.fs.room.bytesTotal };
  },
  config: { evictionHard: {} },
};
const housekeeping = 'node/reclaim/housekeeping';
export const OTHER_CASES: KillCase[] = [
  { covers: 'sweeper idle', path: gc },
  { covers: 'sweeper sweeping', path: gc, arrange: async (h) => slow('ListPodSandbox', 800)(h) },
  {
    ...ending('sweeper sweeping', () => {}),
    covers: 'sweeper sweeping (a removal is with the runtime)',
    path: gc,
    arrange: async (h) => {
      h.write('subject', pod('subject'));
      await up(h);
      h.faults.latencyMs = { RemoveContainer: 2_000, RemovePodSandbox: 2_000 };
      let removing = false;
      h.faults.fault = (m) => {
        if (m === 'RemoveContainer') removing = true;
        return undefined;
      };
      h.remove('subject');
      await h.until('a container is being removed', () => removing);
    },
    at: (h) => h.state(gc) === 'sweeping',
  },
  { covers: 'imageGc idle', path: imageGc },
  {
    covers: 'imageGc looking',
    path: imageGc,
    options: fullOfImages,
    arrange: async (h) => slow('ListImages', 2_000)(h),
    rests: (h) => !h.runtime.dump().images.includes('left:1'),
    restsWithinMs: 600_000,
  },
  {
    covers: 'imageGc removing',
    path: imageGc,
    options: fullOfImages,
    arrange: async (h) => slow('RemoveImage', 2_000)(h),
    rests: (h) => !h.runtime.dump().images.includes('left:1'),
    restsWithinMs: 600_000,
  },
  { ...ending('sweeper gathering.quiet', () => {}), path: gc },
  {
    ...ending('sweeper sweeping', () => {}),
    covers: 'sweeper sweeping (housekeeping)',
    path: housekeeping,
    arrange: async (h) => {
      h.write('subject', pod('subject'));
      await up(h);
      h.fs.delayMs = (op, path) => (op === 'readdir' && path.endsWith('/pods') ? 400 : 0);
      h.remove('subject');
    },
    at: (h) => h.state(housekeeping) === 'sweeping',
  },
  { covers: 'checkpoint serving', path: 'node/foundation/checkpoint' },
  ...sharing({ path: 'node/edge/readOnly', options: { servers: true } }, [
    { covers: 'server listening' },
    {
      covers: 'server opening',
      arrange: async (h) => {
        h.net.serve = () => new Promise((done) => void h.time.clock.setTimeout(done, 500));
        h.kill('node/edge/readOnly');
      },
    },
    {
      covers: 'server blocked',
      arrange: async (h) => {
        h.net.serve = () => Promise.reject(new Error('address already in use'));
        h.kill('node/edge/readOnly');
      },
    },
    {
      // A crash in the layer before stops the edge in order: its servers close.
      covers: 'server closing',
      arrange: async (h) => {
        h.net.closeMs = 1_000;
        h.kill('node/foundation');
      },
    },
  ]),
  { covers: 'supervisor running', path: 'node/pods' },
  {
    covers: 'supervisor restarting',
    path: 'node/runtime',
    arrange: async (h) => void h.kill('node/runtime/pleg'),
  },
  ...sharing({ path: 'node/edge', options: { servers: true } }, [
    {
      covers: 'supervisor starting',
      arrange: async (h) => {
        h.net.serve = () => new Promise((done) => void h.time.clock.setTimeout(done, 2_000));
        h.kill('node/edge');
      },
    },
    {
      covers: 'supervisor stopping',
      arrange: async (h) => {
        h.net.closeMs = 1_000;
        h.kill('node/foundation');
      },
    },
    {
      covers: 'supervisor parked',
      errors: /it is parked/,
      arrange: async (h) => {
        for (let i = 0; i < 8 && h.state('node/edge') !== 'parked'; i++) {
          await h.until('the server runs', () => h.state('node/edge/healthz') === 'listening');
          h.kill('node/edge/healthz');
          await h.settle();
        }
      },
      restsWithinMs: 120_000,
    },
  ]),
];
