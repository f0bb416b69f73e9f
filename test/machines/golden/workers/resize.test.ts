/**
 * Changes of cpu and memory (pod lifecycle 6.6, resources and volumes 1.11): whether one is granted, and what of what was
 * granted is told the runtime, in which order, or takes a restart; what a status shows of it. A row for each rule.
 */
import { describe, expect, it } from 'vitest';
import type { Container, PodSpec } from '../../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../../src/machines/kube/types.ts';
import { planResize } from '../../../../src/machines/pod/resources/actuation.ts';
import { type Amounts, amountsOf, withAmounts, writeAmounts } from '../../../../src/machines/pod/resources/amounts.ts';
import { actualResources, type InForce } from '../../../../src/machines/pod/resources/reported.ts';
import type { RuntimeContainer } from '../../../../src/machines/pod/runtime/seen.ts';
import { allocationOf, judgeResize, largerOf, resizeOrder } from '../../../../src/machines/pods/resize/allocation.ts';
import { computePodActions } from '../../../../src/machines/pods/workers/actions/podActions.ts';
import { CRI_ANNOTATIONS } from '../../../../src/machines/wire/cri.ts';
import { container, FACTS, observed, pod, rc, sidecar } from '../../pods/fixtures.ts';
import { deciding, goldenTable } from '../table.ts';

const amounts = (cpu: string, memory: string, cpuLimit: string, memoryLimit: string): Amounts => ({
  requests: { cpu, memory },
  limits: { cpu: cpuLimit, memory: memoryLimit },
});
const WAS = amounts('500m', '128Mi', '1', '256Mi');
const of = (name: string, a: Partial<Amounts>, more: Partial<Container> = {}): Container =>
  container(name, { resources: { ...a }, ...more });
const asking = (spec: Partial<PodSpec>): Pod => pod(spec);
const policy = (...pairs: string[]): Pick<Container, 'resizePolicy'> => ({
  resizePolicy: pairs.map((p) => ({ resourceName: p.split(' ')[0] ?? '', restartPolicy: p.split(' ')[1] ?? '' })),
});

/** [granted so far, asked for, others' requests of cpu]. */
const grant = (before: Pod, after: Pod, others: readonly string[] = []) => ({
  kind: 'grant' as const,
  before,
  after,
  others: others.map((cpu, i) => {
    const other = asking({ containers: [of('c', { requests: { cpu } })] });
    return { ...other, metadata: { ...other.metadata, name: `o${i}`, uid: `o${i}` } };
  }),
});
const one = (a: Partial<Amounts>, more: Partial<Container> = {}): Pod => asking({ containers: [of('web', a, more)] });

const GRANTS: Record<string, ReturnType<typeof grant>> = {
  'grant: nothing changes': grant(one(WAS), one(amounts('0.5', '131072Ki', '1000m', '256Mi'))),
  'grant: more of both, and there is room': grant(one(WAS), one(amounts('1', '1Gi', '2', '2Gi')), ['500m']),
  'grant: exactly what is left': grant(one(WAS), one(amounts('1500m', '128Mi', '2', '256Mi')), ['500m']),
  'grant: more than is left': grant(one(WAS), one(amounts('1501m', '128Mi', '2', '256Mi')), ['500m']),
  'grant: more than the node has': grant(one(WAS), one(amounts('2500m', '128Mi', '3', '256Mi'))),
  'grant: more memory than the node has': grant(one(WAS), one(amounts('500m', '5Gi', '1', '5Gi'))),
  'grant: less, on a node that is over-committed': grant(one(WAS), one(amounts('400m', '128Mi', '1', '256Mi')), ['2']),
  'grant: limits alone weigh nothing': grant(one(WAS), one(amounts('500m', '128Mi', '64', '64Gi')), ['1500m']),
  'grant: less cpu and more memory than there is': grant(one(WAS), one(amounts('100m', '4097Mi', '1', '8Gi'))),
  'grant: a limit where there was none': grant(
    one({ requests: { cpu: '1' }, limits: {} }),
    one({ requests: { cpu: '1' }, limits: { cpu: '2' } }),
  ),
  'grant: a limit is taken away': grant(one(WAS), one({ requests: WAS.requests, limits: { cpu: '1' } })),
  'grant: a request is taken away': grant(one(WAS), one({ requests: { cpu: '500m' }, limits: WAS.limits })),
  'grant: from Burstable to Guaranteed': grant(one(WAS), one(amounts('1', '256Mi', '1', '256Mi'))),
  'grant: from BestEffort to Burstable': grant(one({}), one({ requests: { cpu: '1' } })),
  'grant: Guaranteed stays Guaranteed': grant(one(amounts('1', '1Gi', '1', '1Gi')), one(amounts('2', '2Gi', '2', '2Gi'))),
  'grant: an init container that does not restart': grant(
    asking({ initContainers: [of('init', { requests: { cpu: '1' } })], containers: [of('web', WAS)] }),
    asking({ initContainers: [of('init', { requests: { cpu: '500m' } })], containers: [of('web', WAS)] }),
  ),
  'grant: a sidecar': grant(
    asking({ initContainers: [sidecar('side', { resources: { requests: { cpu: '1' } } })], containers: [of('web', WAS)] }),
    asking({ initContainers: [sidecar('side', { resources: { requests: { cpu: '1200m' } } })], containers: [of('web', WAS)] }),
  ),
};

