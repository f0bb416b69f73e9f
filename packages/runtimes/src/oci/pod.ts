/** A pod: its address, its files and what holds its namespaces. */
import { randomInt } from 'node:crypto';
import { chmodSync, copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { DNSConfig, PodSandboxConfig } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { ProcId } from '../process/container/procfs.ts';
import type { Layout, StoredSandbox } from '../process/store/store.ts';
import { podAddress } from '../shared/podAddress.ts';
import { checkPod } from './bundle/spec.ts';
import { startInfra } from './infra.ts';
import type { Lack, Programs } from './programs.ts';

const LOOPBACK = /^(?:127\.|::1$)/;

/** Mounted into every container of a pod. */
export function podFiles(layout: Layout, id: string) {
  const dir = join(layout.pods, id);
  return { dir, hosts: join(dir, 'hosts'), hostname: join(dir, 'hostname'), resolv: join(dir, 'resolv.conf'), shm: join(dir, 'shm') };
}

/** Fills in the row's address and what holds its namespaces. `later`: its network, where that is on its way. @throws RuntimeRefusal */
export async function startPod(
  row: StoredSandbox,
  config: PodSandboxConfig,
  o: { programs: Programs; noNetwork: Lack | null; root: boolean; layout: Layout },
): Promise<{ later: Promise<ProcId> | null }> {
  const s = config.linux?.securityContext;
  checkPod(s);
  const files = podFiles(o.layout, row.id);
  mkdirSync(files.shm, { recursive: true });
  chmodSync(files.shm, 0o1777);
  try {
    // An address of the loopback that is the pod's alone: the same inside, where the loopback is its own.
    row.ip = s?.namespaceOptions?.network === 'NODE' ? '' : podAddress(randomInt);
    const { programs, noNetwork, root } = o;
    const started = await startInfra({
      ...{ id: row.id, config, programs, noNetwork, root },
      ...{ apiSocket: join(files.dir, 'slirp.sock'), pidFile: join(files.dir, 'network.pid') },
    });
    if (started !== null) row.infra = started.infra;
    const name = row.hostname || hostname();
    writeFileSync(files.hostname, `${name}\n`);
    writeFileSync(files.hosts, `127.0.0.1 localhost\n::1 localhost\n${row.ip === '' ? '' : `${row.ip} ${name}\n`}`);
    writeResolv(files.resolv, config.dnsConfig, row.infra?.dns ?? '');
    return { later: started?.later ?? null };
  } catch (error) {
    rmSync(files.dir, { recursive: true, force: true });
    throw error;
  }
}

/** `dns`: in the place of nameservers on the host's loopback, which the pod does not reach; '' for a pod on the host's network. */
function writeResolv(file: string, config: DNSConfig | null | undefined, dns: string): void {
  if (config === null || config === undefined || config.servers.length + config.searches.length + config.options.length === 0) {
    try {
      copyFileSync('/etc/resolv.conf', file);
    } catch {
      writeFileSync(file, '');
    }
    return;
  }
  const servers = config.servers.map((server) => (dns !== '' && LOOPBACK.test(server) ? dns : server));
  const lines = [
    ...(config.searches.length > 0 ? [`search ${config.searches.join(' ')}`] : []),
    ...[...new Set(servers)].map((server) => `nameserver ${server}`),
    ...(config.options.length > 0 ? [`options ${config.options.join(' ')}`] : []),
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
}
