/**
 * Plausible bugs of one line, spread over the managers. A replay finds each where a recording reaches it, and its words tell it:
 * the actor, the pod, the field, and both values.
 */
import type { Mutant } from '../../../sim/test/mutants/mutants.ts';

export interface Bug extends Mutant {
  /** Daemon of a simulation that reaches it. */
  readonly daemon: `seed-${number}-n${number}-${number}`;
  /** What a person knows the bug by, in the words of the first divergences. Null: the words are not enough. */
  readonly told: readonly RegExp[] | null;
}

const WORKERS = 'src/machines/pods/workers';

export const BUGS: readonly Bug[] = [
  {
    id: 'the grace of a container is a second longer',
    file: 'src/machines/pod/runtime/killOrder.ts',
    find: 'return Math.max(MIN_CONTAINER_GRACE_SECONDS, graceSeconds - Math.floor',
    replace: 'return Math.max(MIN_CONTAINER_GRACE_SECONDS, 1 + graceSeconds - Math.floor',
    daemon: 'seed-8-n1-1',
    told: [/then: cri\.call StopContainer/, /differs: timeout: then 30, now 31/],
  },
  {
    id: 'a crashed container waits three times as long each time',
    file: `${WORKERS}/container/crashBackoff.ts`,
    find: 'return advanced(Math.min(entry.delayMs * 2, input.maxMs));',
    replace: 'return advanced(Math.min(entry.delayMs * 3, input.maxMs));',
    daemon: 'seed-8-n1-2',
    told: [/waiting\.message: then "back-off 20s restarting failed container=c0 .*, now "back-off 30s/],
  },
  {
    id: 'an instance has the number of the one before it',
    file: 'src/machines/pod/runtime/runtimeStatus.ts',
    find: "(c) => (c.state === 'created' ? c.restartCount : c.restartCount + 1)",
    replace: '(c) => c.restartCount',
    daemon: 'seed-8-n1-1',
    told: [/then: cri\.call CreateContainer/, /differs: config\.metadata\.attempt: then 1, now 0/, /restartCount: then "1", now "0"/],
  },
  {
    id: 'containers that are not ready are listed as unknown',
    file: 'src/machines/pods/status/conditions.ts',
    find: "listed('unready', bad)",
    replace: "listed('unknown', bad)",
    daemon: 'seed-8-n1-1',
    told: [
      /by: +node\/pods\/status of pod/,
      /conditions\[Ready\]\.message: then "containers with unready status: .*now "containers with unknown/,
    ],
  },
  {
    id: 'a pod is Running though one of its containers was never started',
    file: 'src/machines/pods/status/phase.ts',
    find: '!isRestartedWhole(spec, statuses)) || waiting > 0)',
    replace: '!isRestartedWhole(spec, statuses)) || waiting > 1)',
    daemon: 'seed-8-n1-1',
    told: [/by: +node\/pods\/status of pod/, /differs: phase: then "Pending", now "Running"/],
  },
  {
    id: 'one failure of a probe is enough',
    file: 'src/machines/services/probes/threshold.ts',
    find: 'of.probe.failureThreshold || FAILURE_THRESHOLD',
    replace: '1 || FAILURE_THRESHOLD',
    daemon: 'seed-8-n1-1',
    // They tell that the container is not ready, and not that a probe has it so.
    told: null,
  },
  {
    id: 'a probe waits twice its period',
    file: 'src/machines/services/probes/schedule.ts',
    find: 'return Math.max(tickMs + period, nowMs);',
    replace: 'return Math.max(tickMs + 2 * period, nowMs);',
    daemon: 'seed-8-n1-1',
    told: [/by: +node\/services\/probes/, /differs: ms: then 999, now 1999/],
  },
  {
    id: 'one dead instance too many is kept',
    file: 'src/machines/reclaim/containerGc.ts',
    find: 'if (policy.maxPerPodContainer >= 0) trim(policy.maxPerPodContainer);',
    replace: 'if (policy.maxPerPodContainer >= 0) trim(policy.maxPerPodContainer + 1);',
    daemon: 'seed-8-n1-2',
    told: [/node\/reclaim\/containerGc/, /then: cri\.call RemoveContainer/, /now: +nothing/],
  },
  {
    id: 'the threshold of images is counted from the other end',
    file: 'src/machines/reclaim/imageGc/imageGc.ts',
    find: 'used >= policy.highPercent;',
    replace: 'used >= 100 - policy.highPercent;',
    daemon: 'seed-1-n1-1',
    told: [/node\/reclaim\/imageGc/, /then: cri\.call RemoveImage/, /now: +nothing/],
  },
  {
    id: 'the hosts file of a pod has another name',
    file: `${WORKERS}/config/hosts.ts`,
    find: "'# Kubernetes-managed hosts file.'",
    replace: "'# Managed hosts file.'",
    daemon: 'seed-8-n1-1',
    told: [/then: fs\.writeFile \S+\/etc-hosts/, /line 1: then "# Kubernetes-managed hosts file\.", now "# Managed hosts file\."/],
  },
  {
    id: 'names are looked up in no domain',
    file: `${WORKERS}/config/dns.ts`,
    find: "searches: ['.'], options: []",
    replace: 'searches: [], options: []',
    daemon: 'seed-8-n1-1',
    told: [/then: cri\.call RunPodSandbox/, /differs: config\.dnsConfig\.searches\[0\]: then "\.", now nothing/],
  },
  {
    id: 'a sandbox has the number of the one before it',
    file: `${WORKERS}/config/sandboxConfig.ts`,
    find: 'attempt: options.attempt }',
    replace: 'attempt: Math.max(0, options.attempt - 1) }',
    daemon: 'seed-8-n1-1',
    told: [/then: cri\.call RunPodSandbox/, /differs: config\.metadata\.attempt: then 1, now 0/],
  },
  {
    id: 'the lease is renewed too late',
    file: 'src/machines/api/leaseMachine.ts',
    find: 'const RENEW_SHARE = 0.25;',
    replace: 'const RENEW_SHARE = 0.5;',
    daemon: 'seed-1-n1-1',
    told: [/by: +node\/api\/lease in acquiring/, /differs: ms: then 10\d{3}.*, now 20\d{3}/],
  },
  {
    id: 'the back-off is told as another event',
    file: 'src/actors/pods/workers/effects.ts',
    find: 'const message = `Back-off restarting failed container',
    replace: 'const message = `Backoff restarting failed container',
    daemon: 'seed-8-n1-2',
    told: [/the event BackOff default\/p3-n1 spec\.containers\{c0\}/, /differs: message: then "Back-off .*now "Backoff/],
  },
  {
    id: 'manifests are read half as often',
    file: 'src/machines/pods/sources/fileMachine.ts',
    find: 'context.listedAtMs + context.checkFrequencyMs - facts()',
    replace: 'context.listedAtMs + 2 * context.checkFrequencyMs - facts()',
    daemon: 'seed-8-n1-1',
    told: [/by: +node\/pods\/sources\/file/, /differs: ms: then 199\d\d, now 399\d\d/],
  },
];
