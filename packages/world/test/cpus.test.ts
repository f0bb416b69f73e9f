/** Nodes of the simulation that allocate CPUs: what is drawn for them is what the invariants take it for. */

import { cpuPlaceOf } from '@actorlet/kubelet/actors/allocation/cpus/place.ts';
import { defaultNodeConfig } from '@actorlet/kubelet/machines/config/defaults.ts';
import { quantityToMilli } from '@actorlet/kubelet/machines/kube/quantity.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { askedClass } from '@actorlet/kubelet/machines/pod/resources/qos.ts';
import { drawWholeCpus } from '@actorlet/sim/src/nemesis/draws/node/cpus.ts';
import { drawTuning } from '@actorlet/sim/src/nemesis/draws/node/tuning.ts';
import { withDraw } from '@actorlet/sim/src/nemesis/draws/pods/podDraw.ts';
import { drawPod } from '@actorlet/sim/src/nemesis/workload/pods.ts';
import { describe, expect, it } from 'vitest';
import { cpusConfig, cpusOfHost } from '../src/host/cpus.ts';
import { simRng } from '../src/rng.ts';

/** Of one node: the eight of a world that was not told otherwise, and the one that its death is aimed at. */
const PODS_MAX = 9;
const NEVER_MILLI = 64_000;
const drawn = Array.from({ length: 600 }, (_, i) => drawTuning(simRng(`tuning ${i}`))).flatMap((t) =>
  t.cpus === null ? [] : [{ t, cpus: t.cpus }],
);

describe('a simulated node that allocates CPUs', () => {
  it('is about one in four, and half of them have several NUMA nodes', () => {
    expect(drawn.length / 600).toBeGreaterThan(0.2);
    expect(drawn.length / 600).toBeLessThan(0.34);
    expect(drawn.filter(({ cpus }) => cpus.nodes > 1).length / drawn.length).toBeGreaterThan(0.4);
    const policies = drawn.map(({ cpus }) => cpus.numa?.policy ?? 'none');
    expect(new Set(policies)).toEqual(new Set(['none', 'best-effort', 'restricted', 'single-numa-node']));
  });

  it('is configured with what was drawn, and reserves the CPUs that the invariants count as the system’s', () => {
    for (const { t, cpus } of drawn) {
      const place = cpuPlaceOf(defaultNodeConfig({ config: cpusConfig(t) }), cpusOfHost(cpus));
      expect(place?.reserved).toEqual(cpus.reserved);
      const isOn = (option: (typeof cpus.options)[number]): true | undefined => cpus.options.includes(option) || undefined;
      expect(place?.policy).toEqual({
        fullCoresOnly: isOn('full-pcpus-only'),
        acrossCores: isOn('distribute-cpus-across-cores'),
        strictReservation: isOn('strict-cpu-reservation'),
        acrossNodes: isOn('distribute-cpus-across-numa'),
        bySocket: isOn('align-by-socket'),
        byCache: isOn('prefer-align-cpus-by-uncorecache'),
      });
      expect(new Set(place?.topology.cpus.map((c) => c.core)).size).toBe(cpus.count / cpus.threads);
      expect(new Set(place?.topology.cpus.map((c) => c.socket)).size).toBe(cpus.sockets);
      expect(new Set(place?.topology.cpus.map((c) => c.node)).size).toBe(cpus.nodes);
      expect(new Set(place?.topology.cpus.map((c) => c.cache)).size).toBe(cpus.caches === 0 ? cpus.sockets : cpus.caches);
    }
  });

  it('has room for all its static pods at once, whatever they were drawn to ask for, and for none that asks for more than there is', () => {
    const packed = drawn.filter(({ cpus }) => cpus.caches === 0);
    const static_ = Array.from({ length: 400 }, (_, i) => {
      const { cpus } = packed[i % packed.length] ?? { cpus: null };
      if (cpus === null) throw new Error('no node allocates CPUs');
      const pod = withDraw(drawWholeCpus(cpus, 'file'), simRng(`whole ${i}`), drawPod(simRng(`pod ${i}`), { name: 'p', rev: 0 }));
      return { cpus, pod: pod.manifest as Pod };
    }).filter(({ pod }) => askedClass(pod) === 'Guaranteed');
    expect(static_.length).toBeGreaterThan(150);
    for (const { cpus, pod } of static_) {
      const sidecars = (pod.spec.initContainers ?? []).filter((c) => c.restartPolicy === 'Always');
      const sum = [...pod.spec.containers, ...sidecars].reduce((n, c) => n + quantityToMilli(c.resources?.requests?.cpu), 0);
      if (sum < NEVER_MILLI) expect(sum * PODS_MAX).toBeLessThanOrEqual((cpus.count - cpus.reserved.length) * 1_000);
      expect(pod.spec.containers.some((c) => quantityToMilli(c.resources?.requests?.cpu) % 1_000 === 0)).toBe(true);
    }
    expect(static_.some(({ pod }) => pod.spec.containers.some((c) => c.resources?.requests?.cpu === '64'))).toBe(true);
  });
});
