/** What the operator of each node does, and others in its cluster: pods come, change and go. */
import type { CpuTuning } from '@actorlet/world/src/node/nodeTuning.ts';
import { nodeName } from '@actorlet/world/src/paths.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { DrawOptions } from '../drawOptions.ts';
import { drawWholeCpus } from '../draws/node/cpus.ts';
import { drawDeviceRequests } from '../draws/node/devices.ts';
import { drawDriverVolume } from '../draws/node/drivers.ts';
import { drawNetworkVolume } from '../draws/node/network.ts';
import { drawCrowd } from '../draws/pods/crowd.ts';
import { drawIdentityVolume } from '../draws/pods/identities.ts';
import { drawClaim, drawPullSecret } from '../draws/pods/named.ts';
import { withDraw } from '../draws/pods/podDraw.ts';
import { drawResizes } from '../draws/pods/resizes.ts';
import { type Add, adder, type Drawn } from '../entries.ts';
import { driverClaimLife, nameObjects, objectLife } from './objects.ts';
import { deletePod, drawPod, editImages } from './pods.ts';
import type { SimPod } from './subjects.ts';

/** The workload alone, for faults that come from elsewhere. */
export function drawWorkload(rng: SimRng, o: DrawOptions): Drawn[] {
  const drawn: Drawn[] = [];
  for (let node = 0; node < o.nodes; node++) {
    const mine = rng.fork(`node-${node}`);
    workload(
      mine.fork('workload'),
      {
        spanMs: o.minutes * 60_000,
        pods: o.pods,
        http: o.http[node] === true,
        api: o.api[node] === true,
        cpus: o.cpus?.[node] ?? null,
        node,
      },
      adder(drawn, mine, node),
    );
  }
  return drawn;
}

/** What others do in a cluster: they delete pods and mirrors, write to them, and the API server forgets. */
function clusterLife(rng: SimRng, o: { spanMs: number; pods: number }, add: Add): void {
  const name = () => `p${rng.int(o.pods)}`;
  const times = (perMinute: number) => Math.round((rng.between(0, 2) * perMinute * o.spanMs) / 60_000);
  for (let i = times(2); i > 0; i--) {
    const graceSeconds = rng.pick([null, 0, 0, 2, 30] as const) ?? null;
    add(rng.next() * o.spanMs, { kind: 'pod.delete', name: name(), graceSeconds });
  }
  for (let i = times(4); i > 0; i--) {
    add(rng.next() * o.spanMs, { kind: 'pod.meddle', name: name(), what: rng.pick(['condition', 'ready', 'label'] as const) ?? 'label' });
  }
  for (let i = times(1); i > 0; i--) add(rng.next() * o.spanMs, { kind: 'history.compact' });
}

interface WorkloadOptions {
  spanMs: number;
  pods: number;
  http: boolean;
  api: boolean;
  /** Absent: no storage driver is beside the node. */
  driver?: boolean;
  /** Absent: no pod has a certificate. */
  podIdentities?: boolean;
  /** Absent: no pod has a volume of an NFS server. */
  network?: boolean;
  /** Resources of the node's device plugins. Absent: there are none. */
  devices?: readonly string[];
  /** Absent or null: it allocates no CPUs. */
  cpus?: CpuTuning | null;
  node: number;
}