/** Running with what its annotation says. */
const runs = (name: string, a: Amounts | null, more: Partial<RuntimeContainer> = {}): RuntimeContainer =>
  rc(name, 'running', { ...more, annotations: a === null ? {} : { [CRI_ANNOTATIONS.resources]: writeAmounts(a) } });
interface Plan {
  pod: Pod;
  held: RuntimeContainer[];
  inForce?: InForce;
  facts?: Partial<typeof FACTS>;
}
const web = (a: Amounts, more: Partial<Container> = {}): Pod => asking({ containers: [of('web', a, more)] });

const PLANS: Record<string, Plan> = {
  'plan: as it was made': { pod: web(WAS), held: [runs('web', WAS)] },
  'plan: both grow': { pod: web(amounts('1', '256Mi', '2', '512Mi')), held: [runs('web', WAS)] },
  'plan: both shrink': { pod: web(amounts('250m', '64Mi', '500m', '128Mi')), held: [runs('web', WAS)] },
  'plan: a request of cpu alone': { pod: web(amounts('600m', '128Mi', '1', '256Mi')), held: [runs('web', WAS)] },
  'plan: a request of memory alone is only noted': { pod: web(amounts('500m', '200Mi', '1', '256Mi')), held: [runs('web', WAS)] },
  'plan: memory, whose change takes a restart': {
    pod: web(amounts('500m', '128Mi', '1', '512Mi'), policy('memory RestartContainer')),
    held: [runs('web', WAS)],
  },
  'plan: cpu, where only memory takes a restart': {
    pod: web(amounts('500m', '128Mi', '2', '256Mi'), policy('cpu NotRequired', 'memory RestartContainer')),
    held: [runs('web', WAS)],
  },
  'plan: both, where one takes a restart: nothing is told': {
    pod: web(amounts('500m', '128Mi', '2', '512Mi'), policy('cpu RestartContainer')),
    held: [runs('web', WAS)],
  },
  'plan: a container of another agent has what is granted at first sight': {
    pod: web(WAS),
    held: [runs('web', null)],
  },
  'plan: a container of another agent is told what the runtime says that it has not': {
    pod: web(WAS),
    held: [
      runs('web', null, {
        resources: { cpuShares: 102, cpuPeriod: 100_000, cpuQuota: 100_000, memoryLimitInBytes: 256 * 1024 ** 2 },
      }),
    ],
  },
  'plan: a container of another agent does not start anew for the numbers of a runtime': {
    pod: web(WAS, policy('cpu RestartContainer')),
    held: [
      runs('web', null, {
        resources: { cpuShares: 102, cpuPeriod: 100_000, cpuQuota: 100_000, memoryLimitInBytes: 256 * 1024 ** 2 },
      }),
    ],
  },
  'plan: a container of another agent starts anew for a change after that': {
    pod: web(WAS, policy('cpu RestartContainer')),
    held: [runs('web', null)],
    inForce: new Map([['web-1', amounts('100m', '128Mi', '1', '256Mi')]]),
  },
  'plan: one that does not run is left alone': {
    pod: web(amounts('1', '1Gi', '2', '2Gi')),
    held: [rc('web', 'exited', { annotations: { [CRI_ANNOTATIONS.resources]: writeAmounts(WAS) } })],
  },
  'plan: what this worker has set counts, not how it was made': {
    pod: web(amounts('1', '256Mi', '2', '512Mi')),
    held: [runs('web', WAS)],
    inForce: new Map([['web-1', amounts('1', '256Mi', '2', '512Mi')]]),
  },
  'plan: what the runtime says to be in force is only noted': {
    pod: web(amounts('1', '256Mi', '2', '512Mi')),
    held: [
      runs('web', WAS, {
        resources: { cpuShares: 1024, cpuPeriod: 100_000, cpuQuota: 200_000, memoryLimitInBytes: 512 * 1024 ** 2 },
      }),
    ],
  },
  // Found by seed 3800152 with 8 pods: what an inspection said that had begun before was taken for what is in force.
  'plan: what this worker has set counts, not what the runtime said before': {
    pod: web(WAS),
    held: [
      runs('web', WAS, {
        resources: { cpuShares: 512, cpuPeriod: 100_000, cpuQuota: 100_000, memoryLimitInBytes: 256 * 1024 ** 2 },
      }),
    ],
    inForce: new Map([['web-1', amounts('250m', '64Mi', '500m', '128Mi')]]),
  },
  'plan: what was changed before the agent began anew, and is wanted as it was made, is changed back': {
    pod: web(WAS),
    held: [
      runs('web', WAS, {
        resources: { cpuShares: 102, cpuPeriod: 100_000, cpuQuota: 50_000, memoryLimitInBytes: 128 * 1024 ** 2 },
      }),
    ],
  },
  'plan: what starts anew when it changes is not started anew for the numbers of a runtime': {
    pod: web(WAS, policy('cpu RestartContainer')),
    held: [
      runs('web', WAS, {
        resources: { cpuShares: 510, cpuPeriod: 100_000, cpuQuota: 100_000, memoryLimitInBytes: 256 * 1024 ** 2 },
      }),
    ],
  },
  'plan: a static pod': {
    pod: pod({ containers: [of('web', amounts('1', '1Gi', '2', '2Gi'))] }, { source: 'file' }),
    held: [runs('web', WAS)],
  },
  'plan: without quotas': { pod: web(amounts('1', '128Mi', '2', '256Mi')), held: [runs('web', WAS)], facts: { cpuCFSQuota: false } },
  'plan: memory before cpu, and what shrinks first': {
    pod: asking({
      initContainers: [sidecar('side', { resources: { ...amounts('100m', '64Mi', '1', '64Mi') } })],
      containers: [of('grows', amounts('500m', '128Mi', '2', '512Mi')), of('shrinks', amounts('500m', '64Mi', '750m', '128Mi'))],
    }),
    held: [runs('side', WAS), runs('grows', WAS), runs('shrinks', WAS)],
  },
  'plan: an init container that does not restart': {
    pod: asking({ initContainers: [of('init', amounts('1', '1Gi', '2', '2Gi'))], containers: [of('web', WAS)] }),
    held: [runs('init', WAS)],
  },
  'plan: a sidecar that takes a restart': {
    pod: asking({
      initContainers: [sidecar('side', { resources: { ...amounts('1', '128Mi', '1', '256Mi') }, ...policy('cpu RestartContainer') })],
      containers: [of('web', WAS)],
    }),
    held: [runs('side', WAS), runs('web', WAS)],
  },
  'plan: a pod that never restarts starts anew all the same': {
    pod: asking({ restartPolicy: 'Never', containers: [of('web', amounts('1', '128Mi', '1', '256Mi'), policy('cpu RestartContainer'))] }),
    held: [runs('web', WAS)],
  },
};

