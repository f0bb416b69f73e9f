/** Plausible bugs of one line in this tree. An observer that has one names where it is at odds with the kubelet. */
import type { Mutant } from '../../../../packages/sim/test/mutants/mutants.ts';
import type { Container, PodSpec } from '../../../../src/machines/kube/podTable.ts';
import { sh, steady } from '../../../e2e/manifests.ts';
import { STAY } from '../../cluster.ts';

export interface Bug extends Mutant {
  /** In the words of {@link wordsOf}. */
  named: RegExp;
}

const STATUS = 'src/machines/pods/status';
const WAITS = { name: 'settings', configMap: { name: 'settings', items: [{ key: 'none', path: 'none' }] } };

/** By name; what the bugs concern, and nothing else. */
export const PODS: Readonly<Record<string, Partial<PodSpec> & { containers: Container[] }>> = {
  plain: { containers: [steady()] },
  crash: { containers: [sh('main', 'exit 1')] },
  unready: { containers: [sh('main', STAY, { readinessProbe: { exec: { command: ['false'] }, periodSeconds: 1, failureThreshold: 1 } })] },
  half: { containers: [steady(), { ...steady('other'), image: 'actorlet.test/nothing:1', imagePullPolicy: 'Never' }] },
  two: { restartPolicy: 'OnFailure', containers: [sh('one', 'exit 0'), steady('two')] },
  gated: { readinessGates: [{ conditionType: 'lab.example/x' }], containers: [steady()] },
  key: { containers: [sh('main', STAY, { volumeMounts: [{ name: 'settings', mountPath: '/x' }] })], volumes: [WAITS] },
  message: { restartPolicy: 'Never', containers: [sh('main', 'echo hello > /dev/termination-log'), steady('two')] },
  greedy: {
    restartPolicy: 'Never',
    containers: [sh('main', 'x=a; while :; do x=$x$x; done', { resources: { limits: { memory: '16Mi' } } }), steady('two')],
  },
};
/** As a static pod. */
export const STATIC: Readonly<Record<string, { containers: Container[] }>> = { fixed: { containers: [steady()] } };

export const BUGS: readonly Bug[] = [
  {
    id: 'restarts are counted from one',
    file: `${STATUS}/containers.ts`,
    find: '    restartCount: from.restartCount,',
    replace: '    restartCount: from.restartCount + 1,',
    named: /^differs PodStatus default\/\w+ .*restartCount is \d+, not \d+/,
  },
  {
    id: 'containers that are not ready are listed as unknown',
    file: `${STATUS}/conditions.ts`,
    find: "listed('unready', bad)",
    replace: "listed('unknown', bad)",
    named: /^differs PodStatus default\/\w+ .*containers with unready status: \[main\], not containers with unknown/,
  },
  {
    id: 'a pod is Running though one of its containers was never started',
    file: `${STATUS}/phase.ts`,
    find: '!isRestartedWhole(spec, statuses)) || waiting > 0)',
    replace: '!isRestartedWhole(spec, statuses)) || waiting > 1)',
    named: /^differs PodStatus default\/half .*status\.phase is Pending, not Running/,
  },
  {
    id: 'a container that ended well is started again OnFailure',
    file: 'src/machines/pod/runtime/shouldRestart.ts',
    find: "(policy === 'OnFailure' && exitCode !== 0)",
    replace: "policy === 'OnFailure'",
    named: /^missing CreateContainer default\/two made container one/,
  },
  {
    id: 'readiness gates are not asked',
    file: `${STATUS}/conditions.ts`,
    find: "  if (containers.status !== 'True') return containers;",
    replace: '  return containers;',
    named: /^differs PodStatus default\/gated .*conditions\[Ready\]\.status is False, not True/,
  },
  {
    id: 'no sandbox is ready',
    file: `${STATUS}/generate.ts`,
    find: 'const sandboxReady = !checkSandbox(pod, input.status).changed;',
    replace: 'const sandboxReady = checkSandbox(pod, input.status).changed && false;',
    named: /^differs PodStatus default\/\w+ .*PodReadyToStartContainers\]\.status is True, not False/,
  },
  {
    id: 'keys of a config map that are absent do not matter',
    file: 'src/machines/services/volumes/payload.ts',
    find: '    else if (!source.optional) {',
    replace: '    else if (source.optional === null) {',
    named: /^missing Folder default\/key made the folder of volume kubernetes.io~configmap/,
  },
  {
    id: 'a static pod without a namespace is of kube-system',
    file: 'src/machines/pods/sources/decode.ts',
    find: "metadata.namespace = metadata.namespace || 'default';",
    replace: "metadata.namespace = metadata.namespace || 'kube-system';",
    named: /^\w+ \w+ (?:default|kube-system)\/fixed-\w+ /,
  },
  {
    id: 'the last words of a container are not shown',
    file: `${STATUS}/containers.ts`,
    find: "...(from.message === '' ? {} : { message: from.message }),",
    replace: '',
    named: /^differs PodStatus default\/message .*terminated\.message is hello\s*, not absent/,
  },
  {
    id: 'a container that had too much memory ended with an error',
    file: `${STATUS}/containers.ts`,
    find: "reason: from.reason || (from.exitCode === 0 ? 'Completed' : 'Error'),",
    replace: "reason: from.exitCode === 0 ? 'Completed' : 'Error',",
    named: /^differs PodStatus default\/greedy .*terminated\.reason is OOMKilled, not Error/,
  },
];