export function workload(rng: SimRng, o: WorkloadOptions, add: Add): void {
  if (o.api) clusterLife(rng.fork('cluster'), o, add);
  const { devices = [] } = o;
  const edits = rng.pick([0, 0.3, 1, 3] as const) ?? 1;
  for (let i = 0; i < o.pods; i++) {
    const mine = rng.fork(`pod-${i}`);
    const name = `p${i}`;
    const source = o.api && mine.fork('api').chance(0.5) ? 'api' : o.http && mine.chance(0.4) ? 'http' : 'file';
    // An own UID makes an edit change a pod in place, and a name come back as the same pod.
    const uid = mine.chance(0.25) ? `00000000-0000-4000-8000-${String(o.node).padStart(4, '0')}${String(i).padStart(8, '0')}` : undefined;
    let rev = 0;
    // What has ended stays so under its UID, whatever its manifest says then: such a pod is never edited.
    const whole = (pod: SimPod): SimPod => (o.cpus ? withDraw(drawWholeCpus(o.cpus, source), mine.fork(`cpus-${pod.rev}`), pod) : pod);
    const ordinary = (): SimPod => {
      const drawn = drawPod(mine.fork(`rev-${rev}`), { name, rev: rev++, ...(uid === undefined ? {} : { uid }) });
      if (source !== 'api') return whole(drawn);
      const crowded = whole(withDraw(drawCrowd, mine.fork(`crowd-${drawn.rev}`), drawn));
      const named = nameObjects(mine.fork(`objects-${drawn.rev}`), crowded, { node: o.node });
      const claiming = withDraw(drawClaim(nodeName(o.node)), mine.fork(`claim-${drawn.rev}`), named);
      const pulling = withDraw(drawPullSecret(nodeName(o.node)), mine.fork(`pull-${drawn.rev}`), claiming);
      return o.driver === true ? withDraw(drawDriverVolume(nodeName(o.node)), mine.fork(`disk-${drawn.rev}`), pulling) : pulling;
    };
    const draw = (): SimPod => {
      const local = ordinary();
      const served = o.network === true ? withDraw(drawNetworkVolume, mine.fork(`files-${local.rev}`), local) : local;
      const named = o.podIdentities === true && source === 'api';
      const drawn = named ? withDraw(drawIdentityVolume, mine.fork(`identity-${local.rev}`), served) : served;
      return devices.length === 0 ? drawn : withDraw(drawDeviceRequests(devices), mine.fork(`devices-${drawn.rev}`), drawn);
    };
    const first = draw();
    const edited = (): SimPod => {
      if (uid === undefined) return draw();
      if (first.fate === 'ends') return first;
      return editImages(mine.fork(`edit-${rev}`), first, rev++);
    };
    let pod = first;
    let at = mine.chance(0.5) ? 0 : mine.next() * o.spanMs * 0.5;
    add(at, { kind: 'pod.put', pod, source });
    for (;;) {
      if (edits === 0) break;
      at += mine.chance(0.3) ? mine.between(1, 3_000) : (mine.next() * 60_000) / edits;
      if (at >= o.spanMs) break;
      const what = mine.next();
      if (what < 0.3) {
        pod = edited();
        add(at, { kind: 'pod.put', pod, source });
      } else if (what < 0.6) {
        if (uid !== undefined && pod.fate !== 'ends' && mine.chance(0.4)) {
          // Its source asks for its end first, perhaps twice and more urgently; it is never wanted again.
          for (const graceSeconds of mine.chance(0.5) ? [30] : [30, 2]) {
            if (source === 'api') add(at, { kind: 'pod.delete', name, graceSeconds });
            else add(at, { kind: 'pod.put', pod: deletePod(pod, graceSeconds), source });
            at += mine.between(100, 4_000);
          }
          if (mine.chance(0.7)) add(at, { kind: 'pod.remove', name });
          break;
        }
        add(at, { kind: 'pod.remove', name });
        if (mine.chance(0.75)) {
          at += mine.chance(0.5) ? mine.between(0, 500) : mine.between(500, 20_000);
          // The same definition again is the same pod, perhaps while its predecessor is still being stopped.
          if (mine.chance(0.5)) pod = edited();
          add(at, { kind: 'pod.put', pod, source });
        } else break;
      } else if (what < 0.75) {
        if (source !== 'file') continue;
        add(at, { kind: 'pod.break', name });
        add(at + mine.between(0, 10_000), { kind: 'pod.put', pod, source });
      } else add(at, { kind: 'pod.put', pod, source });
    }
  }
  // Last: what it adds takes nothing from the draws above.
  if (o.api) objectLife(rng.fork('objects'), o, add);
  if (o.api && o.driver === true) driverClaimLife(rng.fork('driver-claims'), o, add);
  if (o.api) drawResizes(rng.fork('resizes'), o, add);
}
