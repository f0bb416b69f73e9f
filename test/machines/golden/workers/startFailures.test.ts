/**
 * What a user sees of each step of a start that fails (pod lifecycle 5.1, 5.3, 5.7, 5.8, 5.13, 10.2): how the container waits,
 * and the events; of a node in virtual time, half a minute after the failure.
 */
import { eventsView } from '../../../../src/machines/foundation/messages.ts';
import type { CriMethod } from '../../../../src/machines/wire/criCalls.ts';
import { type Fault, pod, type VirtualNode, virtualNode } from '../../../integration/virtualNode.ts';
import { goldenTable } from '../table.ts';

type Manifest = NonNullable<Parameters<typeof pod>[1]>;
const UID = 'pinned-1';
const QUIET = new Set(['Scheduled', 'Starting']);

/** As a user sees it: without what differs from run to run. */
const plainly = (text: string | undefined, h: VirtualNode): string | undefined => {
  let out = text?.replaceAll(UID, 'UID');
  for (const s of h.runtime.dump().sandboxes) out = out?.replaceAll(s.id, 'SANDBOX');
  for (const c of h.runtime.dump().containers) out = out?.replaceAll(c.id, 'CONTAINER');
  return out?.replaceAll(/\b[0-9a-f]{32,}\b/g, 'ID').replaceAll(/\d+(\.\d+)?m?s\b/g, 'TIME');
};
async function failing(o: {
  manifest?: Manifest;
  fault?: (method: CriMethod) => Fault | undefined;
  before?: (h: VirtualNode) => void;
  config?: object;
}) {
  await using h = await virtualNode(o.config === undefined ? {} : { config: o.config });
  o.before?.(h);
  if (o.fault !== undefined) h.faults.fault = o.fault;
  h.write('web', pod('web', { uid: UID, ...o.manifest }));
  await h.until('it is known', () => h.record('web') !== undefined);
  await h.advance(30_000);
  const status = h.status('web')?.status;
  const { init, main } = { init: status?.initContainerStatuses?.[0], main: status?.containerStatuses?.find((c) => c.name === 'main') };
  const state = (c: typeof main) => {
    const { waiting, terminated, running } = c?.state ?? {};
    if (waiting !== undefined) return { waiting: waiting.reason, message: plainly(waiting.message, h) };
    return running === undefined ? { terminated: terminated?.reason, exitCode: terminated?.exitCode } : 'running';
  };
  const events = (h.tree.registry.read(eventsView)?.value ?? []).filter((e) => !QUIET.has(e.reason) && e.pod !== undefined);
  return {
    phase: status?.phase,
    main: state(main),
    ...(init === undefined ? {} : { init: state(init) }),
    events: [...new Set(events.map((e) => `${e.type} ${e.reason}: ${plainly(e.message, h)}`))],
  };
}
const refused =
  (method: CriMethod, details = 'it will not', code = 13) =>
  (m: CriMethod): Fault | undefined =>
    m === method ? { kind: 'refuse', code, details } : undefined;
const container = (more: object): Manifest => ({ container: more });
const hook = (postStart: object, more: object = {}): Manifest => ({ container: { lifecycle: { postStart }, ...more } });

goldenTable('what is seen of a start that fails is as recorded', 'workers/startFailures', {
  'sandbox: not made': () => failing({ fault: refused('RunPodSandbox') }),
  'sandbox: its names are impossible': () =>
    failing({ manifest: { spec: { subdomain: 'sub', setHostnameAsFQDN: true, hostname: 'x'.repeat(60) } } }),
  'sandbox: its status is not told': () => failing({ fault: refused('PodSandboxStatus') }),
  'volumes: not there': () =>
    failing({
      manifest: {
        container: { volumeMounts: [{ name: 'v', mountPath: '/v' }] },
        spec: { volumes: [{ name: 'v', hostPath: { path: '/nowhere', type: 'Directory' } }] },
      },
    }),
  'image: a name that is none': () => failing({ manifest: container({ image: 'BusyBox:?' }) }),
  'image: the runtime does not tell whether it is there': () => failing({ fault: refused('ImageStatus') }),
  'image: not there, and never pulled': () => failing({ manifest: container({ image: 'missing:1', imagePullPolicy: 'Never' }) }),
  'image: the pull fails': () => failing({ manifest: container({ image: 'other:1' }), fault: refused('PullImage', 'no such image', 5) }),
  'image: the registry is away': () =>
    failing({ manifest: container({ image: 'other:1' }), fault: refused('PullImage', 'RegistryUnavailable: try later', 14) }),
  'image: its signature is bad': () =>
    failing({ manifest: container({ image: 'other:1' }), fault: refused('PullImage', 'SignatureValidationFailed: who is this', 2) }),
  'image: over the rate': () =>
    failing({ config: { registryPullQPS: 1, registryBurst: 0 }, manifest: container({ image: 'other:1', imagePullPolicy: 'Always' }) }),
  'configuration: runs as root and must not': () =>
    failing({ manifest: container({ securityContext: { runAsNonRoot: true, runAsUser: 0 } }) }),
  'configuration: a field that has no value': () =>
    failing({
      manifest: container({ env: [{ name: 'A', valueFrom: { resourceFieldRef: { containerName: 'gone', resource: 'limits.cpu' } } }] }),
    }),
  'container: not created': () => failing({ fault: refused('CreateContainer') }),
  'container: not started': () => failing({ fault: refused('StartContainer') }),
  'container: ends at once': () => failing({ manifest: { life: 'run=1s,exit=3' } }),
  'container: ends at once, in a Never pod': () => failing({ manifest: { life: 'run=1s,exit=3', spec: { restartPolicy: 'Never' } } }),
  'init container: not created': () => failing({ manifest: { inits: [{}] }, fault: refused('CreateContainer') }),
  'init container: fails': () => failing({ manifest: { inits: [{}], lives: { 'init-0': 'run=1s,exit=3' } } }),
  'init container: fails, in a Never pod': () =>
    failing({ manifest: { inits: [{}], lives: { 'init-0': 'run=1s,exit=3' }, spec: { restartPolicy: 'Never' } } }),
  'postStart: the command fails': () =>
    failing({ manifest: hook({ exec: { command: ['no'] } }), fault: refused('ExecSync', 'no such command', 2) }),
  'postStart: nobody listens': () =>
    failing({
      manifest: hook({ httpGet: { port: 80 } }),
      before: (h) => {
        h.probes.answer = () => 'refused';
      },
    }),
  'postStart: a port that is not there': () => failing({ manifest: hook({ httpGet: { port: 'nope' } }) }),
  'postStart: of no kind that is run': () => failing({ manifest: hook({ tcpSocket: { port: 80 } }) }),
  'network: not ready': () =>
    failing({
      before: (h) => {
        h.faults.answer = (method, value) => {
          if (method !== 'Status') return value;
          const { status } = value as { status: { conditions: { type: string }[] } };
          const conditions = status.conditions.map((c) =>
            c.type === 'NetworkReady' ? { ...c, status: false, reason: 'NetworkPluginNotReady', message: 'cni plugin not initialized' } : c,
          );
          return { ...(value as object), status: { ...status, conditions } };
        };
        h.runtime.dropStreams();
      },
    }),
});
