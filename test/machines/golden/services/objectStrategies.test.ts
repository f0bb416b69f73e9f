/**
 * Secrets and config maps that pods name (resources and volumes 9): what each strategy asks the API server for, when, and what
 * whoever asks is told; and which objects a pod names. A row is a little story, told step by step.
 */
import { type AnyActorLogic, createActor, fromCallback, setup } from 'xstate';
import { type ObjectIo, objectLogic } from '../../../../src/actors/services/objects/objects.ts';
import type { KubeObject } from '../../../../src/machines/kube/request.ts';
import type { Pod } from '../../../../src/machines/kube/types.ts';
import type { Volume } from '../../../../src/machines/kube/volumeTable.ts';
import { type ObjectRef, podReferences } from '../../../../src/machines/pod/volumes/references.ts';
import type { Fetched, ObjectReply, ObjectStrategy } from '../../../../src/machines/services/objects/objectMachine.ts';
import { virtualTime } from '../../../integration/virtualTime.ts';
import { container, pod } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const REF: ObjectRef = { kind: 'secret', namespace: 'ns', name: 's' };
const SECOND = 1_000;
const object = (version: string, more: object = {}): KubeObject => ({
  metadata: { name: 's', namespace: 'ns', uid: 'u', resourceVersion: version },
  data: { k: btoa(`v${version}`) },
  ...more,
});
const found = (version: string, more: object = {}): Fetched => ({ ok: true, object: object(version, more) });
const failed = (code: number, message: string): Fetched => ({ ok: false, failure: { code, reason: '', message, outcome: 'failed' } });
const NOT_FOUND = failed(404, 'secrets "s" not found');

type Step =
  | { do: 'ask' }
  /** The watch shows it, or that it is not there. */
  | { do: 'see'; object: KubeObject | null }
  /** Another pod names it. */
  | { do: 'renew' }
  | { do: 'wait'; ms: number };
const ask: Step = { do: 'ask' };
const renew: Step = { do: 'renew' };
const see = (version: string | null, more: object = {}): Step => ({ do: 'see', object: version === null ? null : object(version, more) });
const wait = (ms: number): Step => ({ do: 'wait', ms });

/** Everything that is asked of the API server and told to who asks, each with its second. */
const story =
  (strategy: ObjectStrategy, answers: Fetched[], ...steps: Step[]) =>
  async () => {
    const time = virtualTime();
    const out: string[] = [];
    const say = (what: string) => out.push(`${time.clock.monoMs() / SECOND} s: ${what}`);
    let seen: (o: KubeObject | null) => void = () => {};
    const logic: AnyActorLogic = fromCallback(() => {
      say('watched');
      return () => void say('watched no more');
    });
    const left = [...answers];
    const io: ObjectIo = {
      watch: (_, tell) => {
        seen = tell;
        return { logic, input: undefined };
      },
      fetch: async (_, { fromCache }) => {
        say(fromCache ? 'asked for, from the cache' : 'asked for');
        return left.shift() ?? failed(0, 'away');
      },
    };
    const reply = ({ result: r }: ObjectReply): void => {
      const value = r.kind === 'found' ? new TextDecoder().decode(r.value.data.k as Uint8Array) : (r.message ?? '');
      say(`told ${r.kind}${value === '' ? '' : ` ${value}`}`);
    };
    const parent = setup({ actors: { object: objectLogic(io, reply, () => ({ ttlMs: 60_000 })) } }).createMachine({
      invoke: { id: 'object', src: 'object', input: { ref: REF, strategy } },
      on: { 'object.changed': { actions: () => void say('changed') } },
    });
    const root = createActor(parent, {
      clock: time.clock,
    });
    root.start();
    const actor = root.getSnapshot().children.object;
    for (const [ask, step] of steps.entries()) {
      if (step.do === 'ask') actor?.send({ type: 'object.ask', ask });
      else if (step.do === 'see') seen(step.object);
      else if (step.do === 'renew') actor?.send({ type: 'object.renew' });
      await time.advance(step.do === 'wait' ? step.ms : 0);
    }
    root.stop();
    return out.filter((line, i) => !(i === out.length - 1 && line.endsWith('watched no more')));
  };
const IMMUTABLE = { immutable: true };

