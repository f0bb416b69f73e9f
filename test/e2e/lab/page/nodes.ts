/** Nodes that the page is tested on. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startNode, type TestNode } from '@actorlet/harness/src/index.ts';
import { type KubeServer, startKubeServer, writeKubeconfig } from '../flood/kubeServer.ts';
import { Authority } from '../pki.ts';
import { pageOf } from './browser.ts';

/** With a secret that the page must never show. */
export const pod = (name: string, script: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, annotations: { 'actorlet.dev/hollow': script } },
  spec: { containers: [{ name: 'app', image: 'example.test/app:1', env: [{ name: 'SECRET', value: 'hunter2-planted' }] }] },
});

/** A node that belongs to a cluster: what comes from files is critical, and never evicted. */
export async function clusterNode(): Promise<{ node: TestNode; url: string } & AsyncDisposable> {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-page-'));
  const ca = new Authority(dir, 'ca');
  const kube: KubeServer = await startKubeServer(ca.issue('api', { name: 'api', hosts: ['127.0.0.1'] }));
  const kubeconfig = writeKubeconfig(dir, kube.server, ca.certFile);
  const started = await startNode({
    runtime: 'hollow',
    name: 'node-2',
    flags: ['--actorlet-inspect=127.0.0.1:0', `--kubeconfig=${kubeconfig}`, '--node-ip=127.0.0.1'],
    config: { evictionHard: { 'memory.available': '100Mi' } },
    timeoutMs: 90_000,
    startTimeoutMs: 90_000,
  });
  for (let i = 0; i < 4; i++) {
    const { spec, ...rest } = pod(`cart-${i}`, 'run=forever');
    kube.handle({ verb: 'POST', path: '/api/v1/namespaces/default/pods', body: { ...rest, spec: { ...spec, nodeName: 'node-2' } } });
  }
  return {
    node: started,
    url: (await pageOf(started)).url,
    [Symbol.asyncDispose]: async () => {
      await started.dispose();
      await kube.close();
      rmSync(dir, { recursive: true });
    },
  };
}

/** What actorctl prints. */
export async function ctlOutput(...args: string[]): Promise<string> {
  const program = join(import.meta.dirname, '../../../../bin/actorctl');
  const { stdout } = await promisify(execFile)(program, args, { maxBuffer: 64 * 1024 * 1024 });
  return stdout;
}
