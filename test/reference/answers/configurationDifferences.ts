/** Where this node answers otherwise than the kubelet of 1.36 on purpose, each with its reason. */
import type { Otherwise } from './configurationsKept.ts';

export interface Reason {
  kind: Otherwise['kind'];
  /** Of variants' names. */
  names: RegExp;
  reason: string;
}

/** The reference runs with these, and this node refuses them. What the reference refuses later in its start needs no entry. */
const REFUSED_HERE: readonly Omit<Reason, 'kind'>[] = [
  {
    names: /^plain\/flags --node-labels=node-role/,
    reason: 'the recorded reference is built from the sources of OpenShift, which allow it; the kubelet of Kubernetes refuses it',
  },
  { names: /^minikube\/cut (?:11|18)$/, reason: 'an empty threshold, and a socket without a path: the reference ends later in its start' },
  { names: /^plain\/podLogsDir: \/$/, reason: 'folders of gone pods are removed from it: the root of the host is no place for that' },
];

/** The reference refuses these, and this node runs with them: nothing that ran there can be hurt. */
const REFUSED_THERE: readonly Omit<Reason, 'kind'>[] = [
  { names: /%YAML 1\.2$/, reason: 'the version of YAML is taken for a remark' },
  { names: /a tab last$/, reason: 'a tab on a line of its own is space' },
  { names: /(?:value|cut) \d+$|: null$|: $/, reason: 'a duration of null is unset, as every other field is' },
  { names: /key twice|maxPods: 20\nmaxPods: 30/, reason: 'the last of equal keys counts, in drop-ins too, with a warning' },
  { names: /drop-in maxParallelImagePulls/, reason: 'several pulls at once were asked for, and nobody asked to serialise them' },
  { names: /registerWithTaints: \[null\]|timeAdded/, reason: 'a taint without effect is left out standalone; timeAdded is not read' },
  { names: /enforceNodeAllocatable: \[pods, pods\]/, reason: 'twice is as good as once' },
  { names: /GracefulNodeShutdown: false\}$/, reason: 'the recorded reference panics' },
  { names: /RotateKubeletServerCertificate: false/, reason: 'without a cluster no certificate is asked for' },
  { names: /flags --(?!log-json|runonce|iptables)/, reason: 'flags of older releases have no effect, with a warning' },
  { names: /flags --iptables-masquerade-bit/, reason: 'the flag still has its field' },
  { names: /runonce|runOnce: true/, reason: 'this node has the mode' },
  { names: /infoBufferSize|split-stream/, reason: 'each line is written at once, so it has no effect' },
  { names: /reservedSystemCPUs: " 0"/, reason: 'spaces in a list of processors are harmless' },
  { names: /maxOpenFiles/, reason: 'there is no limit as high' },
];

const OTHER_VALUES: readonly Omit<Reason, 'kind'>[] = [
  { names: /without a main file|an empty name of the main file/, reason: 'the closed defaults hold without a configuration file too' },
  { names: /Endpoint|image-service-endpoint|^openshift$/, reason: 'a bare path is shown as the URL that it means' },
  {
    names: /AllBeta: false|KubeletCrashLoopBackOffMax: false|KubeletEnsureSecretPulledImages|NeverVerifyPreloadedImages|idsPerPod: 65536/,
    reason: 'a default is filled in where it is used, so /configz does not show it',
  },
  { names: /--register-with-taints=.*--register-with-taints/, reason: 'taints of repeated flags add up' },
  { names: /--seccomp-default/, reason: 'the flag shows in the field' },
  { names: /flushFrequency/, reason: 'a number of nanoseconds is shown as a duration' },
  { names: /splitStream/, reason: 'the field is shown as written; it has no effect' },
  { names: /maxOpenFiles/, reason: 'numbers beyond 2^53 are not told apart' },
  { names: /staticPodURL/, reason: 'what may be a password is masked' },
];

export const REASONS: readonly Reason[] = [
  ...REFUSED_HERE.map((r) => ({ ...r, kind: 'refused here' as const })),
  ...REFUSED_THERE.map((r) => ({ ...r, kind: 'refused there' as const })),
  ...OTHER_VALUES.map((r) => ({ ...r, kind: 'other values' as const })),
];