const names = (p: Pod) => () => [...podReferences(p).keys()];
const mounted = (...volumes: object[]): Pod =>
  pod({
    containers: [container('web', { volumeMounts: volumes.map((_, i) => ({ name: `v${i}`, mountPath: `/v${i}` })) })],
    volumes: volumes.map((v, i) => ({ name: `v${i}`, ...v }) as Volume),
  });
const ENV = container('web', {
  envFrom: [{ configMapRef: { name: 'all' } }, { secretRef: { name: 'all' } }],
  env: [
    { name: 'A', valueFrom: { configMapKeyRef: { name: 'one', key: 'k' } } },
    { name: 'B', valueFrom: { secretKeyRef: { name: 'one', key: 'k' } } },
    { name: 'C', valueFrom: { secretKeyRef: { name: 'one', key: 'other' } } },
  ],
});

goldenTable('what is known of objects is as recorded', 'services/objectStrategies', {
  'Watch: what was seen is told': story('Watch', [], see('5'), ask, see('6'), ask),
  'Watch: who asks too early is told when it is seen': story('Watch', [], ask, wait(500), see('5')),
  'Watch: nobody waits longer than a second for the first list': story('Watch', [], ask, wait(2 * SECOND), see('5'), ask),
  'Watch: it is not there': story('Watch', [], see(null), ask),
  'Watch: it goes and comes again': story('Watch', [], see('5'), see(null), ask, see('7'), ask),
  'Watch: the same again is no change': story('Watch', [], see('5'), see('5')),
  'Watch: an immutable one is watched until it was seen (resources trap 67)': story(
    'Watch',
    [],
    see('5', IMMUTABLE),
    ask,
    wait(600 * SECOND),
    ask,
  ),
  'Watch: an immutable one that another pod names is watched anew': story(
    'Watch',
    [],
    see('5', IMMUTABLE),
    renew,
    ask,
    wait(2 * SECOND),
    see('9', IMMUTABLE),
    ask,
  ),
  'Cache: kept for a minute': story('Cache', [found('5'), found('6')], ask, wait(59 * SECOND), ask, wait(2 * SECOND), ask),
  'Cache: a pod that has come since is shown nothing old': story('Cache', [found('5'), found('6')], ask, renew, ask),
  'Cache: not there, and asked for again each time': story('Cache', [NOT_FOUND, NOT_FOUND, found('5')], ask, ask, ask),
  'Cache: gone replaces what was known': story('Cache', [found('5'), NOT_FOUND], ask, wait(61 * SECOND), ask),
  'Cache: another failure leaves what was known': story('Cache', [found('5'), failed(500, 'broken')], ask, wait(61 * SECOND), ask),
  'Cache: a failure of the first question is told': story('Cache', [failed(500, 'broken')], ask),
  'Cache: after a failure it is asked for again, whatever its time, and not from a cache that may be older than the pod': story(
    'Cache',
    [failed(500, 'broken'), found('5')],
    ask,
    ask,
  ),
  'Cache: an older answer is passed over': story('Cache', [found('5'), found('4')], ask, wait(61 * SECOND), ask),
  'Cache: an immutable one is asked for all the same': story(
    'Cache',
    [found('5', IMMUTABLE), found('5', IMMUTABLE)],
    ask,
    wait(61 * SECOND),
    ask,
  ),
  'Get: asked for each time': story('Get', [found('5'), found('6')], ask, ask),
  'Get: nothing is kept over a failure': story('Get', [found('5'), failed(500, 'broken')], ask, ask),
  'Get: it is not there': story('Get', [NOT_FOUND], ask),

  'named: by nothing': names(pod()),
  'named: by the environment': names(pod({ containers: [ENV] })),
  'named: by the environment of init and ephemeral containers': names(pod({ initContainers: [ENV], ephemeralContainers: [ENV] })),
  'named: to pull images': names(pod({ imagePullSecrets: [{ name: 'p' }, { name: 'p' }] })),
  'named: by volumes of files': names(
    mounted({ secret: { secretName: 's' } }, { configMap: { name: 'c' } }, { downwardAPI: { items: [] } }),
  ),
  'named: by a projected volume': names(
    mounted({ projected: { sources: [{ secret: { name: 's' } }, { configMap: { name: 'c' } }, { serviceAccountToken: { path: 't' } }] } }),
  ),
  'named: not by a volume that nobody mounts': names(pod({ volumes: [{ name: 'v', secret: { secretName: 's' } } as Volume] })),
});
