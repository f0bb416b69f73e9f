/**
 * Each field of a security context on a real containerd: seen from within the container, or, where it cannot be had, with
 * the reason that a user knows, until the cause is gone.
 */
import { existsSync, mkdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Container, PodSpec, SecurityContext } from '../../../src/machines/kube/podTable.ts';
import type { Daemon } from '../daemon.ts';
import type { Containerd } from '../lab/containerd.ts';
import { until } from '../lab/ports.ts';
import { manifest, steady } from '../manifests.ts';
import { onContainerd } from '../onContainerd.ts';
import { containers, exec, hostPid, sandboxes } from '../runtime.ts';

let lab: Containerd;
let daemon: Daemon;
/** A failed start is tried again after 10 s at the latest, on a machine that has other things to do. */
const LONG_MS = 90_000;

onContainerd((made) => ({ lab, daemon } = made), { config: { allowedUnsafeSysctls: ['kernel.msg*', 'net.core.somaxconn'] } });

async function runs(name: string, own: SecurityContext, spec: Partial<PodSpec> = {}, more: Partial<Container> = {}): Promise<string> {
  daemon.put(`${name}.yaml`, manifest(name, [steady('main', { ...more, securityContext: own })], { spec }));
  await daemon.podWhere(name, `${name} to be ready`, (p) => p.status.containerStatuses?.every((c) => c.ready) === true, LONG_MS);
  return until(`${name} to run`, async () => (await containers(lab, name)).find((c) => c.running)?.id);
}
async function waits(name: string, reason: string): Promise<string> {
  const pod = await daemon.podWhere(
    name,
    `${name} to wait with ${reason}`,
    (p) => p.status.containerStatuses?.[0]?.state.waiting?.reason === reason,
    LONG_MS,
  );
  return pod.status.containerStatuses?.[0]?.state.waiting?.message ?? '';
}
const within = async (id: string, script: string) => (await exec(lab, id, script)).out;
/** A line of /proc/1/status, of the container's first process. */
const field = async (id: string, name: string) => within(id, `sed -n 's/^${name}:[[:space:]]*//p' /proc/1/status`);
const CAPABILITY = { chown: 0, netBindService: 10, netAdmin: 12, sysAdmin: 21 };
const has = (mask: string, bit: number) => ((BigInt(`0x${mask}`) >> BigInt(bit)) & 1n) === 1n;

describe.concurrent('the user', () => {
  it('is that of the container before that of the pod, with the groups of the pod', async () => {
    const context = { runAsUser: 1000, runAsGroup: 1001, supplementalGroups: [1002], fsGroup: 1003 };
    const id = await runs('user', { runAsUser: 2000 }, { securityContext: context });
    expect(await within(id, 'id -u; id -g')).toBe('2000\n1001');
    expect((await field(id, 'Groups')).split(/\s+/)).toEqual(expect.arrayContaining(['1002', '1003']));
  });

  it('may not be root where runAsNonRoot is asked for: the container waits, says why, and starts once it is put right', async () => {
    daemon.put('root.yaml', manifest('root', [steady('main', { securityContext: { runAsNonRoot: true } })], { uid: 'pinned-root' }));
    expect(await waits('root', 'CreateContainerConfigError')).toContain('container has runAsNonRoot and image will run as root');
    expect(await containers(lab, 'root')).toEqual([]);
    const put = { securityContext: { runAsNonRoot: true, runAsUser: 1000 } };
    daemon.put('root.yaml', manifest('root', [steady('main', put)], { uid: 'pinned-root' }));
    await daemon.podWhere('root', 'root to be ready', (p) => p.status.containerStatuses?.[0]?.ready === true, LONG_MS);
    const [running] = (await containers(lab, 'root')).filter((c) => c.running);
    expect(await within(running?.id ?? '', 'id -u')).toBe('1000');
  });

  it('has exactly the listed groups with the policy Strict, which this runtime does not say that it has: the pod is refused', async () => {
    const spec: Partial<PodSpec> = { securityContext: { supplementalGroupsPolicy: 'Strict' } };
    daemon.put('strict.yaml', manifest('strict', [steady()], { spec }));
    const pod = await daemon.phase('strict', 'Failed');
    expect(pod.status).toMatchObject({
      reason: 'SupplementalGroupsPolicyNotSupported',
      message: 'Pod was rejected: SupplementalGroupsPolicy=Strict is not supported in this node',
    });
  });

  it('is another one on the host with hostUsers false, which this runtime does not say that it can: no sandbox is made', async () => {
    daemon.put('users.yaml', manifest('users', [steady()], { spec: { hostUsers: false } }));
    const said = await daemon.wait(
      'the event',
      async () => (await daemon.events('users')).find((e) => e.reason === 'FailedCreatePodSandBox'),
      { timeoutMs: LONG_MS },
    );
    expect(said.message).toBe("Failed to create pod sandbox: can't set `spec.hostUsers: false`, runtime does not support user namespaces");
    expect(await sandboxes(lab, 'users')).toEqual([]);
    expect((await daemon.pod('users'))?.status.phase).toBe('Pending');
    daemon.remove('users.yaml');
  });
});

