/** What concerns a pod as a whole: all of its containers restart (KEP-5532), and its own resources change (KEP-5419). A row for each rule. */
import type { ContainerRestartRule } from '../../../../src/machines/kube/podTable.ts';
import type { Pod, PodStatus } from '../../../../src/machines/kube/types.ts';
import { planResize } from '../../../../src/machines/pod/resources/actuation.ts';
import { NO_AMOUNTS, WHOLE_POD, writeAmounts } from '../../../../src/machines/pod/resources/amounts.ts';
import { effectiveAmounts, shownResources } from '../../../../src/machines/pod/resources/podLevel.ts';
import { containersToReset, restartsAll } from '../../../../src/machines/pod/runtime/restartAll.ts';
import type { RuntimeContainer } from '../../../../src/machines/pod/runtime/seen.ts';
import { allocatedPod, allocationOf, judgeResize, largerOf } from '../../../../src/machines/pods/resize/allocation.ts';
import { askedChanges } from '../../../../src/machines/pods/resize/counted.ts';
import { generatePodStatus } from '../../../../src/machines/pods/status/generate.ts';
import { CRI_ANNOTATIONS } from '../../../../src/machines/wire/cri.ts';
import { container, FACTS, NOW_MS, observed, pod, rc, sidecar } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const rule = (action: string, operator: string, ...values: number[]): ContainerRestartRule =>
  ({ action, exitCodes: { operator, values } }) as ContainerRestartRule;
const ALL = rule('RestartAllContainers', 'In', 88);
const asks = (name: string, ...restartPolicyRules: ContainerRestartRule[]) =>
  container(name, { restartPolicy: 'Never', restartPolicyRules });
const training = pod({
  restartPolicy: 'Never',
  initContainers: [container('i'), sidecar('s')],
  containers: [asks('web', ALL), container('other')],
});
const ended = (name: string, exitCode: number, n = 1) => rc(name, 'exited', { exitCode, n });
const all = [ended('i', 0), rc('s', 'running'), ended('web', 88), rc('other', 'running')];
const said = (status: 'True' | 'False'): PodStatus => ({ conditions: [{ type: 'AllContainersRestarting', status }] });
const restarts = (p: Pod, instances: RuntimeContainer[], old?: PodStatus) => restartsAll(p, observed(instances), old);
const told = (instances: RuntimeContainer[], old: PodStatus, p = training) => {
  const status = generatePodStatus({
    ...{ pod: p, status: observed(instances), old, failures: new Map(), facts: FACTS },
    nowWallMs: NOW_MS,
    podIsTerminal: false,
  });
  const containers = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  return {
    phase: status.phase,
    conditions: status.conditions
      ?.filter((c) => c.type === 'AllContainersRestarting' || c.type === 'Initialized')
      .map(({ type, status: s, reason }) => [type, s, reason]),
    containers: containers.map((s) => [s.name, s.restartCount, Object.keys(s.state)[0], s.lastState.terminated?.reason]),
  };
};
const first = generatePodStatus({
  ...{ pod: training, status: observed(all), failures: new Map(), facts: FACTS },
  nowWallMs: NOW_MS,
  podIsTerminal: false,
});
const cleared = generatePodStatus({
  ...{ pod: training, status: observed([]), old: first, failures: new Map(), facts: FACTS },
  nowWallMs: NOW_MS,
  podIsTerminal: false,
});

const whole = (cpu: string, memory: string, limits: Record<string, string> = {}) => ({ resources: { requests: { cpu, memory }, limits } });
const own = { resources: { requests: { cpu: '100m' }, limits: { memory: '64Mi' } } };
const grouped = (spec: object) => pod({ containers: [container('web'), container('own', own)], ...spec });
const WAS = grouped(whole('500m', '128Mi', { cpu: '1', memory: '256Mi' }));
const MORE = grouped(whole('1', '128Mi', { cpu: '2', memory: '512Mi' }));
const LESS = grouped(whole('500m', '64Mi', { cpu: '1', memory: '128Mi' }));
const running = (p: Pod) =>
  p.spec.containers.map((c) =>
    rc(c.name, 'running', { annotations: { [CRI_ANNOTATIONS.resources]: writeAmounts(effectiveAmounts(p, c)) } }),
  );
