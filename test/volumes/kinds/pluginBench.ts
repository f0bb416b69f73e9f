/** One volume of a pod on a disk in memory and a mount table: set up, taken down, found. */
import { SimMounts } from '@actorlet/world/src/disk/mounts.ts';
import type { CsiApi } from '../../../src/actors/services/volumes/csi/api.ts';
import { CsiLedger } from '../../../src/actors/services/volumes/csi/state.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { podVolumes } from '../../../src/machines/pod/volumes/volumes.ts';
import { claimedVolume } from '../../../src/machines/services/volumes/claims.ts';
import { claimSizes } from '../../../src/machines/services/volumes/growth.ts';
import type { Mounter, PathKind } from '../../../src/ports/machine/mounter.ts';
import { memFs } from '../../integration/memFs.ts';
import { virtualTime } from '../../integration/virtualTime.ts';
import { container, pod } from '../../machines/pods/fixtures.ts';
import { collectingLogger } from '../../supervision/fakePorts.ts';
import { quietPlugins } from './tools.ts';

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
    quietPlugins({
      ports: { fs, clock: time.clock, mounter, entropy: { sha256Hex: (s: string) => s } },
      log: collectingLogger(logged as never),
      claims: async ({ volume: name, readOnly, block }) => {
        const found = claimedVolume(
          { metadata: { name: 'pv' }, ...pv },
          { claim: { uid: 'c', volume: 'pv' }, name, node, readOnly, block },
        );
        return found.ok ? { ok: true, value: { ...found.value, uid: 'v', sizes: claimSizes({}, pv) } } : found;
      },
      csi: {
        ledger,
        controllerAttaches: cluster?.controllerAttaches !== false,
        api: cluster === undefined ? null : ({ attachedToNode: async () => cluster.attached } as unknown as CsiApi),
        reportedInUse: () => cluster?.reported ?? [],
      },
    });
  const ledger = new CsiLedger();
  const settled = <T>(work: Promise<T>) => time.during(work);
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
