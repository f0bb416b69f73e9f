/** What `--check` finds in kubeconfig files and certificates. Reads only: no program that gives credentials is run. */

import { X509Certificate } from 'node:crypto';
import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { servingFiles } from '@actorlet/kubelet/actors/edge/options.ts';
import { inspect } from '@actorlet/kubelet/boot/dependencies/certificates/pki.ts';
import { createClock } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import { createCredentials } from '@actorlet/kubelet/boot/dependencies/kube/credentials.ts';
import { readKubeConfig } from '@actorlet/kubelet/boot/dependencies/kube/kubeconfig.ts';
import { servingProblem } from '@actorlet/kubelet/boot/steps/serving.ts';
import type { NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { shownUrl } from '@actorlet/kubelet/machines/text/shownUrl.ts';
import type { Logger } from '@actorlet/kubelet/ports/ports.ts';
import { readRegular } from '@actorlet/process/src/regularFile.ts';
import type { Finding } from './findings.ts';

const FILE_BYTES_MAX = 1024 * 1024;
const SOON_MS = 7 * 24 * 3_600_000;
const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;
const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => SILENT };

export async function isThere(path: string, mode = constants.F_OK): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}

export async function credentials({ flags }: NodeConfig): Promise<Finding[]> {
  const { kubeconfig, bootstrapKubeconfig } = flags;
  if (kubeconfig === '')
    return [{ level: 'note', where: '--kubeconfig', what: 'it is not given: the node belongs to no cluster', todo: '' }];
  if (await isThere(kubeconfig)) return readable('--kubeconfig', kubeconfig);
  if (bootstrapKubeconfig !== '' && (await isThere(bootstrapKubeconfig))) {
    const what = `${kubeconfig} is not there: the node joins the cluster with ${bootstrapKubeconfig}`;
    return [{ level: 'note', where: '--kubeconfig', what, todo: '' }, ...(await readable('--bootstrap-kubeconfig', bootstrapKubeconfig))];
  }
  const what = `neither ${kubeconfig} nor ${bootstrapKubeconfig === '' ? 'a bootstrap kubeconfig' : bootstrapKubeconfig} is there`;
  return [{ level: 'error', where: '--kubeconfig', what, todo: 'Join the node with kubeadm join, or give another file.' }];
}

/** It, and what it names: certificate and key, authority, token, program. */
async function readable(where: string, path: string): Promise<Finding[]> {
  const bad = (what: string): Finding => ({ level: 'error', where, what, todo: 'Mend the file, or give another.' });
  try {
    const client = await readKubeConfig(path);
    const found: Finding[] = [{ level: 'note', where, what: `${path} leads to ${shownUrl(client.server.href)}`, todo: '' }];
    if (client.exec !== null && !(await isProgram(client.exec.command)))
      found.push(bad(`${path}: the credential program ${client.exec.command} cannot be run`));
    await createCredentials({ ...client, exec: null }, { clock: createClock(), log: SILENT }).current();
    if (client.cert === null) return found;
    const pem = 'data' in client.cert ? client.cert.data : await bounded(client.cert.file);
    return [...found, ...lifetime(where, 'data' in client.cert ? path : client.cert.file, pem)];
  } catch (error) {
    return [bad(messageOf(error))];
  }
}

async function isProgram(command: string): Promise<boolean> {
  const folders = command.includes('/') ? [''] : (process.env.PATH ?? '').split(delimiter);
  for (const folder of folders) if (await isThere(join(folder, command), constants.X_OK)) return true;
  return false;
}

export async function certificates(config: NodeConfig): Promise<Finding[]> {
  const { enableServer, authentication, tlsCertFile } = config.config;
  const problem = await servingProblem(config);
  if (problem !== null) return [{ level: 'error', ...problem, todo: 'The node does not start before this is mended.' }];
  if (!enableServer) return [];
  const { clientCAFile } = authentication.x509;
  return [
    ...(await fromFile('tlsCertFile (--tls-cert-file)', tlsCertFile, lifetime)),
    ...(await pair(tlsCertFile === '' ? '--cert-dir' : 'tlsPrivateKeyFile (--tls-private-key-file)', servingFiles(config))),
    ...(await fromFile('authentication.x509.clientCAFile (--client-ca-file)', clientCAFile, authorities)),
  ];
}

async function fromFile(where: string, path: string, look: (where: string, path: string, pem: Buffer) => Finding[]): Promise<Finding[]> {
  if (path === '') return [];
  try {
    return look(where, path, await bounded(path));
  } catch (error) {
    return [{ level: 'error', where, what: `${path}: ${messageOf(error)}`, todo: 'Give a file that can be read.' }];
  }
}

/** A pair that is not there yet is made, or comes from the cluster. */
async function pair(where: string, { certFile, keyFile }: { certFile: string; keyFile: string }): Promise<Finding[]> {
  if (!(await isThere(keyFile))) return [];
  try {
    inspect(await bounded(certFile), await bounded(keyFile));
    return [];
  } catch (error) {
    const what = `${certFile} with ${keyFile}: ${messageOf(error)}`;
    return [{ level: 'error', where, what, todo: 'The API of the node is not served before this is mended.' }];
  }
}

/** Clients of each authority that lasts are let in. */
function authorities(where: string, path: string, pem: Buffer): Finding[] {
  const each = (pem.toString('latin1').match(PEM_CERTIFICATE) ?? ['']).map((one) => lifetime(where, path, Buffer.from(one)));
  const one = each.some((found) => found.every(({ level }) => level !== 'error'));
  const said = new Map(each.flat().map((f) => [f.what, f]));
  return [...said.values()].map((f): Finding => (one && f.level === 'error' ? { ...f, level: 'warning' } : f));
}

async function bounded(path: string): Promise<Buffer> {
  return readRegular(path, { bytesMax: FILE_BYTES_MAX });
}

/** What is wrong with the life of the first certificate in a file; nothing where it lasts. */
function lifetime(where: string, path: string, pem: Buffer): Finding[] {
  let endMs: number;
  let beginMs: number;
  try {
    const { validFrom, validTo } = new X509Certificate(pem);
    beginMs = Date.parse(validFrom);
    endMs = Date.parse(validTo);
  } catch (error) {
    return [{ level: 'error', where, what: `${path} holds no certificate: ${messageOf(error)}`, todo: 'Give a PEM file.' }];
  }
  const end = new Date(endMs).toISOString();
  if (endMs <= Date.now())
    return [{ level: 'error', where, what: `the certificate in ${path} ended at ${end}`, todo: 'Renew it, or join the node again.' }];
  if (beginMs > Date.now()) {
    const what = `the certificate in ${path} is not valid before ${new Date(beginMs).toISOString()}`;
    return [{ level: 'error', where, what, todo: 'Set the clock of this machine, or give another certificate.' }];
  }
  if (endMs - Date.now() < SOON_MS)
    return [{ level: 'warning', where, what: `the certificate in ${path} ends at ${end}`, todo: 'Renew it.' }];
  return [];
}
