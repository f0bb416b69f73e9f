/** A small SELinux policy for checkpolicy: three types that may do everything, and files that are read only at a level that dominates theirs. */

const SIDS =
  'kernel security unlabeled fs file file_labels init any_socket port netif netmsg node igmp_packet icmp_socket tcp_socket sysctl_modprobe sysctl sysctl_fs sysctl_kernel sysctl_net sysctl_net_unix sysctl_vm sysctl_dev kmod policy scmp_packet devnull';
const FILE =
  'ioctl read write create getattr setattr lock relabelfrom relabelto append map unlink link rename execute quotaon mounton audit_access open execmod watch watch_mount watch_sb watch_with_perm watch_reads';
const CLASSES: Readonly<Record<string, string>> = {
  security:
    'compute_av compute_create compute_member check_context load_policy compute_relabel compute_user setenforce setbool setsecparam setcheckreqprot read_policy validate_trans',
  process:
    'fork transition sigchld sigkill sigstop signull signal ptrace getsched setsched getsession getpgid setpgid getcap setcap share getattr setexec setfscreate noatsecure siginh setrlimit rlimitinh dyntransition setcurrent execmem execstack execheap setkeycreate setsockcreate getrlimit',
  filesystem: 'mount remount unmount getattr relabelfrom relabelto associate quotamod quotaget watch',
  file: `${FILE} execute_no_trans entrypoint`,
  dir: `${FILE} add_name remove_name reparent search rmdir`,
  ...Object.fromEntries(['lnk_file', 'chr_file', 'blk_file', 'sock_file', 'fifo_file'].map((name) => [name, FILE])),
  fd: 'use',
};
const TYPES = ['base_t', 'container_t', 'container_file_t'];
const CATEGORIES = 1024;
const BASE = 'system_u:object_r:base_t:s0';
const FILE_SYSTEMS: Readonly<Record<string, string>> = {
  fs_use_xattr: 'ext4 xfs btrfs overlay',
  fs_use_trans: 'tmpfs devtmpfs devpts hugetlbfs mqueue',
  fs_use_task: 'pipefs sockfs',
};
const OTHER_FILE_SYSTEMS = 'proc sysfs cgroup cgroup2 selinuxfs securityfs nfs nfs4 fuse virtiofs rootfs';

export function policy(): string {
  const classes = Object.keys(CLASSES);
  const sids = SIDS.split(' ');
  return [
    ...classes.map((name) => `class ${name}`),
    ...sids.map((sid) => `sid ${sid}`),
    ...Object.entries(CLASSES).map(([name, permissions]) => `class ${name} { ${permissions} }`),
    'sensitivity s0;\ndominance { s0 }',
    ...Array.from({ length: CATEGORIES }, (_, i) => `category c${i};`),
    `level s0:c0.c${CATEGORIES - 1};`,
    'mlsconstrain file { read } ( l1 dom l2 );',
    ...TYPES.map((type) => `type ${type};`),
    `role system_r;\nrole system_r types { ${TYPES.join(' ')} };`,
    ...TYPES.flatMap((a) => TYPES.flatMap((b) => classes.map((name) => `allow ${a} ${b}:${name} *;`))),
    `user system_u roles { system_r } level s0 range s0 - s0:c0.c${CATEGORIES - 1};`,
    ...sids.map((sid) => `sid ${sid} system_u:${['kernel', 'init'].includes(sid) ? 'system_r' : 'object_r'}:base_t:s0`),
    ...Object.entries(FILE_SYSTEMS).flatMap(([how, names]) => names.split(' ').map((name) => `${how} ${name} ${BASE};`)),
    ...OTHER_FILE_SYSTEMS.split(' ').map((name) => `genfscon ${name} / ${BASE}`),
    '',
  ].join('\n');
}
