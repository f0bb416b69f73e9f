/** An observing node beside a virtual node that is the kubelet: the same machine, and what reaches it from the observer is counted. */

import { createNode, type Node } from '@actorlet/kubelet/actors/node.ts';
import { defaultNodeConfig } from '@actorlet/kubelet/machines/config/defaults.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { type StatusEntry, statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import type { Moment } from '@actorlet/kubelet/machines/recorder/moment.ts';
import { findActor } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import type { CriMethod } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import type { Ports } from '@actorlet/kubelet/ports/ports.ts';
import { shownPages } from '@actorlet/shown/src/extension.ts';
import { whyOf } from '@actorlet/shown/src/why/whyOf.ts';
import { MANIFESTS, ROOT, type VirtualNode, type VirtualNodeOptions, virtualNode } from '../../../test/integration/virtualNode.ts';
import { collectingLogger, type LogLine, memoryMetrics } from '../../../test/supervision/fakePorts.ts';
import { observedPorts } from '../src/border/border.ts';
import type { Expectations } from '../src/border/expectations.ts';
import { CRI, PORTS } from '../src/border/table.ts';
import { observer } from '../src/observer.ts';

export const STATE = '/var/lib/actorlet-observe';

export interface Beside extends AsyncDisposable {
  /** The kubelet, and the machine. */
  h: VirtualNode;
  node: Node;
  /** As the observer gets them. */
  ports: Ports;
  expectations: Expectations;
  /** What changed something outside of the observer's own folder. */
  acts: string[];
  lines: LogLine[];
  /** As `actorctl why` prints it. */
  why(query: string): string;
  status(name: string): StatusEntry['status'] | undefined;
  uid(name: string): string | undefined;
}

export interface BesideOptions extends VirtualNodeOptions {
  /** Of the machine, before the border. */
  changed?: (ports: Ports) => Ports;
  /** Before the observer starts. */
  started?: (h: VirtualNode) => Promise<void>;
}

export async function beside(o: BesideOptions = {}): Promise<Beside> {
  let raw: Ports | undefined;
  const h = await virtualNode({
    cluster: true,
    ...o,
    ports: (ports) => {
      raw = ports;
      return o.ports?.(ports) ?? ports;
    },
  });
  if (raw === undefined) throw new Error('no ports');
  await o.started?.(h);
  const acts: string[] = [];
  const lines: LogLine[] = [];
  const config = defaultNodeConfig({
    flags: { rootDir: ROOT, hostnameOverride: 'n1', adminSocket: `${STATE}/actorlet.sock`, kubeconfig: '/kubeconfig', ...o.flags },
    config: {
      cgroupsPerQOS: o.cgroups === true,
      staticPodPath: MANIFESTS,
      podLogsDir: '/var/log/actorlet/pods',
      resolvConf: '',
      healthzPort: 0,
      readOnlyPort: 0,
      enableServer: false,
      ...o.config,
    },
  });
  const outside = counted({ ...raw, metrics: memoryMetrics(), log: collectingLogger(lines) }, acts);
  const { ports, expectations } = observedPorts(o.changed?.(outside) ?? outside, { config, stateDir: STATE });
  let node: Node | undefined;
  void createNode(config, ports, { extensions: [observer, shownPages] }).then((made) => {
    node = made;
  });
  await h.until('the observer is made', () => node !== undefined);
  if (node === undefined) throw new Error('no observer');
  const made = node;
  let up = false;
  void made.start().then(() => {
    up = true;
  });
  await h.until('the observer is up', () => up);
  return {
    ...{ h, node: made, ports, expectations, acts, lines },
    why: (query) => whyOf(momentOf(made, h), query).lines.join('\n'),
    uid: (name) => uidOf(made, name),
    status(name) {
      const uid = uidOf(made, name);
      return uid === undefined ? undefined : made.tree.registry.read(statusesView)?.value.get(uid)?.status;
    },
    async [Symbol.asyncDispose]() {
      expectations.dispose();
      void made.stop();
      await h.advance(30_000);
      await h[Symbol.asyncDispose]();
    },
  };
}

function uidOf({ tree }: Node, name: string): string | undefined {
  const records = tree.registry.read(podsView)?.value.records.values() ?? [];
  return [...records].find((r) => r.pod.metadata.name === name)?.pod.metadata.uid;
}

function momentOf({ tree, facts }: Node, h: VirtualNode): Moment {
  const state = () => tree.state();
  return {
    ...{ nowMs: h.time.clock.wallMs(), monoMs: h.time.clock.monoMs(), name: facts.nodeName, version: '', faultsAtWork: null },
    read: (key) => tree.registry.read(key)?.value,
    state,
    stateAt: (path) => findActor(state(), path),
    chart: () => null,
    timeline: () => undefined,
    recorder: () => ({ entries: [], overwritten: 0 }),
  };
}

/** Notes each call of a function that the table does not let pass. */
function counted(ports: Ports, acts: string[]): Ports {
  const isOwn = (args: readonly unknown[]) => typeof args[0] === 'string' && args[0].startsWith(`${STATE}/`);
  const watched = Object.entries(ports).map(([name, port]: [string, object]) => {
    const row = PORTS[name as keyof typeof PORTS] as Readonly<Record<string, string>> | 'absent' | undefined;
    const proxy = new Proxy(port, {
      get(target, key) {
        const value = Reflect.get(target, key, target) as unknown;
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          const verdict = row === 'absent' || row === undefined ? 'absent' : row[String(key)];
          const passes =
            verdict === 'read' ||
            verdict === 'own' ||
            (name === 'fs' && isOwn(args)) ||
            (name === 'cri' && key === 'call' && CRI[args[0] as CriMethod] === 'read') ||
            (name === 'kube' && key === 'request' && (args[0] as { verb: string }).verb === 'GET');
          if (!passes) acts.push(`${name}.${String(key)} ${typeof args[0] === 'string' ? args[0] : JSON.stringify(args[0]).slice(0, 200)}`);
          return Reflect.apply(value, target, args) as unknown;
        };
      },
    });
    return [name, proxy];
  });
  return Object.fromEntries(watched) as unknown as Ports;
}
