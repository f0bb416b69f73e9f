/** What of a kubeconfig must be in order for a node to start, and what may come to be in order later. */
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createClock } from '../../../src/boot/dependencies/clock.ts';
import { createHostFs } from '../../../src/boot/dependencies/fs.ts';
import { joinCluster } from '../../../src/boot/dependencies/realPorts.ts';
import { collectingLogger } from '../../supervision/fakePorts.ts';
import { tempDir } from '../helpers.ts';
import { issue } from './certs.ts';

const ca = issue({ cn: 'ca', issuer: null });
let dir: ReturnType<typeof tempDir>;
beforeEach(() => {
  dir = tempDir();
});
afterEach(() => dir[Symbol.dispose]());

/** Joins with a kubeconfig of that user. Nobody listens at the server's address. */
function joinAs(user: object) {
  const kubeconfig = dir.write(
    'kubelet.conf',
    JSON.stringify({
      'current-context': 'x',
      contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
      clusters: [
        { name: 'x', cluster: { server: 'https://127.0.0.1:1', 'certificate-authority-data': Buffer.from(ca.cert).toString('base64') } },
      ],
      users: [{ name: 'x', user }],
    }),
  );
  return joinCluster(
    {
      flags: { kubeconfig, bootstrapKubeconfig: '', certDir: join(dir.path, 'pki') },
      config: { kubeAPIQPS: 50, kubeAPIBurst: 100, eventRecordQPS: 50, eventBurst: 100, rotateCertificates: false },
    },
    { clock: createClock(), fs: createHostFs(), log: collectingLogger([]) },
  );
}

it('refuses the start over files that cannot be read', async () => {
  await expect(joinAs({ 'client-certificate': '/no/such.crt', 'client-key': '/no/such.key' })).rejects.toThrow(
    /the API client cannot be made/,
  );
});

it('does not ask a credential program: what that asks may be away, and the node goes on without', async () => {
  const command = dir.write('give', `#!/bin/sh\necho run >>${dir.path}/runs\necho 'the vault is locked' >&2\nexit 3\n`);
  chmodSync(command, 0o755);
  const { kube } = await joinAs({ exec: { apiVersion: 'client.authentication.k8s.io/v1', command, interactiveMode: 'Never' } });
  const signal = new AbortController().signal;
  // Asked when there is a call, which fails with what it said.
  expect(await kube?.request({ verb: 'GET', path: '/version' }, { signal, timeoutMs: 30_000 })).toMatchObject({
    ok: false,
    failure: { reason: 'NoCredentials', message: expect.stringContaining('the vault is locked') },
  });
  kube?.close();
});
