/** Pods of every fate, for a look at how two node agents tell of the same thing. */
import type { Container, PodSpec } from '../../src/machines/kube/podTable.ts';
import { sh, steady } from '../e2e/manifests.ts';
import { SHAPES } from './shapes.ts';

const STAY = 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done';
const ABSENT = 'actorlet.test/nothing:1';
const exec = (command: string, more: object = {}) => ({ exec: { command: [command] }, periodSeconds: 1, ...more });
const never = (...containers: Container[]) => ({ restartPolicy: 'Never', containers }) as const;
const resources = { requests: { cpu: '20m', memory: '16Mi' }, limits: { memory: '64Mi', cpu: '1' } };
/** Doubles a text until the memory is used up. */
const GREEDY = 'x=a; while :; do x=$x$x; done';

/** By name. `settings` is a config map with a key `value`; the others do not exist. */
export const PODS: Readonly<Record<string, Partial<PodSpec> & { containers: Container[] }>> = {
  ...SHAPES,
  plain: { containers: [steady()] },
  full: {
    initContainers: [sh('first', 'echo first'), { ...sh('side', STAY), restartPolicy: 'Always' }],
    containers: [
      sh('main', STAY, {
        ...{ readinessProbe: exec('true'), livenessProbe: exec('true'), startupProbe: exec('true'), resources },
        volumeMounts: ['settings', 'scratch'].map((name) => ({ name, mountPath: `/${name}` })),
      }),
    ],
    volumes: [
      { name: 'settings', configMap: { name: 'settings' } },
      { name: 'scratch', emptyDir: {} },
    ],
  },
  host: { hostNetwork: true, containers: [steady()] },
  done: never(sh('main', 'echo done')),
  failed: never(sh('main', 'echo failed; exit 3')),
  message: never(sh('main', 'echo hello > /dev/termination-log')),
  greedy: never(sh('main', GREEDY, { resources: { limits: { memory: '16Mi' } } })),
  crash: { containers: [sh('main', 'exit 1')] },
  absent: { containers: [{ ...steady(), image: ABSENT, imagePullPolicy: 'IfNotPresent' }] },
  unpulled: { containers: [{ ...steady(), image: ABSENT, imagePullPolicy: 'Never' }] },
  misnamed: { containers: [{ ...steady(), image: 'UPPER//bad' }] },
  'no-command': { containers: [{ ...steady(), command: ['/nothing'] }] },
  'no-secret': { containers: [sh('main', STAY, { env: [{ name: 'X', valueFrom: { secretKeyRef: { name: 'none', key: 'x' } } }] })] },
  'no-volume': {
    containers: [sh('main', STAY, { volumeMounts: [{ name: 'none', mountPath: '/none' }] })],
    volumes: [{ name: 'none', configMap: { name: 'none' } }],
  },
  'init-fails': { ...never(steady()), initContainers: [sh('first', 'exit 2')] },
  'init-crashes': { initContainers: [sh('first', 'exit 2')], containers: [steady()] },
  unready: { containers: [sh('main', STAY, { readinessProbe: exec('false', { failureThreshold: 1 }) })] },
  unlive: { containers: [sh('main', STAY, { livenessProbe: exec('false', { failureThreshold: 1 }) })] },
  deadline: { activeDeadlineSeconds: 10, containers: [steady()] },
  hook: { containers: [sh('main', STAY, { lifecycle: { postStart: { exec: { command: ['false'] } } } })] },
  'non-root': { securityContext: { runAsNonRoot: true }, containers: [steady()] },
  port: { containers: [sh('main', STAY, { ports: [{ containerPort: 80, hostPort: 18_999 }] })] },
  two: { restartPolicy: 'OnFailure', containers: [sh('one', 'exit 0'), steady('two')] },
  gated: { readinessGates: [{ conditionType: 'lab.example/x' }], containers: [steady()] },
  users: { hostUsers: false, containers: [steady()] },
  sysctl: { securityContext: { sysctls: [{ name: 'kernel.msgmax', value: '70000' }] }, containers: [steady()] },
  armour: { securityContext: { appArmorProfile: { type: 'RuntimeDefault' } }, containers: [steady()] },
};
