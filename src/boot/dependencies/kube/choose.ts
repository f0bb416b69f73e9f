/**
 * Which credentials the node goes to the API server with (boot-and-node 6.3): those of the kubeconfig as they are, those
 * that the node keeps in `--cert-dir`, or none yet, to be asked for with those of `--bootstrap-kubeconfig`.
 */

import { resolve } from 'node:path';
import { readRegular } from '@actorlet/process/src/regularFile.ts';
import { stringify } from 'yaml';
import { CertificateStore } from '../../../actors/api/certificates/store.ts';
import type { CertificateFacts } from '../../../machines/api/certificates/template.ts';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import type { HostFs, Logger } from '../../../ports/ports.ts';
import { StartError } from '../../errors.ts';
import { inspect } from '../certificates/pki.ts';
import { CREDENTIAL_BYTES_MAX, type KubeConfigFile, type Material, parseKubeConfig, readKubeConfig } from './kubeconfig.ts';

export interface ChooseOptions {
  kubeconfig: string;
  /** '' = none. */
  bootstrapKubeconfig: string;
  rotate: boolean;
  certDir: string;
  nowMs: number;
  fs: HostFs;
  log: Logger;
}

export interface Choice {
  /** What the ordinary client is made of; its certificate need not be there yet when `kept` is not null. */
  client: KubeConfigFile;
  /** Null: the client's credentials are used as they are. */
  kept: {
    bootstrap: KubeConfigFile | null;
    kubeconfig: { path: string; text: string } | null;
    renewNow: boolean;
  } | null;
}

/** @throws StartError naming the flag: what is wrong now is a mistake of who starts the node. */
export async function chooseCredentials(o: ChooseOptions): Promise<Choice> {
  const store = new CertificateStore(o.fs, { dir: o.certDir, prefix: 'kubelet-client' });
  const given = await readGiven(o.kubeconfig);
  if (o.bootstrapKubeconfig === '') {
    if (!('file' in given)) throw refused('--kubeconfig', given.problem);
    if (!o.rotate) return { client: given.file, kept: null };
    return withRotation(given.file, { store, o, bootstrap: null });
  }
  const usable = 'file' in given ? await certificateOf(given.file, o.nowMs) : { problem: given.problem };
  if ('file' in given && 'facts' in usable) {
    const bootstrap = await readKubeConfig(o.bootstrapKubeconfig).catch(() => null);
    if (o.rotate) return withRotation(given.file, { store, o, bootstrap });
    const own = given.file.cert !== null && 'file' in given.file.cert && resolve(given.file.cert.file) === resolve(store.current);
    return { client: given.file, kept: own ? { bootstrap, kubeconfig: null, renewNow: false } : null };
  }
  let bootstrap: KubeConfigFile;
  try {
    bootstrap = await readKubeConfig(o.bootstrapKubeconfig);
  } catch (error) {
    throw refused('--bootstrap-kubeconfig', messageOf(error));
  }
  const why = 'problem' in usable ? usable.problem : '';
  o.log.info(
    { kubeconfig: o.kubeconfig, bootstrap: o.bootstrapKubeconfig, why },
    'there is no client certificate to use; one is asked for',
  );
  const client: KubeConfigFile = { ...bootstrap, path: o.kubeconfig, ...ownPair(store), token: null, exec: null };
  return { client, kept: { bootstrap, kubeconfig: { path: o.kubeconfig, text: kubeconfigText(client, store.current) }, renewNow: false } };
}

function ownPair(store: CertificateStore): { cert: Material; key: Material } {
  return { cert: { file: store.current }, key: { file: store.current } };
}

