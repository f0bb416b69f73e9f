/** The simulation's API server beside the daemon of a machine, for volumes that need one. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Authority } from '../../lab/pki.ts';
import type { Machine } from '../machine.ts';

/** Its kubeconfig is in here. */
export const CLUSTER = '/root/cluster';

/** `script`: beside this file, runs in the machine. It is given the folder of its key pair, and that of sockets of drivers. */
export async function startCluster(vm: Machine, script: string): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-vm-cluster-'));
  try {
    const authority = new Authority(dir, 'ca');
    const pair = authority.issue('server', { name: 'kube-apiserver', hosts: ['127.0.0.1'] });
    const files = { 'ca.crt': authority.certFile, 'server.crt': pair.certFile, 'server.key': pair.keyFile };
    for (const [name, file] of Object.entries(files)) {
      await vm.run(`mkdir -p ${CLUSTER} && cat >${CLUSTER}/${name}`, { input: readFileSync(file, 'utf8') });
    }
  } finally {
    rmSync(dir, { recursive: true });
  }
  const command = `/share/scripts/node /share/test/e2e/vm/disks/${script} ${CLUSTER} /root/actorlet/root/plugins_registry`;
  await vm.run(
    `systemd-run --quiet --unit=cluster ${command}; until test -e ${CLUSTER}/kubeconfig; do sleep 0.2; systemctl is-active --quiet cluster || { journalctl -u cluster; exit 1; }; done`,
  );
}
