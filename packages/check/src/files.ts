/** What `--check` finds in files: credentials, certificates, and what the agent before left. Reads only. */

import { X509Certificate } from 'node:crypto';
import { access } from 'node:fs/promises';
import type { ProviderState } from '@actorlet/kubelet/actors/allocation/provider.ts';
import { PROVIDERS } from '@actorlet/kubelet/actors/allocation/providers.ts';
import { readKubeConfig } from '@actorlet/kubelet/boot/dependencies/kube/kubeconfig.ts';
import { openAllocationState } from '@actorlet/kubelet/boot/steps/host/allocationState.ts';
import { servingProblem } from '@actorlet/kubelet/boot/steps/serving.ts';
import type { NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { shownUrl } from '@actorlet/kubelet/machines/text/shownUrl.ts';
import { readRegular } from '@actorlet/process/src/regularFile.ts';
import type { Finding } from './findings.ts';

const FILE_BYTES_MAX = 1024 * 1024;
const SOON_MS = 7 * 24 * 3_600_000;

export async function checkFiles(config: NodeConfig): Promise<Finding[]> {
  const parts = await Promise.all([credentials(config), certificates(config), leftovers(config)]);
  return parts.flat();
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

async function credentials({ flags }: NodeConfig): Promise<Finding[]> {
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

/** It, and the client certificate that it names. */
async function readable(where: string, path: string): Promise<Finding[]> {
  try {
    const client = await readKubeConfig(path);
    const found: Finding[] = [{ level: 'note', where, what: `${path} leads to ${shownUrl(client.server.href)}`, todo: '' }];
    if (client.cert === null) return found;
    const pem = 'data' in client.cert ? client.cert.data : await bounded(client.cert.file);
    return [...found, ...lifetime(where, 'data' in client.cert ? path : client.cert.file, pem)];
  } catch (error) {
    return [{ level: 'error', where, what: messageOf(error), todo: 'Mend the file, or give another.' }];
  }
}

async function certificates(config: NodeConfig): Promise<Finding[]> {
  const { config: c } = config;
  const problem = await servingProblem(config);
  if (problem !== null) return [{ level: 'error', ...problem, todo: 'The node does not start before this is mended.' }];
  const files = [
    { where: 'tlsCertFile (--tls-cert-file)', path: c.enableServer ? c.tlsCertFile : '' },
    { where: 'authentication.x509.clientCAFile (--client-ca-file)', path: c.enableServer ? c.authentication.x509.clientCAFile : '' },
  ];
  const parts = await Promise.all(
    files
      .filter(({ path }) => path !== '')
      .map(async ({ where, path }): Promise<Finding[]> => {
        try {
          return lifetime(where, path, await bounded(path));
        } catch (error) {
          return [{ level: 'error', where, what: `${path}: ${messageOf(error)}`, todo: 'Give a file that can be read.' }];
        }
      }),
  );
  return parts.flat();
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

async function leftovers(config: NodeConfig): Promise<Finding[]> {
  const { rootDir } = config.flags;
  const found: Finding[] = [];
  for (const [name, what] of [
    ['device-plugins/kubelet_internal_checkpoint', 'devices of running containers are taken over from it'],
    ['pods', 'running pods below it are taken over'],
    ['dra_manager_state', 'ResourceClaims of running pods are taken over from it'],
    ['allocated_pods_state', 'what running pods were granted is taken over from it'],
  ] as const) {
    const path = `${rootDir}/${name}`;
    if (await isThere(path)) found.push({ level: 'note', where: path, what, todo: '' });
  }
  for (const { state } of PROVIDERS) if (state !== undefined) found.push(...(await stateFindings(config, state)));
  return found;
}

async function stateFindings(config: NodeConfig, state: ProviderState): Promise<Finding[]> {
  try {
    const opened = await openAllocationState(config, state);
    return opened.ok ? [] : [{ level: 'error', where: state.field, what: opened.message, todo: 'Drain the node and remove the file.' }];
  } catch (error) {
    return [{ level: 'error', where: state.field, what: messageOf(error), todo: '' }];
  }
}
