/** Invariants about volumes of servers: nothing on a server is removed, and nobody who may go on loses one. */
import { mayHang } from '@actorlet/kubelet/machines/host/unmounting.ts';
import { isLeaving } from '@actorlet/kubelet/machines/pod/names.ts';
import { isWanted, podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { ROOT_DIR } from '@actorlet/world/src/paths.ts';
import { NETWORK_VOLUME } from '../../nemesis/draws/node/network.ts';
import { type Checker, targetOf } from '../checker.ts';

export const networkCheckers = (): Checker[] => [serversKeepTheirFiles(), serversAreMountedFirst(), nobodyElseIsSevered()];

/** Nothing is removed through a mount that is still there: neither what a server serves, nor the directory that it is mounted on. */
function serversKeepTheirFiles(): Checker {
  return {
    name: 'servers-keep-their-files',
    removing({ node }, path) {
      const above = node.mounts.table.find((m) => mayHang(m.type) && (path === m.path || path.startsWith(`${m.path}/`)));
      return above === undefined ? undefined : `${node.name}: ${path} is removed while ${above.source} is mounted on ${above.path}`;
    },
  };
}

/** A container that is given a volume of a server has the server's files, and not the empty directory below the mount. */
function serversAreMountedFirst(): Checker {
  return {
    name: 'servers-are-mounted-first',
    arrived(s, call) {
      if (call.method !== 'CreateContainer' || s.node.tuning.network === null) return undefined;
      const { uid } = targetOf(call, s.node.runtime.hollow.dump());
      const { mounts = [] } = (call.req as { config?: { mounts?: readonly { hostPath?: string }[] } }).config ?? {};
      const bare = mounts.find(
        ({ hostPath = '' }) =>
          hostPath.endsWith(`~nfs/${NETWORK_VOLUME}`) && !s.node.mounts.table.some((m) => m.path === hostPath && mayHang(m.type)),
      );
      return bare === undefined ? undefined : `${s.node.name}: a container of pod ${uid} is made, and ${bare.hostPath} is not mounted`;
    },
  };
}

/** Pods that may go on keep their file system, however dead its server is: it may come back. */
function nobodyElseIsSevered(): Checker {
  const seen = new WeakMap<SimNode, number>();
  return {
    name: 'nobody-else-is-severed',
    beat({ node }) {
      const from = seen.get(node) ?? 0;
      seen.set(node, node.mounts.severed.length);
      const records = node.daemon?.tree.registry.read(podsView)?.value.records;
      for (const device of node.mounts.severed.slice(from)) {
        for (const { path } of node.mounts.table.filter((m) => m.device === device)) {
          const uid = path.slice(`${ROOT_DIR}/pods/`.length).split('/')[0] ?? '';
          const record = records?.get(uid);
          if (record !== undefined && isWanted(record) && !isLeaving(record.pod) && record.worker?.phase === 'syncing')
            return `${node.name}: ${device} was given up, and pod ${uid}, which runs on, has it at ${path}`;
        }
      }
      return undefined;
    },
  };
}
