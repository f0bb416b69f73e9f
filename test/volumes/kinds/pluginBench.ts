/** One volume of a pod on a disk in memory and a mount table: set up, taken down, found. */
import { SimMounts } from '@actorlet/world/src/disk/mounts.ts';
import type { CsiApi } from '../../../src/actors/services/volumes/csi/api.ts';
import { CsiLedger } from '../../../src/actors/services/volumes/csi/state.ts';
import { Plugins } from '../../../src/actors/services/volumes/plugins.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { podVolumes } from '../../../src/machines/pod/volumes/volumes.ts';
import { claimedVolume } from '../../../src/machines/services/volumes/claims.ts';
import { claimSizes } from '../../../src/machines/services/volumes/growth.ts';
import type { Mounter, PathKind } from '../../../src/ports/machine/mounter.ts';
import type { Ports } from '../../../src/ports/ports.ts';
import { memFs } from '../../integration/memFs.ts';
import { virtualTime } from '../../integration/virtualTime.ts';
import { container, FACTS, pod } from '../../machines/pods/fixtures.ts';
import { NO_PEERS } from '../../peers.ts';
import { collectingLogger } from '../../supervision/fakePorts.ts';

const signal = new AbortController().signal;

/** A machine whose pods have one volume `v` each. */
export function machine(
  o: {
    /** What the cluster has attached, and what this node has said that it uses. Absent: there is no API. */
    cluster?: { attached: string[]; reported: string[]; controllerAttaches?: boolean };
    special?: ReadonlyMap<string, PathKind>;
    mounter?: (real: Mounter) => Partial<Mounter>;
  } = {},
) {
  const { cluster } = o;
  const time = virtualTime();
  const fs = memFs(time.clock);
  const mounts = new SimMounts();
  const emptyDir = (path: string) => {
    for (const p of fs.below(path)) fs.drop(p);
  };
  const disk = { fs, emptyDir, ...(o.special === undefined ? {} : { special: o.special }) };
  const real = mounts.connect({ disk, clock: time.clock, power: { on: true } });
  const requests: Parameters<Mounter['mount']>[0][] = [];
  const tools: string[] = [];
  const own: Mounter = { ...real, ...o.mounter?.(real) };
  const mounter: Mounter = {
    ...own,
    mount: (...[request, call]: Parameters<Mounter['mount']>) => {
      requests.push(request);
      return own.mount(request, call);
    },
    tool: (name, args, call) => {
      tools.push([name, ...args].join(' '));
      return own.tool(name, args, call);
    },
  };
  const node = { name: 'n1', labels: {} };
  const logged: object[] = [];
  /** What was written to files of the kernel, by a mounter that notes it. */
  const written: string[] = [];
  /** `pv`: what a claim of the pod is bound to. */
  const plugins = (pv: object) =>
    new Plugins({
      ports: { fs, clock: time.clock, mounter, entropy: { sha256Hex: (s: string) => s } } as unknown as Ports,
      log: collectingLogger(logged as never),
      facts: () => FACTS,
      objects: null,
      claims: async ({ volume: name, readOnly, block }) => {
        const found = claimedVolume(
          { metadata: { name: 'pv' }, ...pv },
          { claim: { uid: 'c', volume: 'pv' }, name, node, readOnly, block },
        );
        return found.ok ? { ok: true, value: { ...found.value, uid: 'v', sizes: claimSizes({}, pv) } } : found;
      },
      growth: null,
      csi: {
        drivers: () => new Map(),
        ...NO_PEERS,
        ledger,
        inUseChanged: () => undefined,
        exhausted: () => undefined,
        controllerAttaches: cluster?.controllerAttaches !== false,
        api: cluster === undefined ? null : ({ attachedToNode: async () => cluster.attached } as unknown as CsiApi),
        reportedInUse: () => cluster?.reported ?? [],
      },
      warn: () => undefined,
      say: () => undefined,
      swappable: () => undefined,
      measure: () => (work) => work,
      serves: () => undefined,
    });
  const ledger = new CsiLedger();
  const settled = async <T>(work: Promise<T>): Promise<T> => {
    let over = false;
    const watched = work.finally(() => {
      over = true;
    });
    watched.catch(() => undefined);
    while (!over) await time.advance(1);
    return watched;
  };
  const volumeOf = (volume: object, of: { uid?: string; pv?: object; device?: boolean } = {}) => {
    const use =
      of.device === true ? { volumeDevices: [{ name: 'v', devicePath: '/dev/v' }] } : { volumeMounts: [{ name: 'v', mountPath: '/v' }] };
    const owner: Pod = pod(
      { containers: [container('web', use)], volumes: [{ name: 'v', ...volume }] },
      of.uid === undefined ? {} : { metadata: { uid: of.uid } },
    );
    const [decoded] = podVolumes(owner).volumes;
    if (decoded === undefined) throw new Error(`not decoded: ${JSON.stringify(podVolumes(owner).failed)}`);
    const own = plugins(of.pv ?? {});
    return {
      owner,
      setUp: () => settled(own.setUp({ volume: decoded, pod: owner, first: true }, signal)),
      tearDown: () => settled(own.tearDown(decoded, signal)),
      bind: (subPath: string) => settled(own.bindSubPath({ volume: decoded, container: 'web', index: 0, subPath }, signal)),
    };
  };
  return {
    ...{ time, fs, mounts, requests, tools, logged, written, ledger, volumeOf, settled },
    found: async () => (await settled(plugins({}).scan())).found.map((r) => `${r.plugin} ${r.name}`),
  };
}