const SHOWN: Record<string, { asked: Amounts; from: RuntimeContainer; inForce?: InForce }> = {
  'shown: in the words it was asked for': { asked: WAS, from: runs('web', WAS) },
  'shown: what is not in force yet as it was': { asked: amounts('2', '1Gi', '2', '1Gi'), from: runs('web', WAS) },
  'shown: what was set since': { asked: WAS, from: runs('web', WAS), inForce: new Map([['web-1', amounts('1', '1Gi', '1', '1Gi')]]) },
  'shown: a runtime that agrees': {
    asked: WAS,
    from: runs('web', WAS, { resources: { cpuShares: 512, cpuPeriod: 100_000, cpuQuota: 100_000, memoryLimitInBytes: 256 * 1024 ** 2 } }),
  },
  'shown: a runtime that says otherwise': {
    asked: WAS,
    from: runs('web', WAS, { resources: { cpuShares: 100, cpuPeriod: 100_000, cpuQuota: 50_000, memoryLimitInBytes: 1024 ** 2 } }),
  },
  'shown: the least shares there are say nothing of a request': {
    asked: amounts('1m', '128Mi', '1', '256Mi'),
    from: runs('web', amounts('1m', '128Mi', '1', '256Mi'), { resources: { cpuShares: 2 } }),
  },
  'shown: of a container of which nothing is known what is asked for': { asked: WAS, from: runs('web', null) },
};

