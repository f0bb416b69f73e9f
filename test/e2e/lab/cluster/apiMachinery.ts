/**
 * The API machinery of today for one test: Debian's apiextensions-apiserver of 1.3x, which serves custom resources by the same
 * code as a kube-apiserver serves pods, and an etcd. On free loopback ports; `stop()` leaves nothing behind.
 * scripts/setup/api-machinery-setup.sh brings the programs.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { LocalProgram } from '../../../../packages/fleet/src/boot/plane/process.ts';
import { ProgramTree } from '../../../../packages/fleet/src/boot/plane/programTree.ts';
import { freePort } from '../../../freePort.ts';
import { Authority } from '../pki.ts';
import { ControlPlane } from './controlPlane.ts';

/** Where scripts/setup/api-machinery-setup.sh keeps what it built. */
function cache(): string {
  const own = process.env.ACTORLET_API_MACHINERY_CACHE;
  return own || join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'actorlet', 'api-machinery');
}
const programAt = (name: string): string => join(cache(), 'bin', name);

export function hasApiMachinery(): boolean {
  return existsSync(programAt('apiextensions-apiserver')) && existsSync(programAt('etcd'));
}

export interface ApiMachinery {
  plane: ControlPlane;
  /** Behind the back of the API server. */
  etcd: {
    /** It forgets all that was before this version. */
    compact(version: string): Promise<void>;
    remove(key: string): Promise<void>;
  };
}

/** @param o.flags Added to those of the API server. */
export async function startApiMachinery(o: { flags?: readonly string[] } = {}): Promise<ApiMachinery> {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-machinery-'));
  const ca = new Authority(join(dir, 'pki'), 'lab-ca');
  const serving = ca.issue('apiserver', { name: 'apiserver', hosts: ['127.0.0.1'] });
  const kubeletClient = ca.issue('admin', { name: 'kubernetes-admin', groups: ['system:masters'] });
  const [client, peer, secure] = [await freePort(), await freePort(), await freePort()];
  const url = `https://127.0.0.1:${secure}`;
  // It asks a core API server who somebody is and what he may. There is none: a client certificate says both.
  const core = join(dir, 'admin.kubeconfig');
  const etcdUrl = `http://127.0.0.1:${client}`;
  const program = (name: string, command: [string, ...string[]], ready: () => Promise<boolean>): LocalProgram =>
    new LocalProgram({ name, dir, command, ready, onChange: () => {} });
  const programs = new ProgramTree([
    program(
      'etcd',
      [
        programAt('etcd'),
        `--data-dir=${join(dir, 'etcd')}`,
        `--listen-client-urls=${etcdUrl}`,
        `--advertise-client-urls=${etcdUrl}`,
        `--listen-peer-urls=http://127.0.0.1:${peer}`,
        `--initial-advertise-peer-urls=http://127.0.0.1:${peer}`,
        `--initial-cluster=default=http://127.0.0.1:${peer}`,
        '--unsafe-no-fsync',
      ],
      async () => (await fetch(`${etcdUrl}/health`)).ok,
    ),
    program(
      'kube-apiserver',
      [
        programAt('apiextensions-apiserver'),
        `--etcd-servers=${etcdUrl}`,
        `--secure-port=${secure}`,
        '--bind-address=127.0.0.1',
        `--tls-cert-file=${serving.certFile}`,
        `--tls-private-key-file=${serving.keyFile}`,
        `--client-ca-file=${ca.certFile}`,
        ...['kubeconfig', 'authentication-kubeconfig', 'authorization-kubeconfig'].map((flag) => `--${flag}=${core}`),
        '--authentication-skip-lookup',
        '--enable-priority-and-fairness=false',
        '--disable-admission-plugins=NamespaceLifecycle,MutatingAdmissionWebhook,ValidatingAdmissionWebhook,MutatingAdmissionPolicy,ValidatingAdmissionPolicy',
        '--etcd-compaction-interval=0',
        ...(o.flags ?? []),
      ],
      async () => (await plane.request('GET', '/livez', { timeoutMs: 2_000 })).status === 200,
    ),
  ]);
  const end = async (): Promise<void> => {
    for (const name of [...programs.names].reverse()) await programs.off(name, 'SIGTERM');
    await programs.stop();
    rmSync(dir, { recursive: true, force: true });
  };
  const plane: ControlPlane = new ControlPlane({ dir, url, ca, kubeletClient, programs, core: false, end });
  const tell = async (what: string, body: object): Promise<void> => {
    const answer = await fetch(`http://127.0.0.1:${client}/v3/kv/${what}`, { method: 'POST', body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`etcd ${what}: ${answer.status} ${await answer.text()}`);
  };
  const etcd: ApiMachinery['etcd'] = {
    compact: (version) => tell('compaction', { revision: version, physical: true }),
    remove: (key) => tell('deleterange', { key: Buffer.from(key).toString('base64') }),
  };
  try {
    await plane.start('etcd', 'kube-apiserver');
    return { plane, etcd };
  } catch (error) {
    await plane.stop();
    throw error;
  }
}
