/** A target of iSCSI in the machine, on its own loopback. */
import type { Machine } from '../machine.ts';

export const IQN = 'iqn.2001-04.com.example:disk';
/** Ways to it: the target listens on every address. */
export const PORTALS = ['127.0.0.1', '127.0.0.2:3260'] as const;
export const CHAP = {
  discovery: { user: 'finder', password: 'finder-password' },
  session: { user: 'reader', password: 'reader-password' },
} as const;

/** Disks of the machine itself, by the file system that is asked for. */
export const LOCAL_DISKS = { ext4: '/dev/loop5', xfs: '/dev/loop6' } as const;

/** With empty disks 1 to `luns`. `chap`: it lets nobody in who does not know {@link CHAP}. */
export async function startTarget(vm: Machine, { luns, chap }: { luns: number; chap: boolean }): Promise<void> {
  const admin = 'tgtadm --lld iscsi';
  const account = ({ user, password }: { user: string; password: string }, tid: string) => [
    `${admin} --op new --mode account --user ${user} --password ${password}`,
    `${admin} --op bind --mode account ${tid} --user ${user}`,
  ];
  await vm.run(
    [
      'set -e; modprobe iscsi_tcp; modprobe sd_mod; mkdir -p /run/tgtd',
      'systemd-run --quiet --unit=target tgtd -f',
      `until ${admin} --op show --mode target >/dev/null 2>&1; do sleep 0.1; done`,
      `${admin} --op new --mode target --tid 1 -T ${IQN}`,
      `for lun in $(seq ${luns}); do truncate -s 320M /root/lun$lun; ${admin} --op new --mode logicalunit --tid 1 --lun $lun -b /root/lun$lun; done`,
      `${admin} --op bind --mode target --tid 1 -I ALL`,
      ...(chap ? [...account(CHAP.discovery, ''), ...account(CHAP.session, '--tid 1')] : []),
      'systemctl start iscsid',
    ].join('\n'),
  );
}