const plan = (to: Pod) => {
  const shown = shownResources(WAS).resources;
  const { steps, restart } = planResize({ pod: to, status: observed(running(WAS)), inForce: new Map(), facts: FACTS, said: shown });
  return { restart: [...restart], steps: steps.map(({ name, resource, linux, lowersTo }) => ({ name, resource, linux, lowersTo })) };
};
const judge = (before: Pod, after: Pod, fixed: string[] = []) =>
  judgeResize({ pod: after, allocation: allocationOf(before), others: [], allocatable: FACTS.allocatable, fixed });
const guaranteed = (cpu: string, memory: string) => {
  const amounts = { cpu, memory };
  return pod({ containers: [container('web', { resources: { requests: amounts, limits: amounts } })] });
};

goldenTable('pods as a whole are as recorded', 'manager/wholePods', {
  'restart: an end that a rule lists': () => restarts(training, all),
  'restart: another end': () => restarts(training, [ended('web', 1)]),
  'restart: the newest end counts': () => restarts(training, [rc('web', 'running', { n: 2 }), ended('web', 88)]),
  'restart: it began before': () => restarts(training, [], said('True')),
  'restart: it is over': () => restarts(training, [], said('False')),
  'restart: a pod without such a rule': () => restarts(pod(), [ended('web', 88)], said('True')),
  'restart: the first rule about the code is another': () =>
    restarts(pod({ containers: [asks('web', rule('Restart', 'In', 88), ALL)] }), [ended('web', 88)]),
  'restart: every code but one': () =>
    [0, 88].map((code) => restarts(pod({ containers: [asks('web', rule('RestartAllContainers', 'NotIn', 88))] }), [ended('web', code)])),
  'restart: by an init container and by a sidecar': () => [
    restarts(pod({ initContainers: [asks('i', ALL)] }), [ended('i', 88)]),
    restarts(pod({ initContainers: [sidecar('s', { restartPolicyRules: [ALL] })] }), [ended('s', 88)]),
  ],
  'reset: those that asked go last': () => containersToReset(training, observed(all)),
  'reset: every instance goes, of an unknown state too; an ephemeral container stays': () =>
    containersToReset(
      pod({ ephemeralContainers: [container('debug')], containers: [asks('web', ALL)] }),
      observed([rc('web', 'unknown', { n: 2 }), ended('web', 88), rc('debug', 'running')]),
    ),
  'status: it begins': () => told(all, {}),
  'status: some are gone': () => told([ended('web', 88)], first),
  'status: all are gone': () => told([], first),
  'status: the first one runs again': () => told([rc('i', 'running', { n: 2 })], cleared),
  'status: all run again': () =>
    told([ended('i', 0, 2), rc('s', 'running', { n: 2 }), rc('web', 'running', { n: 2 }), rc('other', 'running', { n: 2 })], cleared),

  'shown: of the pod': () => shownResources(WAS),
  'shown: of its containers; a limit that one lacks holds nobody': () =>
    shownResources(pod({ containers: [container('web'), container('own', own)] })),
  'shown: with its overhead': () => shownResources(pod({ overhead: { cpu: '50m' }, containers: [container('own', own)] })),
  'shown: nothing': () => shownResources(pod()),
  'grant: of the pod stands under the empty name': () => allocationOf(WAS),
  'grant: the pod with it': () => allocatedPod(MORE, allocationOf(WAS)).spec.resources,
  'grant: the larger request is held': () => largerOf(LESS, allocationOf(WAS)).spec.resources,
  'judge: there is room': () => judge(WAS, MORE),
  'judge: more than the node has': () => judge(WAS, grouped(whole('64', '128Mi', { cpu: '64', memory: '256Mi' }))),
  'judge: a limit of the pod is taken away': () => judge(WAS, grouped(whole('500m', '128Mi', { cpu: '1' }))),
  'judge: nothing was granted to the pod as a whole': () => judge(grouped({}), grouped(whole('64', '128Mi'))),
  'judge: cpus that are its own': () => judge(guaranteed('1', '1Gi'), guaranteed('2', '1Gi'), ['cpu', 'memory']),
  'judge: memory that is its own': () => judge(guaranteed('1', '1Gi'), guaranteed('1', '2Gi'), ['cpu', 'memory']),
  'plan: nothing changes': () => plan(WAS),
  'plan: more; who has no limit follows': () => plan(MORE),
  'plan: less': () => plan(LESS),
  'plan: what this worker has set': () =>
    planResize({ pod: MORE, status: observed([]), inForce: new Map([[WHOLE_POD, NO_AMOUNTS]]), facts: FACTS, said: null }).steps.map(
      (s) => s.resource,
    ),
  'asked: each resource for itself': () => askedChanges(guaranteed('1', '1Gi'), pod({ containers: [container('web', own)] })),
});
