/** What listings of the runtime tell (pod lifecycle 4.1), what is taken back of the dead (9.1), who is critical (1.1). */
import { isCritical, isMirror } from '../../../../src/machines/pod/phase.ts';
import { groupByPod } from '../../../../src/machines/pod/runtime/listed.ts';
import type { ListedPod } from '../../../../src/machines/pod/runtime/seen.ts';
import { isStaticPod } from '../../../../src/machines/pods/status/phase.ts';
import {
  containersToCollect,
  DEFAULT_GC_POLICY,
  deadLinks,
  type GcPolicy,
  logDirsToRemove,
  sandboxesToCollect,
} from '../../../../src/machines/reclaim/containerGc.ts';
import { countRunning, diffListing, diffPod, tells } from '../../../../src/machines/runtime/pleg/pleg.ts';
import type { CriContainer, CriContainerState, PodSandbox } from '../../../../src/machines/wire/cri.ts';
import { pod } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

type ListedContainer = ListedPod['containers'][number];
type State = ListedContainer['state'] | 'ready' | 'notReady';
const NOW = 1_700_000_000_000;
const ns = (n: number) => BigInt(NOW + n * 1_000) * 1_000_000n;
const c = (name: string, state: ListedContainer['state'], n = 1, sandboxId = 'box'): ListedContainer => ({
  id: `${name}-${n}`,
  name,
  sandboxId,
  state,
  createdAtNs: ns(n - 1_000),
  labels: {},
  annotations: {},
});
const s = (id: string, ready: boolean, n = 1): ListedPod['sandboxes'][number] => ({
  id,
  ready,
  createdAtNs: ns(n - 1_000),
  attempt: n - 1,
  labels: {},
  annotations: {},
});
const listed = (containers: ListedContainer[], sandboxes: ListedPod['sandboxes'] = [s('box', true)], uid = 'u1'): ListedPod => ({
  uid,
  name: uid,
  namespace: 'ns',
  sandboxes,
  containers,
});
const alone = (state: State | null): ListedPod | undefined => {
  if (state === null) return undefined;
  if (state === 'ready' || state === 'notReady') return listed([], [s('box', state === 'ready')]);
  return listed([c('web', state)], []);
};
/** The changes from one state to another, and which of them is told. */
const diff = (old: State | null, now: State | null) => {
  const changes = diffPod(alone(old), alone(now));
  return { changes: changes.map((change) => change.kind), told: tells(changes)?.kind };
};
const STATES = [null, 'created', 'running', 'exited', 'unknown'] as const;

// ---- the listing -------------------------------------------------------------------------------------------------
const sandbox = (id: string, uid: string | null): PodSandbox => ({
  id,
  metadata: uid === null ? null : { name: uid, namespace: 'ns', uid, attempt: 0 },
  state: 'SANDBOX_READY',
  createdAt: '1',
  labels: {},
  annotations: {},
  runtimeHandler: '',
});
const criContainer = (id: string, uid: string | undefined, state: CriContainerState = 'CONTAINER_RUNNING'): CriContainer =>
  ({
    id,
    podSandboxId: 'box',
    metadata: { name: 'c', attempt: 0 },
    state,
    createdAt: '1',
    labels:
      uid === undefined
        ? {}
        : {
            'io.kubernetes.pod.uid': uid,
            'io.kubernetes.pod.name': uid,
            'io.kubernetes.pod.namespace': 'ns',
            'io.kubernetes.container.name': 'c',
          },
    annotations: {},
  }) as CriContainer;
const grouped = (sandboxes: PodSandbox[], containers: CriContainer[]) =>
  [...groupByPod(sandboxes, containers).values()].map((p) => [
    p.uid,
    p.sandboxes.map((x) => x.id),
    p.containers.map((x) => `${x.id} ${x.state}`),
  ]);

