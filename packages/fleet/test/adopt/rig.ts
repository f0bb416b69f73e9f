/** A fleet file that is lived through on the simulation's API server, in real time, and what its nodes were. */
import { createClock, createEntropy, createYield } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import type { Logger } from '@actorlet/kubelet/ports/ports.ts';
import { simKube } from '@actorlet/world/src/kube/kubeApi.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { expect } from 'vitest';
import { limited } from '../../src/boot/api/limited.ts';
import { decodeFleet } from '../../src/file.ts';
import { Fleet } from '../../src/fleet.ts';
import { Cluster } from '../../src/run/cluster.ts';
import { FleetRun } from '../../src/run.ts';

const quiet: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => quiet };
const nowhere = () => Promise.reject(new Error('no network here'));

/** The API server of fleets that follow each other. */
export function apiServer() {
  const clock = createClock();
  return { clock, kube: simKube({ clock, rng: simRng('fleet'), latencyMs: () => 0 }) };
}

export function runnable(file: string, { clock, kube } = apiServer()) {
  const read = decodeFleet(file);
  if (!read.ok) throw new Error(JSON.stringify(read.errors));
  const connect = (node: string) => kube.connect({ power: { on: true }, clock, node });
  const fleet = new Fleet(read.value, {
    ...{
      clock,
      entropy: createEntropy(),
      yield: createYield(),
      net: { httpGet: nowhere, serveHttp: nowhere },
      log: quiet,
      nodeLog: () => quiet,
    },
    build: { major: '1', minor: '36', gitVersion: 'v1.36.2', gitCommit: '', buildDate: '', platform: '' },
    ...{ address: '192.0.2.1', serving: null, socketPath: '', connect, admin: connect('') },
  });
  const signal = AbortSignal.timeout(60_000);
  const nodes = (): KubeObject[] => kube.store.list('nodes');
  const seen: KubeObject[] = [];
  const run = new FleetRun({
    ...{ fleet, spec: read.value, scenarios: new Map(), manifests: new Map(), clock, signal },
    cluster: new Cluster(connect(''), { limited, clock, signal }),
    onLook: () => void seen.push(...structuredClone(nodes())),
    onStep: () => {},
    onTrouble: (why) => expect.fail(why),
  });
  return {
    start: () => fleet.start(),
    toTheEnd: () => run.toTheEnd(),
    stop: () => fleet.stop(),
    nodes,
    members: () => fleet.members.map((m) => m.name),
    ready: () => fleet.overview().nodes.ready,
    /** Of all that there ever were, at each look. */
    seen: (which: (node: KubeObject) => boolean) => seen.filter(which),
  };
}
