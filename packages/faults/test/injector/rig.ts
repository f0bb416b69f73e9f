/** A small tree with the fault injector in it, on virtual time, and ports behind its interceptors. */

import { telemetrySpec } from '@actorlet/kubelet/actors/foundation/telemetry.ts';
import { createTree, type SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import type { ActorSpec } from '@actorlet/kubelet/actors/supervision/types.ts';
import { eventsView, type RecordedEvent } from '@actorlet/kubelet/machines/foundation/messages.ts';
import type { Answer, Message, ReplyTo } from '@actorlet/kubelet/machines/supervision/address.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Cri, Host, HostFs, Ports, Sys } from '@actorlet/kubelet/ports/ports.ts';
import type { Net } from '@actorlet/kubelet/ports/sockets/net.ts';
import { type FakePorts, fakePorts } from '../../../../test/supervision/fakePorts.ts';
import { actor, layer, receiver } from '../../../../test/supervision/helpers.ts';
import { ActiveFaults } from '../../src/injector/activeFaults.ts';
import { injectorSpec } from '../../src/injector/injector.ts';
import { interceptPorts } from '../../src/injector/interceptors/ports.ts';
import type { InjectAnswer, InjectionView, InjectorEvent } from '../../src/live.ts';
import { injectorAddr } from '../../src/messages.ts';
import { decodeScenario, scenarioErrorText } from '../../src/read/decode.ts';
import type { Scenario } from '../../src/types.ts';

export const NODE = 'n1';
export const SOURCE_URL = 'http://source/pods';

/** A scenario of these faults, through the decoder as a file would come. */
export function scenario(faults: readonly object[], spec: object = {}): Scenario {
  const text = JSON.stringify({
    apiVersion: 'actorlet.dev/v1alpha1',
    kind: 'FaultScenario',
    metadata: { name: 'test' },
    spec: { ...spec, faults },
  });
  const decoded = decodeScenario(text, 'live');
  if (!decoded.ok) throw new Error(decoded.errors.map((e) => scenarioErrorText('test', e)).join('\n'));
  return decoded.scenario;
}

export interface Rig {
  /** Virtual time, log, metrics. */
  base: FakePorts;
  /** Behind the interceptors. */
  ports: Ports;
  tree: SupervisionTree;
  activeFaults: ActiveFaults;
  records: string[];
  /** Types of messages that reached `node/pods/worker`. */
  heard: string[];
  inject(faults: readonly object[], spec?: object): Promise<InjectAnswer>;
  /** As `inject`; throws when it is refused. Gives the id. */
  begin(faults: readonly object[], spec?: object): Promise<string>;
  list(): Promise<readonly InjectionView[]>;
  stop(id?: string): Promise<readonly string[]>;
  events(): readonly RecordedEvent[];
  metric(line: string): Promise<boolean>;
  /** Answers and lost ones both settle only as virtual time moves; this settles without moving it. */
  ask<R>(event: (replyTo: ReplyTo<R>) => InjectorEvent): Promise<R>;
}

export interface Fakes {
  cri?: Partial<Cri>;
  fs?: Partial<HostFs>;
  sys?: Partial<Sys>;
  net?: Partial<Net>;
  kube?: Partial<KubeApi>;
  host?: Partial<Host>;
}

export async function injectorRig(fakes: Fakes = {}, o: { httpSource?: boolean; looksAtMemory?: boolean } = {}): Promise<Rig> {
  const missing = <T extends object>(name: string, some: Partial<T> | undefined): T =>
    new Proxy((some ?? {}) as T, {
      get: (target, key) =>
        Reflect.get(target, key) ??
        (() => {
          throw new Error(`${name}.${String(key)} is not there in this test`);
        }),
    });
  const base = fakePorts({
    cri: missing<Cri>('cri', fakes.cri),
    fs: missing<HostFs>('fs', fakes.fs),
    sys: missing<Sys>('sys', fakes.sys),
    net: missing<Net>('net', fakes.net),
    ...(fakes.host === undefined ? {} : { host: missing<Host>('host', fakes.host) }),
    ...(fakes.kube === undefined ? {} : { kube: missing<KubeApi>('kube', fakes.kube) }),
  });
  const activeFaults = new ActiveFaults(base.rng);
  const ports = interceptPorts(base, { activeFaults, nodeName: NODE, staticPodUrl: o.httpSource === true ? SOURCE_URL : '' });
  const records: string[] = [];
  const heard: string[] = [];
  let tree: SupervisionTree | undefined;
  const live = (): SupervisionTree => {
    if (tree === undefined) throw new Error('no tree yet');
    return tree;
  };
  const injector = injectorSpec({
    activeFaults,
    nodeName: NODE,
    httpSource: o.httpSource === true,
    looksAtMemory: o.looksAtMemory === true,
    state: () => live().state(),
    kill: (path, by) => live().kill(path, by),
    tap: (tap) => live().tap(tap),
    record: (path, what) => void records.push(`${path} ${what}`),
  });
  const worker: ActorSpec<Message & { type: string }> = {
    ...actor('worker', () => receiver((e) => void heard.push((e as Message).type))),
  } as unknown as ActorSpec<Message & { type: string }>;
  const other = actor('other', () => receiver(() => undefined));
  tree = createTree(layer('node', [layer('foundation', [telemetrySpec(), injector]), layer('pods', [worker, other])]), ports);
  const built = tree;
  const started = built.start();
  await base.settle();
  await started;

  const ask = async <R>(event: (replyTo: ReplyTo<R>) => InjectorEvent): Promise<R> => {
    let answer: Answer<R> | undefined;
    void built.registry.ask<InjectorEvent, R>(injectorAddr, event, { timeoutMs: 60_000 }).then((a) => {
      answer = a;
    });
    await base.settle();
    if (answer?.kind !== 'reply') throw new Error(`no answer: ${JSON.stringify(answer)}`);
    return answer.value;
  };
  const inject = (faults: readonly object[], spec: object = {}): Promise<InjectAnswer> =>
    ask((replyTo) => ({ type: 'faults.inject', scenario: scenario(faults, spec), replyTo }));
  return {
    base,
    ports,
    tree: built,
    activeFaults,
    records,
    heard,
    ask,
    inject,
    async begin(faults, spec) {
      const answer = await inject(faults, spec);
      if (!answer.ok) throw new Error(answer.message);
      return answer.injection.id;
    },
    list: () => ask((replyTo) => ({ type: 'faults.list', replyTo })),
    stop: (id) => ask((replyTo) => ({ type: 'faults.stop', id: id ?? null, replyTo })),
    events: () => built.registry.read(eventsView)?.value ?? [],
    metric: async (line) => (await base.metrics.render()).split('\n').includes(line),
  };
}

/** What became of a promise so far. */
export function watched<T>(promise: Promise<T>): { state: 'open' | 'done' | 'failed'; value?: T; error?: Error } {
  const seen: { state: 'open' | 'done' | 'failed'; value?: T; error?: Error } = { state: 'open' };
  promise.then(
    (value) => Object.assign(seen, { state: 'done', value }),
    (error: unknown) => Object.assign(seen, { state: 'failed', error }),
  );
  return seen;
}