// ---- the dead ----------------------------------------------------------------------------------------------------
const collect = (pods: ListedPod[], o: { ready?: boolean; gone?: string[]; policy?: Partial<GcPolicy> } = {}) =>
  containersToCollect({
    pods,
    sourcesReady: o.ready ?? true,
    isRemovable: (uid) => o.gone?.includes(uid) === true,
    nowWallMs: NOW,
    policy: { ...DEFAULT_GC_POLICY, ...o.policy },
  }).map((x) => (x.killFirst ? `${x.id}, stopped first` : x.id));
const boxes = (pods: ListedPod[], o: { ready?: boolean; gone?: string[] } = {}) =>
  sandboxesToCollect({ pods, sourcesReady: o.ready ?? true, isRemovable: (uid) => o.gone?.includes(uid) === true }).map((x) => x.id);
const three = listed([c('web', 'exited', 1), c('web', 'exited', 2), c('web', 'exited', 3)]);
const link = (state: ListedContainer['state'] | undefined, targetExists = false, name = 'p_ns_c-abcdef.log') =>
  deadLinks({ links: [{ name, targetExists }], stateOf: () => state });

const what = (annotations: Record<string, string>, priority?: number) => {
  const p = pod(priority === undefined ? {} : { priority }, { metadata: { annotations } });
  return { static: isStaticPod(p), mirror: isMirror(p), critical: isCritical(p) };
};