goldenTable('changes of resources are decided as recorded', 'workers/resize', {
  ...deciding(GRANTS, ({ before, after, others }) => {
    const { allocatable } = FACTS;
    return judgeResize({ pod: after, allocation: allocationOf(before), others, allocatable });
  }),
  ...deciding(PLANS, ({ pod: asked, held, inForce = new Map(), facts = {} }) => {
    const status = observed(held.map((c) => ({ ...c, hash: '' })));
    const plan = planResize({ pod: asked, status, inForce, facts: { ...FACTS, ...facts } });
    const noted = [...plan.inForce].filter(([id, a]) => inForce.get(id) !== a);
    return { restart: [...plan.restart], steps: plan.steps, noted };
  }),
  ...deciding(SHOWN, ({ asked, from, inForce = new Map() }) => actualResources(of('web', asked), from, inForce)),
});

describe('beside the table', () => {
  it('a restart for new resources is a kill and a start, whatever the policy of the pod', async () => {
    const { hashNameAndImage } = await import('../../../../src/machines/pod/runtime/containerHash.ts');
    const asked = asking({ restartPolicy: 'Never', containers: [of('web', WAS), of('other', WAS)] });
    const status = observed(asked.spec.containers.map((c) => rc(c.name, 'running', { hash: hashNameAndImage(c) })));
    const actions = computePodActions({ pod: asked, status, resizeRestarts: new Set(['web']) });
    expect(actions).toMatchObject({ killPod: false, containersToStart: ['web'] });
    expect(actions.containersToKill).toEqual([
      { id: 'web-1', name: 'web', message: 'Container web resize requires restart', reason: 'definitionChanged' },
    ]);
  });
  it('what a pod holds until a change is in force is the larger of both, container by container', () => {
    const before = asking({ containers: [of('a', amounts('2', '1Gi', '2', '1Gi')), of('b', amounts('1', '2Gi', '1', '2Gi'))] });
    const after = asking({ containers: [of('a', amounts('1', '2Gi', '1', '2Gi')), of('b', amounts('1', '1Gi', '1', '1Gi'))] });
    expect(largerOf(after, allocationOf(before)).spec.containers.map((c) => c.resources?.requests)).toEqual([
      { cpu: '2', memory: '2Gi' },
      { cpu: '1', memory: '2Gi' },
    ]);
  });
  it('those that wait are tried by priority, class, and how long they have waited', () => {
    const waiting = (name: string, a: Partial<Amounts>, priority: number, sinceMonoMs: number) => {
      const made = asking({ containers: [of('c', a)], priority });
      return { pod: { ...made, metadata: { ...made.metadata, name } }, sinceMonoMs };
    };
    const list = [
      waiting('late', { requests: { cpu: '1' } }, 0, 2),
      waiting('early', { requests: { cpu: '1' } }, 0, 1),
      waiting('guaranteed', amounts('1', '1Gi', '1', '1Gi'), 0, 3),
      waiting('first', { requests: { cpu: '1' } }, 100, 4),
    ];
    expect(list.sort(resizeOrder).map((w) => w.pod.metadata.name)).toEqual(['first', 'guaranteed', 'early', 'late']);
  });
  it('other resources of a container stay as they are', () => {
    const was = of('c', { requests: { cpu: '1', 'ephemeral-storage': '1Gi' } as Amounts['requests'], limits: {} });
    expect(withAmounts(was, amounts('2', '1Gi', '2', '1Gi')).resources).toEqual({
      requests: { cpu: '2', memory: '1Gi', 'ephemeral-storage': '1Gi' },
      limits: { cpu: '2', memory: '1Gi' },
    });
    expect(amountsOf(was)).toEqual({ requests: { cpu: '1' }, limits: {} });
  });
});
