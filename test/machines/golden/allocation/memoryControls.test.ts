/** Swap, floor and throttle of containers (resources and volumes 1.11, 1.12; traps 72 and 73): what is told the runtime, row by row. */
import { swapProblem } from '../../../../src/boot/steps/host/hostChecks.ts';
import { judgeMemoryControl } from '../../../../src/boot/steps/host/memoryControl.ts';
import type { KubeletConfiguration } from '../../../../src/machines/config/config.ts';
import { defaultKubeletConfiguration } from '../../../../src/machines/config/defaults.ts';
import type { Container, PodSpec, ResourceRequirements } from '../../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../../src/machines/kube/types.ts';
import type { MemoryControl } from '../../../../src/machines/nodeFacts.ts';
import { planResize } from '../../../../src/machines/pod/resources/actuation.ts';
import { amountsOf, writeAmounts } from '../../../../src/machines/pod/resources/amounts.ts';
import { memoryControls } from '../../../../src/machines/pod/resources/memoryControl.ts';
import { generateContainerConfig } from '../../../../src/machines/pods/workers/config/containerConfig.ts';
import { CRI_ANNOTATIONS } from '../../../../src/machines/wire/cri.ts';
import { container, FACTS, observed, pod, rc } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const GI = 1024 ** 3;
/** A node of 4 GiB that may give pods 3, with 2 GiB of swap. */
const V2: MemoryControl = {
  cgroupVersion: 2,
  swapController: true,
  swapBytes: 2 * GI,
  limitedSwap: false,
  throttlingFactor: null,
  floors: false,
  groupOom: false,
};
const LIMITED: Partial<MemoryControl> = { limitedSwap: true };
const QOS: Partial<MemoryControl> = { swapController: false, throttlingFactor: 0.9, floors: true };
const facts = (control: Partial<MemoryControl>) => ({
  ...FACTS,
  allocatable: { ...FACTS.allocatable, memory: '3Gi' },
  memoryControl: { ...V2, ...control },
});
const memory = (request?: string, limit?: string): ResourceRequirements => ({
  ...(request === undefined ? {} : { requests: { memory: request } }),
  ...(limit === undefined ? {} : { limits: { memory: limit } }),
});
const asking = (resources: ResourceRequirements, spec: Partial<PodSpec> = {}, more: Parameters<typeof pod>[1] = {}) => {
  const web = container('web', { resources });
  return { web, pod: pod({ containers: [web], ...spec }, more) };
};
const told = (control: Partial<MemoryControl>, ...of: Parameters<typeof asking>) => {
  const { web, pod: its } = asking(...of);
  return memoryControls(its, web, facts(control));
};
const GUARANTEED: ResourceRequirements = { requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '1', memory: '1Gi' } };

const V1: Partial<MemoryControl> = { cgroupVersion: 1 };
const judged = (config: Partial<KubeletConfiguration>, there: Partial<MemoryControl>, qos = false) =>
  judgeMemoryControl(
    { config: { ...defaultKubeletConfiguration(), ...config }, gates: { enabled: (name) => qos && name === 'MemoryQoS' } },
    { ...V2, swapBytes: 0, ...there },
  );

/** A running container of the API that was made with `was` and is now granted `to`. */
const resized = (control: Partial<MemoryControl>, was: ResourceRequirements, to: ResourceRequirements) => {
  const before = container('web', { resources: was });
  const after: Container = { ...before, resources: to };
  const its: Pod = pod({ containers: [after] });
  const from = rc('web', 'running', { annotations: { [CRI_ANNOTATIONS.resources]: writeAmounts(amountsOf(before)) } });
  const { steps, inForce } = planResize({ pod: its, status: observed([from]), inForce: new Map(), facts: facts(control) });
  return { steps: steps.map((s) => [s.resource, s.linux]), noted: [...inForce.values()] };
};

