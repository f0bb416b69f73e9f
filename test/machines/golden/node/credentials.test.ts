/** Which credentials a node begins with (boot-and-node 6.3): a row for each rotation, bootstrap file and state of the kubeconfig. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createHostFs } from '../../../../src/boot/dependencies/fs.ts';
import { type Choice, chooseCredentials } from '../../../../src/boot/dependencies/kube/choose.ts';
import type { KubeConfigFile } from '../../../../src/boot/dependencies/kube/kubeconfig.ts';
import { tempDir } from '../../../boot/helpers.ts';
import { issue } from '../../../boot/kube/certs.ts';
import { collectingLogger } from '../../../supervision/fakePorts.ts';
import { goldenTable } from '../table.ts';

const DAY_MS = 86_400_000;
const ca = issue({ cn: 'ca', issuer: null });
const good = issue({ cn: 'system:node:n1', org: 'system:nodes', issuer: ca });
const ended = issue({ cn: 'system:node:n1', org: 'system:nodes', issuer: ca, ageMs: 3 * DAY_MS });
/** Its time begins tomorrow: only the ends of certificates are looked at. */
const early = issue({ cn: 'system:node:n1', org: 'system:nodes', issuer: ca, ageMs: -2 * DAY_MS });

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const pair = (cert: string, key: string) => ({ 'client-certificate-data': base64(cert), 'client-key-data': base64(key) });
const kubeconfig = (user: object): string =>
  JSON.stringify({
    'current-context': 'x',
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    clusters: [{ name: 'x', cluster: { server: 'https://api.example:6443', 'certificate-authority-data': base64(ca.cert) } }],
    users: [{ name: 'x', user }],
  });

/** Null: no such file; a folder stands for what cannot be read for another reason than that it is not there. */
const STATES: Readonly<Record<string, string | 'folder' | null>> = {
  valid: kubeconfig(pair(good.cert, good.key)),
  'valid from tomorrow on': kubeconfig(pair(early.cert, early.key)),
  missing: null,
  unreadable: 'folder',
  unparsable: '{',
  'without a certificate': kubeconfig({ token: 'of-the-kubeconfig' }),
  'with one that has ended': kubeconfig(pair(ended.cert, ended.key)),
  'with one in its chain that has ended': kubeconfig(pair(`${good.cert}${ended.cert}`, good.key)),
};
const BOOTSTRAP: Readonly<Record<string, string | null | undefined>> = {
  empty: undefined,
  set: kubeconfig({ token: 'of-the-bootstrap-file' }),
  'set and missing': null,
};

function credentialsOf(file: KubeConfigFile, dir: string): string {
  const { cert } = file;
  if (cert !== null) return 'data' in cert ? 'certificate of the kubeconfig' : cert.file.replace(`${dir}/`, '');
  return file.token !== null && 'data' in file.token ? `token ${file.token.data.toString()}` : 'none';
}

function told(choice: Choice, dir: string): unknown {
  const { client, kept } = choice;
  return {
    uses: credentialsOf(client, dir),
    kept: kept !== null,
    ...(kept === null
      ? {}
      : {
          asksWith: kept.bootstrap === null ? 'its own' : credentialsOf(kept.bootstrap, dir),
          writesKubeconfig: kept.kubeconfig !== null,
          renewNow: kept.renewNow,
        }),
  };
}

async function decided(o: { rotate: boolean; bootstrap: string | null | undefined; state: string | null }): Promise<unknown> {
  using dir = tempDir();
  if (o.state === 'folder') mkdirSync(join(dir.path, 'kubelet.conf'));
  else if (o.state !== null) dir.write('kubelet.conf', o.state);
  if (typeof o.bootstrap === 'string') dir.write('bootstrap.conf', o.bootstrap);
  try {
    const choice = await chooseCredentials({
      kubeconfig: join(dir.path, 'kubelet.conf'),
      bootstrapKubeconfig: o.bootstrap === undefined ? '' : join(dir.path, 'bootstrap.conf'),
      rotate: o.rotate,
      certDir: join(dir.path, 'pki'),
      nowMs: Date.now(),
      fs: createHostFs(),
      log: collectingLogger([]),
    });
    return told(choice, dir.path);
  } catch (error) {
    const [, flag] = /(--[a-z-]+)/.exec(error instanceof Error ? error.message : '') ?? [];
    if (flag === undefined) throw error;
    return { startFailsWith: flag };
  }
}

const rows = [false, true].flatMap((rotate) =>
  Object.entries(BOOTSTRAP).flatMap(([bootstrapIs, bootstrap]) =>
    Object.entries(STATES).map(([is, state]): [string, () => unknown] => [
      `rotateCertificates ${rotate}, bootstrap-kubeconfig ${bootstrapIs}, kubeconfig ${is}`,
      () => decided({ rotate, bootstrap, state }),
    ]),
  ),
);

goldenTable('which credentials a node begins with is as recorded', 'node/credentials', Object.fromEntries(rows));