goldenTable('what the runtime is seen to hold leads to what is recorded', 'runtime/runtimeViews', {
  ...Object.fromEntries(
    STATES.flatMap((old) =>
      STATES.filter((now) => now !== old).map((now) => [`4.1 container: ${old ?? 'absent'} to ${now ?? 'absent'}`, () => diff(old, now)]),
    ),
  ),
  '4.1 sandbox: absent to ready': () => diff(null, 'ready'),
  '4.1 sandbox: ready to not ready': () => diff('ready', 'notReady'),
  '4.1 sandbox: not ready to absent': () => diff('notReady', null),
  '4.1 sandbox: ready to absent': () => diff('ready', null),
  '4.1 nothing differs': () => diff('running', 'running'),
  '4.1 listing: only pods that differ': () => {
    const { pods, changes } = diffListing(
      new Map([
        ['u1', listed([c('web', 'running')])],
        ['u2', listed([c('web', 'running')], [], 'u2')],
      ]),
      new Map([
        ['u1', listed([c('web', 'running')])],
        ['u3', listed([c('web', 'running')], [], 'u3')],
      ]),
    );
    return { pods: [...pods.keys()], changes: Object.fromEntries(changes) };
  },
  '4.1 grouped: a container whose sandbox is gone': () => grouped([], [criContainer('c1', 'u1')]),
  '4.1 grouped: a sandbox without metadata': () => grouped([sandbox('s1', null), sandbox('s2', 'u2')], []),
  '4.1 grouped: a container without a pod': () => grouped([], [criContainer('c1', undefined)]),
  '4.1 grouped: each state': () =>
    grouped(
      [sandbox('s1', 'u1')],
      (['CONTAINER_CREATED', 'CONTAINER_RUNNING', 'CONTAINER_EXITED', 'CONTAINER_UNKNOWN'] as const).map((state, i) =>
        criContainer(`c${i}`, 'u1', state),
      ),
    ),
  '4.1 gauges': () =>
    countRunning(
      new Map([
        ['u1', listed([c('a', 'running'), c('b', 'exited')])],
        ['u2', listed([c('a', 'created')], [s('x', false)], 'u2')],
      ]),
    ),

  '9.1 one dead instance is kept': () => collect([three]),
  '9.1 none is kept': () => collect([three], { policy: { maxPerPodContainer: 0 } }),
  '9.1 any number is kept': () => collect([three], { policy: { maxPerPodContainer: -1 } }),
  '9.1 per name': () => collect([listed([c('web', 'exited', 1), c('api', 'exited', 2)])]),
  '9.1 what runs does not count': () => collect([listed([c('web', 'running', 3), c('web', 'exited', 2), c('web', 'exited', 1)])]),
  '9.1 what is about to start does not count': () =>
    collect([listed([c('web', 'created', 3), c('web', 'exited', 2), c('web', 'exited', 1)])]),
  '9.1 an old one that never started counts': () => collect([listed([c('web', 'exited', 3), c('web', 'created', 2)])]),
  '9.1 of unknown state': () => collect([listed([c('web', 'exited', 2), c('web', 'unknown', 1)])]),
  '9.1 too young': () => collect([three], { policy: { minAgeMs: 3_600_000 } }),
  '9.1 of a pod that is gone': () => collect([three], { gone: ['u1'] }),
  '9.1 of a pod that is gone, not every source has delivered': () => collect([three], { gone: ['u1'], ready: false }),
  '9.1 of a pod that is gone, and that runs': () => collect([listed([c('web', 'running', 2), c('web', 'exited', 1)])], { gone: ['u1'] }),
  '9.1 too many on the node: an equal share each': () =>
    collect([three, listed([c('web', 'exited', 4), c('web', 'exited', 5)], [], 'u2')], {
      policy: { maxPerPodContainer: -1, maxContainers: 4 },
    }),
  '9.1 too many on the node: then the oldest': () =>
    collect(
      [1, 2, 3].map((n) => listed([c('web', 'exited', n)], [], `u${n}`)),
      { policy: { maxContainers: 2 } },
    ),
  '9.1 sandboxes: the newest is kept': () => boxes([listed([], [s('b1', false, 1), s('b2', false, 2), s('b3', false, 3)])]),
  '9.1 sandboxes: one that is ready is kept': () => boxes([listed([], [s('b1', true, 1), s('b2', true, 2)])]),
  '9.1 sandboxes: one with containers is kept': () =>
    boxes([listed([c('web', 'exited', 1, 'b1')], [s('b1', false, 1), s('b2', false, 2)])]),
  '9.1 sandboxes: one whose container goes too': () =>
    sandboxesToCollect({
      pods: [listed([c('web', 'exited', 1, 'b1')], [s('b1', false, 1), s('b2', false, 2)])],
      ...{ sourcesReady: true, isRemovable: () => false, gone: new Set([c('web', 'exited', 1, 'b1').id]) },
    }).map((x) => x.id),
  '9.1 sandboxes: of a pod that is gone': () => boxes([listed([], [s('b1', false, 1), s('b2', false, 2)])], { gone: ['u1'] }),
  '9.1 sandboxes: of a pod that is gone, one is ready': () => boxes([listed([], [s('b1', false, 1), s('b2', true, 2)])], { gone: ['u1'] }),
  '9.1 logs: of pods that are gone': () =>
    logDirsToRemove({ dirNames: ['ns_p_u1', 'ns_p_u2', 'strange'], sourcesReady: true, isRemovable: (uid) => uid === 'u1' }),
  '9.1 logs: not every source has delivered': () =>
    logDirsToRemove({ dirNames: ['ns_p_u1'], sourcesReady: false, isRemovable: () => true }),
  '9.1 link: its target is there': () => link(undefined, true),
  '9.1 link: no such container': () => link(undefined),
  '9.1 link: its container has ended': () => link('exited'),
  '9.1 link: its container runs': () => link('running'),
  '9.1 link: its container was created': () => link('created'),
  '9.1 link: names no container': () => link('running', false, 'strange.log'),
  '9.1 link: is no log': () => link(undefined, false, 'p_ns_c-abcdef.txt'),

  '1.1 of the API': () => what({ 'kubernetes.io/config.source': 'api' }),
  '1.1 of a file, of a URL': () => ['file', 'http'].map((source) => what({ 'kubernetes.io/config.source': source })),
  '1.1 without a source, as no pod of the ledger is: left alone': () => what({}),
  '1.1 a mirror': () => what({ 'kubernetes.io/config.source': 'api', 'kubernetes.io/config.mirror': '' }),
  '1.1 critical by its priority, and not quite': () =>
    [2_000_000_000, 1_999_999_999].map((priority) => what({ 'kubernetes.io/config.source': 'api' }, priority)),
});
