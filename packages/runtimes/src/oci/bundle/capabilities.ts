/** Capabilities of a container: containerd's default set, and what the pod adds and drops. Pure. */
const ALL = (
  'CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN ' +
  'NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME ' +
  'SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON ' +
  'BPF CHECKPOINT_RESTORE'
).split(' ');
const DEFAULT =
  'CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE'.split(' ');

const plain = (name: string): string => name.toUpperCase().replace(/^CAP_/, '');

/** `last`: the kernel's highest number. @throws naming one that does not exist. */
export function capabilities(o: { add: readonly string[]; drop: readonly string[]; privileged: boolean; last: number }): string[] {
  const known = ALL.slice(0, o.last + 1);
  const add = o.add.map(plain);
  const drop = o.drop.map(plain);
  const unknown = [...add, ...drop].find((name) => name !== 'ALL' && !known.includes(name));
  if (unknown !== undefined) throw new Error(`there is no capability ${unknown}`);
  const base = o.privileged || add.includes('ALL') ? known : drop.includes('ALL') ? [] : DEFAULT;
  const held = new Set(base.filter((name) => !drop.includes(name)));
  for (const name of add) if (name !== 'ALL') held.add(name);
  return known.filter((name) => held.has(name)).map((name) => `CAP_${name}`);
}