goldenTable('what holds the memory of a container is as recorded', 'allocation/memoryControls', {
  '1.12 NoSwap: no limit': () => told({}, {}),
  '1.12 NoSwap: burstable': () => told({}, memory('1Gi', '2Gi')),
  '1.12 NoSwap: the kernel does not count swap': () => told({ swapController: false }, memory('1Gi', '2Gi')),
  '1.12 NoSwap, cgroup v1: as much as memory': () => told(V1, memory('1Gi', '2Gi')),
  '1.12 NoSwap, cgroup v1: of the pod as a whole': () => told(V1, {}, { resources: memory('1Gi', '2Gi') }),
  '1.12 NoSwap, cgroup v1: no limit': () => told(V1, memory('1Gi')),
  '1.12 NoSwap, cgroup v1: the kernel does not count swap': () => told({ ...V1, swapController: false }, memory('1Gi', '2Gi')),
  '1.12 LimitedSwap: its share': () => told(LIMITED, memory('1Gi', '2Gi')),
  '1.12 LimitedSwap: its share, without a limit': () => told(LIMITED, memory('1Gi')),
  '1.12 LimitedSwap: its share is rounded down': () => told(LIMITED, memory('1000001')),
  '1.12 LimitedSwap: all of the memory there is': () => told(LIMITED, memory('4Gi')),
  '1.12 LimitedSwap: more than the memory there is': () => told(LIMITED, memory('5Gi')),
  '1.12 LimitedSwap: a node without swap': () => told({ ...LIMITED, swapBytes: 0 }, memory('1Gi')),
  '1.12 LimitedSwap: Guaranteed gets none (trap 72)': () => told(LIMITED, GUARANTEED),
  '1.12 LimitedSwap: BestEffort gets none (trap 72)': () => told(LIMITED, {}),
  '1.12 LimitedSwap: who asks for no memory gets none': () => told(LIMITED, { requests: { cpu: '1' } }),
  '1.12 LimitedSwap: who asks for all that it may use gets none': () => told(LIMITED, memory('1Gi', '1Gi')),
  '1.12 LimitedSwap: a static pod gets none': () => told(LIMITED, memory('1Gi', '2Gi'), {}, { source: 'file' }),
  '1.12 LimitedSwap: a pod of a priority of the system gets none': () => told(LIMITED, memory('1Gi', '2Gi'), { priority: 2_000_000_000 }),
  '1.12 LimitedSwap: beside who gets some, another gets none': () => {
    const both = [container('web', { resources: memory('1Gi', '2Gi') }), container('api')];
    return both.map((c) => memoryControls(pod({ containers: both }), c, facts(LIMITED)));
  },
  '1.12 LimitedSwap: the kernel does not count swap': () => told({ ...LIMITED, swapController: false }, memory('1Gi')),
  '1.12 LimitedSwap, cgroup v1: as NoSwap': () => told({ ...LIMITED, ...V1 }, memory('1Gi', '2Gi')),
  '1.11 memory.high: between what it asks for and what it may use': () => told(QOS, memory('1Gi', '2Gi')),
  '1.11 memory.high: without a limit, of what pods may use': () => told(QOS, memory('1Gi')),
  '1.11 memory.high: of what its pod may use': () => told(QOS, memory('1Gi'), { resources: memory('1Gi', '2Gi') }),
  '1.11 memory.high: whole pages': () => told({ ...QOS, throttlingFactor: 0.5 }, memory('1000', '1000000')),
  '1.11 memory.high: at most of the limit': () => told({ ...QOS, throttlingFactor: 1 }, memory('1Gi', '2Gi')),
  '1.11 memory.high: not where it may use what it asks for (trap 73)': () => told(QOS, memory('1Gi', '1Gi')),
  '1.11 memory.high: not in a Guaranteed pod (trap 73)': () => told(QOS, GUARANTEED),
  '1.11 memory.high: not where it would be less than a page above (trap 73)': () => told(QOS, memory('1Gi', '1073745000')),
  '1.11 memory.high: not where it asks for more than pods may use (trap 73)': () => told(QOS, memory('4Gi')),
  '1.11 memory.high: of a limit alone': () => told(QOS, memory(undefined, '1Gi')),
  '1.11 memory.min: a Guaranteed pod': () => told(QOS, GUARANTEED),
  '1.11 memory.low: memoryReservationPolicy None keeps nothing': () => told({ ...QOS, floors: false }, memory('1Gi', '2Gi')),
  '1.11 memory.min: not where it asks for no memory': () => told(QOS, { requests: { cpu: '1' } }),
  '1.11 MemoryQoS, cgroup v1': () => told({ ...QOS, ...V1 }, memory('1Gi', '2Gi')),
  '1.11 memory.oom.group: the default': () => told({ groupOom: true, swapController: false }, {}),
  '1.11 memory.oom.group: singleProcessOOMKill': () => told({ swapController: false }, {}),
  '1.11 memory.oom.group, cgroup v1': () => told({ ...V1, groupOom: true }, {}),
  '1.11 all of it, as it is told': () => {
    const { web, pod: its } = asking(memory('1Gi', '2Gi'));
    const made = generateContainerConfig({
      pod: its,
      container: web,
      kind: 'regular',
      restartCount: 0,
      imageRef: 'sha256:abc',
      imageUser: { uid: null, username: '' },
      podIPs: [],
      facts: facts({ limitedSwap: true, throttlingFactor: 0.9, groupOom: true }),
      mounts: [],
    });
    return made.ok ? made.config.linux?.resources : made.message;
  },
  '1.11 a world that does not tell': () => {
    const { web, pod: its } = asking(memory('1Gi', '2Gi'));
    return memoryControls(its, web, FACTS);
  },
  'resize: a larger limit takes its throttle along': () => resized(QOS, memory('1Gi', '2Gi'), memory('1Gi', '3Gi')),
  'resize: a request alone changes floor and throttle': () => resized(QOS, memory('1Gi', '2Gi'), memory('1536Mi', '2Gi')),
  'resize: a throttle that is of no use any more is taken back': () => resized(QOS, memory('1Gi', '2Gi'), memory('2Gi', '2Gi')),
  'resize: a request alone changes its share of swap': () => resized(LIMITED, memory('1Gi'), memory('2Gi')),
  'resize: a request alone changes nothing under NoSwap': () => resized({}, memory('1Gi'), memory('2Gi')),
  'resize, cgroup v1: swap and memory grow together': () => resized(V1, memory('1Gi', '2Gi'), memory('1Gi', '3Gi')),
  'start: defaults': () => [judged({}, {}), judged({}, V1)],
  'start: singleProcessOOMKill: false': () => [judged({ singleProcessOOMKill: false }, {}), judged({ singleProcessOOMKill: false }, V1)],
  'start: LimitedSwap': () => [{}, V1].map((there) => judged({ memorySwap: { swapBehavior: 'LimitedSwap' } }, there)),
  'start: MemoryQoS': () => [judged({}, {}, true), judged({}, V1, true)],
  '1.9 failSwapOn: swap is off': () => swapProblem('Filename\t\t\t\tType\t\tSize\tUsed\tPriority\n'),
  '1.9 failSwapOn: a kernel without swap': () => swapProblem(''),
  '1.9 failSwapOn: swap is on': () =>
    swapProblem('Filename Type Size Used Priority\n/dev/dm-1 partition 2097148 0 -2\n/swap\\040file file 1024 0 -3\n'),
  'start: swap that is not counted': () => [judged({}, { swapBytes: GI }), judged({}, { swapBytes: GI, swapController: false })],
});
