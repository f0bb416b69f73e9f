/** An NFS server in the machine, on its own loopback: it answers, or says nothing. */
import type { Machine } from '../machine.ts';

export const NFS_SERVER = '127.0.0.1';
const THREADS = 8;
/** Nobody has anything to reclaim: the first file need not wait. */
const END_GRACE = 'echo Y >/proc/fs/nfsd/v4_end_grace || true';

export interface NfsServer {
  /** Exports /export as `/`. */
  start(): Promise<void>;
  /** From now on it answers nothing. */
  silence(): Promise<void>;
  answer(): Promise<void>;
}

export function nfsServer(vm: Machine): NfsServer {
  return {
    async start() {
      await vm.run(
        [
          'set -e',
          'for m in nfsd nfs nfsv3 nfsv4; do modprobe $m; done',
          'mkdir -p /export/part && chmod 777 /export /export/part',
          `echo '/export 127.0.0.0/8(rw,sync,no_root_squash,no_subtree_check,fsid=0)' >/etc/exports`,
          // Else the first file waits for 90 s of grace.
          'mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd',
          'echo 10 >/proc/fs/nfsd/nfsv4leasetime; echo 10 >/proc/fs/nfsd/nfsv4gracetime',
          'systemctl start nfs-server',
          END_GRACE,
        ].join('\n'),
      );
    },
    silence: async () => void (await vm.run('echo 0 >/proc/fs/nfsd/threads')),
    answer: async () => void (await vm.run(`[ "$(cat /proc/fs/nfsd/threads)" != 0 ] || { rpc.nfsd ${THREADS}; ${END_GRACE}; }`)),
  };
}

/** Mounts below the folder of a daemon that is not running, of pods that nobody wants; then their server says nothing more. */
export async function leaveStaleMounts(
  vm: Machine,
  server: NfsServer,
  { rootDir, count }: { rootDir: string; count: number },
): Promise<void> {
  await server.answer();
  // Binds of one mount are mounts of that server to the daemon, and cost the machine little.
  const dir = `${rootDir}/pods/stale-$((n % 100))/volumes/kubernetes.io~nfs/v$n`;
  await vm.run(
    [
      `set -e; mount -t nfs -o vers=4.2 ${NFS_SERVER}:/ /mnt`,
      `for n in $(seq ${count}); do echo ${dir}; done >/root/stale; xargs mkdir -p </root/stale`,
      `sed 's#.*#/mnt & none bind 0 0#' /root/stale >/root/stale.fstab; mount -a -T /root/stale.fstab`,
    ].join('\n'),
    { timeoutMs: 300_000 },
  );
  await server.silence();
}