describe.concurrent('privileges', () => {
  it('capabilities: those added are there, those dropped are not', async () => {
    const id = await runs('caps', { capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] } });
    expect(await field(id, 'CapEff')).toBe((1n << BigInt(CAPABILITY.netBindService)).toString(16).padStart(16, '0'));
    const more = await runs('morecaps', { capabilities: { drop: ['CHOWN'], add: ['NET_ADMIN'] } });
    const mask = await field(more, 'CapEff');
    expect([has(mask, CAPABILITY.netAdmin), has(mask, CAPABILITY.chown), has(mask, CAPABILITY.sysAdmin)]).toEqual([true, false, false]);
  });

  it('privileged: all capabilities and the devices of the host; else neither', async () => {
    const id = await runs('privileged', { privileged: true });
    expect(has(await field(id, 'CapEff'), CAPABILITY.sysAdmin)).toBe(true);
    expect(await within(id, 'test -e /dev/kmsg && echo there')).toBe('there');
    const plain = await runs('unprivileged', {});
    expect(has(await field(plain, 'CapEff'), CAPABILITY.sysAdmin)).toBe(false);
    expect(await within(plain, 'test -e /dev/kmsg || echo absent')).toBe('absent');
  });

  it('allowPrivilegeEscalation false: no program gains any', async () => {
    expect(await field(await runs('noescalation', { allowPrivilegeEscalation: false }), 'NoNewPrivs')).toBe('1');
    expect(await field(await runs('escalation', { allowPrivilegeEscalation: true }), 'NoNewPrivs')).toBe('0');
  });

  it('readOnlyRootFilesystem: nothing can be written into the image', async () => {
    const id = await runs('readonly', { readOnlyRootFilesystem: true });
    expect(await within(id, 'touch /there 2>/dev/null || echo refused')).toBe('refused');
    const writable = await runs('writable', {});
    expect(await within(writable, 'touch /there && echo written')).toBe('written');
  });

  it('procMount: what the kernel shows of the machine is masked, unless it is asked for', async () => {
    const masked = await runs('masked', {});
    expect(await within(masked, "grep -c ' /proc/sys ' /proc/self/mountinfo")).toBe('1');
    const unmasked = await runs('unmasked', { procMount: 'Unmasked' });
    expect(await within(unmasked, "grep -c ' /proc/sys ' /proc/self/mountinfo || true")).toBe('0');
    expect(await within(unmasked, "grep -c ' /proc/kcore ' /proc/self/mountinfo || true")).toBe('0');
  });
});

describe.concurrent('profiles', () => {
  it('seccomp: the one of the runtime, none, or one of the node', async () => {
    const FILTERED = '2';
    const profile = await runs('seccomp', { seccompProfile: { type: 'RuntimeDefault' } });
    expect(await field(profile, 'Seccomp')).toBe(FILTERED);
    expect(await field(await runs('unconfined', { seccompProfile: { type: 'Unconfined' } }), 'Seccomp')).toBe('0');
    const dir = join(daemon.rootDir, 'seccomp', 'profiles');
    mkdirSync(dir, { recursive: true });
    const rule = { names: ['mkdir', 'mkdirat'], action: 'SCMP_ACT_ERRNO' };
    writeFileSync(join(dir, 'nodirs.json'), JSON.stringify({ defaultAction: 'SCMP_ACT_ALLOW', syscalls: [rule] }));
    const local = await runs('local', { seccompProfile: { type: 'Localhost', localhostProfile: 'profiles/nodirs.json' } });
    expect(await within(local, 'mkdir /tmp/there 2>/dev/null || echo refused')).toBe('refused');
  });

  it('seccomp: a profile that is not on the node keeps the container from starting, until it is there', async () => {
    const later = { type: 'Localhost' as const, localhostProfile: 'later.json' };
    daemon.put('later.yaml', manifest('later', [steady('main', { securityContext: { seccompProfile: later } })]));
    expect(await waits('later', 'CreateContainerError')).toContain('later.json');
    mkdirSync(join(daemon.rootDir, 'seccomp'), { recursive: true });
    writeFileSync(join(daemon.rootDir, 'seccomp', 'later.json'), JSON.stringify({ defaultAction: 'SCMP_ACT_ALLOW' }));
    await daemon.podWhere('later', 'later to be ready', (p) => p.status.containerStatuses?.[0]?.ready === true, LONG_MS);
  });

  it('AppArmor: a profile is in force where the kernel has it; where not, a container that asks for one of the node does not start', async () => {
    const there = existsSync('/sys/module/apparmor/parameters/enabled');
    daemon.put(
      'apparmor.yaml',
      manifest('apparmor', [
        steady('main', { securityContext: { appArmorProfile: { type: 'Localhost', localhostProfile: 'not-loaded' } } }),
      ]),
    );
    if (there) expect(await waits('apparmor', 'CreateContainerError')).toMatch(/not-loaded/);
    else await daemon.podWhere('apparmor', 'it to be refused', (p) => p.status.reason === 'AppArmor', LONG_MS);
    expect((await containers(lab, 'apparmor')).filter((c) => c.running)).toEqual([]);
    const id = await runs('unconfinedapparmor', { appArmorProfile: { type: 'Unconfined' } });
    if (there) expect(await within(id, 'cat /proc/1/attr/current')).toBe('unconfined');
    daemon.remove('apparmor.yaml');
  });

  it('SELinux: options reach the process where the kernel has it, and are of no effect where it has not', async () => {
    const id = await runs('selinux', { seLinuxOptions: { level: 's0:c1,c2' } });
    const enforced = existsSync('/sys/fs/selinux/enforce');
    const label = (await exec(lab, id, 'cat /proc/1/attr/current 2>/dev/null || true')).out;
    if (enforced) expect(label).toContain('s0:c1,c2');
    else expect(label).not.toContain('s0:c1,c2');
  });
});