/** The pair in the folder; where there is none yet the one that the kubeconfig came with is put there and replaced soon. */
async function withRotation(
  file: KubeConfigFile,
  x: { store: CertificateStore; o: ChooseOptions; bootstrap: KubeConfigFile | null },
): Promise<Choice> {
  const { store, o, bootstrap } = x;
  if (file.cert === null || file.key === null) {
    o.log.warn({ kubeconfig: o.kubeconfig }, 'rotateCertificates has no effect: the kubeconfig has no client certificate to renew');
    return { client: file, kept: null };
  }
  const client: KubeConfigFile = { ...file, ...ownPair(store) };
  const kept = await keptFacts(store);
  if (kept !== null && kept.notAfterMs > o.nowMs) return { client, kept: { bootstrap, kubeconfig: null, renewNow: false } };
  const usable = await certificateOf(file, o.nowMs);
  // Ended, or away: it stays in use, should somebody put another one there, and the state says what is wrong.
  if ('problem' in usable) return { client: file, kept: { bootstrap, kubeconfig: null, renewNow: true } };
  try {
    await store.write(Buffer.concat([usable.cert, Buffer.from('\n'), usable.key]), o.nowMs);
  } catch (error) {
    throw refused('--cert-dir', `the client certificate cannot be put into ${o.certDir}: ${messageOf(error)}`);
  }
  return { client, kept: { bootstrap, kubeconfig: null, renewNow: true } };
}

async function keptFacts(store: CertificateStore): Promise<CertificateFacts | null> {
  try {
    const pem = await store.read();
    return pem === null ? null : inspect(pem, pem);
  } catch {
    // What it says about this is the certificate actor's to say.
    return null;
  }
}

type Usable = { facts: CertificateFacts; cert: Buffer; key: Buffer } | { problem: string };

/** Only the ends of the certificates are looked at, as in the reference: whether the server takes them, the server knows. */
async function certificateOf(file: KubeConfigFile, nowMs: number): Promise<Usable> {
  if (file.cert === null || file.key === null) return { problem: `kubeconfig ${file.path} has no client certificate` };
  try {
    const [cert, key] = [await bytesOf(file.cert), await bytesOf(file.key)];
    const facts = inspect(cert, key);
    if (facts.notAfterMs <= nowMs)
      return { problem: `the client certificate of ${file.path} ended ${new Date(facts.notAfterMs).toISOString()}` };
    return { facts, cert, key };
  } catch (error) {
    return { problem: `the client certificate of ${file.path} cannot be used: ${messageOf(error)}` };
  }
}

async function bytesOf(material: Material): Promise<Buffer> {
  return 'data' in material ? material.data : readRegular(material.file, { bytesMax: CREDENTIAL_BYTES_MAX });
}

/** A file that is there and cannot be looked at for another reason than its contents ends the start. */
async function readGiven(path: string): Promise<{ file: KubeConfigFile } | { problem: string }> {
  let text: string;
  try {
    text = (await readRegular(path, { bytesMax: CREDENTIAL_BYTES_MAX })).toString('utf8');
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw refused('--kubeconfig', `${path} cannot be read: ${messageOf(error)}`);
    return { problem: `kubeconfig ${path}: there is no such file` };
  }
  try {
    return { file: parseKubeConfig(text, path) };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

function kubeconfigText(file: KubeConfigFile, pair: string): string {
  const { ca, tlsServerName, insecure, proxy } = file;
  const cluster = {
    server: file.server.href.replace(/\/$/, ''),
    ...(ca === null
      ? {}
      : 'file' in ca
        ? { 'certificate-authority': ca.file }
        : { 'certificate-authority-data': ca.data.toString('base64') }),
    ...(tlsServerName === null ? {} : { 'tls-server-name': tlsServerName }),
    ...(insecure ? { 'insecure-skip-tls-verify': true } : {}),
    ...(proxy === null ? {} : { 'proxy-url': proxy.href }),
  };
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'default-cluster', cluster }],
    users: [{ name: 'default-auth', user: { 'client-certificate': pair, 'client-key': pair } }],
    contexts: [{ name: 'default-context', context: { cluster: 'default-cluster', namespace: 'default', user: 'default-auth' } }],
    'current-context': 'default-context',
  });
}

function refused(where: string, what: string): StartError {
  return new StartError('the API client cannot be made', [{ where, what }]);
}
