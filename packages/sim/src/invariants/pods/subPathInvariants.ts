/** Invariants about parts of volumes: bound before a container is made, from inside the volume, and there when it starts. */
import { mayHang } from '@actorlet/kubelet/machines/host/unmounting.ts';
import { ROOT_DIR } from '@actorlet/world/src/paths.ts';
import { type Checker, type Scene, targetOf } from '../checker.ts';

interface Given {
  metadata?: { name?: string };
  mounts?: readonly { containerPath?: string; hostPath?: string }[];
}
interface Mounts {
  name: string;
  volumeMounts?: readonly { name: string; mountPath: string; subPath?: string; subPathExpr?: string }[];
}

/** Parts that a container's definition asks for, where that is still the wanted one: volume by the path in the container. */
function partsWanted(s: Scene, uid: string, container: string): Map<string, string> {
  const record = [...s.operator.wanted.values()].find((w) => w.pod.uid === uid);
  const spec = record === undefined ? undefined : (record.pod.manifest as { spec: { containers: readonly Mounts[] } }).spec;
  const own = spec?.containers.find((c) => c.name === container)?.volumeMounts ?? [];
  return new Map(own.filter((m) => m.subPath !== undefined || m.subPathExpr !== undefined).map((m) => [m.mountPath, m.name]));
}

/** No container is made, or starts, before each part of a volume that it was promised is bound, from inside the volume. */
export function partsAreBound(): Checker {
  /** Targets by pod UID and container, as the newest creation named them. */
  const promised = new Map<string, readonly string[]>();
  const started = new Set<string>();
  return {
    name: 'parts-are-bound',
    arrived(s, call) {
      if (call.method !== 'CreateContainer') return undefined;
      const { uid } = targetOf(call, s.node.runtime.hollow.dump());
      const { metadata, mounts = [] } = (call.req as { config?: Given }).config ?? {};
      const name = metadata?.name ?? '';
      const who = `${s.node.name}: ${name} of pod ${uid} is made while`;
      const below = `${ROOT_DIR}/pods/${uid}/volume-subpaths/`;
      const targets: string[] = [];
      for (const { hostPath = '' } of mounts) {
        if (!hostPath.startsWith(below)) continue;
        targets.push(hostPath);
        const bound = s.node.mounts.table.find((m) => m.path === hostPath);
        if (bound === undefined) return `${who} ${hostPath} is not bound`;
        // What a server serves has its name, not that of the volume.
        const volume = s.node.mounts.table.find((m) => mayHang(m.type) && m.device === bound.device && bound.root.startsWith(`${m.path}/`));
        const from = mayHang(bound.type) ? volume?.path : bound.source;
        if (from === undefined || !bound.root.startsWith(`${from}/`))
          return `${who} ${hostPath} shows ${bound.root}, which is not in ${from}`;
      }
      for (const [path, volume] of partsWanted(s, uid, name)) {
        const given = mounts.find((m) => m.containerPath === path)?.hostPath ?? '';
        if (!given.startsWith(`${below}${volume}/${name}/`))
          return `${who} its ${path} is ${given || 'nothing'}, not a part of volume ${volume}`;
      }
      promised.set(`${uid}/${name}`, targets);
      return undefined;
    },
    changed(s, dump) {
      for (const { id, name, podUid, state } of dump.containers) {
        if (state !== 'CONTAINER_RUNNING' || started.has(id)) continue;
        started.add(id);
        // A power failure takes mounts away, and leaves containers here.
        if (s.node.lostPower) continue;
        const gone = promised.get(`${podUid}/${name}`)?.find((t) => !s.node.mounts.table.some((m) => m.path === t));
        if (gone !== undefined) return `${s.node.name}: ${name} of pod ${podUid} starts, and ${gone} is bound no more`;
      }
      return undefined;
    },
  };
}