describe.concurrent('sysctls', () => {
  const with_ = (...sysctls: [string, string][]): Partial<PodSpec> => ({
    securityContext: { sysctls: sysctls.map(([name, value]) => ({ name, value })) },
  });
  it('safe and allowed ones hold in the pod and nowhere else', async () => {
    const path = '/proc/sys/net/core/somaxconn';
    const ofHost = existsSync(path) ? readFileSync(path, 'utf8').trim() : '';
    const id = await runs(
      'sysctls',
      {},
      with_(
        ['kernel.shm_rmid_forced', '1'],
        ['kernel.msgmax', '16384'],
        ['net/ipv4/ip_unprivileged_port_start', '99'],
        ['net.core.somaxconn', '77'],
      ),
    );
    const names = ['kernel/shm_rmid_forced', 'kernel/msgmax', 'net/ipv4/ip_unprivileged_port_start', 'net/core/somaxconn'];
    expect(await within(id, names.map((n) => `cat /proc/sys/${n}`).join('; '))).toBe('1\n16384\n99\n77');
    if (ofHost !== '') expect(readFileSync(path, 'utf8').trim()).toBe(ofHost);
  });
  it.each([
    ['unsafe', with_(['net.ipv4.ip_forward', '1']), 'forbidden sysctl: "net.ipv4.ip_forward" not allowlisted'],
    ['unnamespaced', with_(['vm.swappiness', '1']), 'forbidden sysctl: "vm.swappiness" not allowlisted'],
    [
      'ofthehost',
      { ...with_(['net.ipv4.tcp_syncookies', '1']), hostNetwork: true },
      'forbidden sysctl: "net.ipv4.tcp_syncookies" not allowed with host Net enabled',
    ],
  ])('others fail the pod: %s', async (name, spec, message) => {
    daemon.put(`${name}.yaml`, manifest(name, [steady()], { spec }));
    const pod = await daemon.phase(name, 'Failed');
    expect(pod.status).toMatchObject({ reason: 'SysctlForbidden', message: `Pod was rejected: ${message}` });
    expect(await sandboxes(lab, name)).toEqual([]);
  });
});

describe.concurrent('namespaces', () => {
  const KINDS = ['net', 'ipc', 'pid'] as const;
  const ofHost = () => KINDS.map((kind) => readlinkSync(`/proc/self/ns/${kind}`));
  const of = async (id: string) => {
    const pid = await hostPid(lab, id);
    return KINDS.map((kind) => readlinkSync(`/proc/${pid}/ns/${kind}`));
  };
  it('are those of the host where they are asked for, each by itself, else the own ones of the pod', async () => {
    const shared = (list: string[]) => KINDS.filter((_, i) => list[i] === ofHost()[i]);
    expect(shared(await of(await runs('own', {})))).toEqual([]);
    expect(shared(await of(await runs('hostnet', {}, { hostNetwork: true })))).toEqual(['net']);
    expect(shared(await of(await runs('hostipc', {}, { hostIPC: true })))).toEqual(['ipc']);
    expect(shared(await of(await runs('hostpid', {}, { hostPID: true })))).toEqual(['pid']);
  });
  it('shareProcessNamespace: the containers of the pod see each other', async () => {
    const two = (name: string, share: boolean) =>
      daemon.put(`${name}.yaml`, manifest(name, [steady('a'), steady('b')], { spec: { shareProcessNamespace: share } }));
    two('sharing', true);
    two('apart', false);
    const pids = async (name: string) => {
      await daemon.podWhere(name, `${name} to be ready`, (p) => p.status.containerStatuses?.filter((c) => c.ready).length === 2, LONG_MS);
      const ids = (await containers(lab, name)).filter((c) => c.running).map((c) => c.id);
      return new Set(await Promise.all(ids.map(async (id) => (await of(id))[2])));
    };
    expect((await pids('sharing')).size).toBe(1);
    expect((await pids('apart')).size).toBe(2);
  });
});
