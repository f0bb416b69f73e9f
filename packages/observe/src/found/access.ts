/** With which credentials an observer reads the API: its own where it has some, those of the kubelet else. It writes no file. */
import { X509Certificate } from 'node:crypto';
import { stat } from 'node:fs/promises';
import {
  CREDENTIAL_BYTES_MAX,
  type KubeConfigFile,
  type Material,
  parseKubeConfig,
  readKubeConfig,
} from '@actorlet/kubelet/boot/dependencies/kube/kubeconfig.ts';
import type { KubeletConfiguration, KubeletFlags } from '@actorlet/kubelet/machines/config/config.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { readRegular } from '@actorlet/process/src/regularFile.ts';
import { stringify } from 'yaml';
import type { HostView } from './hostView.ts';

export interface Access {
  /** `given`: by `--kubeconfig` of the observer. `none`: the kubelet stands alone, or its kubeconfig cannot be used. */
  kind: 'given' | 'serviceAccount' | 'kubelet' | 'none';
  client: KubeConfigFile | null;
  /** The file at `client.path` says the same. */
  asFile: boolean;
  /** In words, for the start. */
  what: string;
}

export interface AccessOptions {
  /** `--kubeconfig` of the observer; '' = none. */
  own: string;
  /** Not with the service account of this pod. */
  asKubelet: boolean;
  env: Readonly<Record<string, string | undefined>>;
  /** For tests; default: where every pod has its service account. */
  accountFolder?: string;
}

const ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';
/** The pair that the kubelet renews, and the one of its server. */
const CLIENT_PAIR = 'kubelet-client-current.pem';

/** Never rejects: what cannot be used is in words. */
export async function accessOf(
  { flags, config }: { flags: KubeletFlags; config: KubeletConfiguration },
  view: HostView,
  o: AccessOptions,
): Promise<Access> {
  try {
    if (o.own !== '') return { kind: 'given', client: await readKubeConfig(o.own), asFile: true, what: `those of ${o.own}` };
    const account = o.asKubelet ? null : await accountOf(o.env, o.accountFolder ?? o.env.ACTORLET_ACCOUNT ?? ACCOUNT_FOLDER);
    if (account !== null)
      return { kind: 'serviceAccount', client: account, asFile: false, what: 'those of the service account of this pod' };
    if (flags.kubeconfig === '')
      return { kind: 'none', client: null, asFile: false, what: 'none: the kubelet stands alone, without a kubeconfig' };
    const client = await kubeletClient({ flags, config }, view);
    const asFile = (await view.at(flags.kubeconfig)) === flags.kubeconfig && (await sameFiles(client, flags.kubeconfig));
    return { kind: 'kubelet', client, asFile, what: `those of the kubelet (${flags.kubeconfig}), for reading` };
  } catch (error) {
    return { kind: 'none', client: null, asFile: false, what: `none: ${messageOf(error)}` };
  }
}

/** Null: this is no pod, or one without a service account. */
async function accountOf(env: AccessOptions['env'], folder: string): Promise<KubeConfigFile | null> {
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '443' } = env;
  if (host === '' || !(await isThere(`${folder}/token`))) return null;
  const server = URL.parse(`https://${host.includes(':') ? `[${host}]` : host}:${port}`);
  if (server === null) throw new Error(`KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT give no address: ${host}, ${port}`);
  return {
    ...{ path: folder, server, ca: { file: `${folder}/ca.crt` }, token: { file: `${folder}/token` } },
    ...{ tlsServerName: null, insecure: false, proxy: null, cert: null, key: null, exec: null },
  };
}

async function kubeletClient(
  { flags, config }: { flags: KubeletFlags; config: KubeletConfiguration },
  view: HostView,
): Promise<KubeConfigFile> {
  const path = flags.kubeconfig;
  let text: string;
  try {
    text = (await readRegular(await view.at(path), { bytesMax: CREDENTIAL_BYTES_MAX })).toString('utf8');
  } catch (error) {
    throw new Error(`the kubeconfig of the kubelet, ${path}, cannot be read: ${messageOf(error)}`);
  }
  const file = parseKubeConfig(text, path);
  // A kubelet that renews its certificate has left the one in its kubeconfig behind.
  const renewed = { file: await view.at(`${flags.certDir}/${CLIENT_PAIR}`) };
  const rotated = config.rotateCertificates && file.cert !== null && (await isThere(renewed.file));
  const [cert, key] = rotated ? [renewed, renewed] : [await seen(file.cert, view), await seen(file.key, view)];
  return { ...file, ca: await seen(file.ca, view), token: await seen(file.token, view), cert, key };
}

/** Whether nothing was found in another place than the file says. */
async function sameFiles(client: KubeConfigFile, path: string): Promise<boolean> {
  const written = await readKubeConfig(path);
  return (['ca', 'cert', 'key', 'token'] as const).every((name) => JSON.stringify(written[name]) === JSON.stringify(client[name]));
}

async function seen(material: Material | null, view: HostView): Promise<Material | null> {
  return material === null || 'data' in material ? material : { file: await view.at(material.file) };
}

/** The node that a client certificate is of, `system:node:NAME`. Null: it is of none, or there is none that can be read. */
export async function nodeOfCertificate(client: KubeConfigFile | null): Promise<string | null> {
  if (client === null || client.cert === null) return null;
  try {
    const pem = 'data' in client.cert ? client.cert.data : await readRegular(client.cert.file, { bytesMax: CREDENTIAL_BYTES_MAX });
    return /^CN=system:node:(.+)$/m.exec(new X509Certificate(pem).subject)?.[1] ?? null;
  } catch {
    // What is wrong with it the first request says.
    return null;
  }
}

/** A kubeconfig of the same credentials. Files stay files, so that what is renewed in them counts; it holds no secret of its own then. */
export function kubeconfigOf(client: KubeConfigFile): string {
  const material = (name: string, file: string, value: Material | null): Record<string, string> =>
    value === null ? {} : 'file' in value ? { [file]: value.file } : { [name]: value.data.toString(name === 'token' ? 'utf8' : 'base64') };
  const cluster = {
    server: client.server.href.replace(/\/$/, ''),
    ...material('certificate-authority-data', 'certificate-authority', client.ca),
    ...(client.tlsServerName === null ? {} : { 'tls-server-name': client.tlsServerName }),
    ...(client.insecure ? { 'insecure-skip-tls-verify': true } : {}),
    ...(client.proxy === null ? {} : { 'proxy-url': client.proxy.href }),
  };
  const user = {
    ...material('client-certificate-data', 'client-certificate', client.cert),
    ...material('client-key-data', 'client-key', client.key),
    ...material('token', 'tokenFile', client.token),
    ...(client.exec === null ? {} : { exec: { ...client.exec, interactiveMode: 'Never' } }),
  };
  return stringify({
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'observe' },
    clusters: [{ name: 'cluster', cluster }],
    users: [{ name: 'user', user }],
    contexts: [{ name: 'observe', context: { cluster: 'cluster', user: 'user' } }],
  });
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
