/** What only the running kubelet and the API server know: the kubelet's version, and the configuration that it runs with. Reads alone. */
import { X509Certificate } from 'node:crypto';
import { servingFiles } from '@actorlet/kubelet/actors/edge/options.ts';
import { decodeMerged } from '@actorlet/kubelet/boot/config/decode.ts';
import { applyDefaults } from '@actorlet/kubelet/boot/config/merge.ts';
import { getPath, isTree, type Tree } from '@actorlet/kubelet/boot/config/paths.ts';
import { createKubeApi } from '@actorlet/kubelet/boot/dependencies/kube/kubeApi.ts';
import { CREDENTIAL_BYTES_MAX, type KubeConfigFile } from '@actorlet/kubelet/boot/dependencies/kube/kubeconfig.ts';
import { GIT_VERSION } from '@actorlet/kubelet/boot/version.ts';
import type { KubeletConfiguration, KubeletFlags } from '@actorlet/kubelet/machines/config/config.ts';
import { toV1beta1 } from '@actorlet/kubelet/machines/config/v1beta1.ts';
import type { KubeFailure } from '@actorlet/kubelet/machines/kube/request.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Clock, Logger } from '@actorlet/kubelet/ports/ports.ts';
import { readRegular } from '@actorlet/process/src/regularFile.ts';
import type { HostView } from './hostView.ts';
import { forbiddenReads } from './rights.ts';

export interface Running {
  /** `v1.36.2`; null: not known. */
  version: string | null;
  /** Why not; '' where it is known. */
  noVersion: string;
  /** As /configz says, with every default of that release. Null: not known. */
  config: KubeletConfiguration | null;
  /** Where it was read, or why it was not. */
  configFrom: string;
  /** Fields that it has and this release does not know. */
  unknownFields: string[];
  /** What the credentials may not read, in words. */
  forbidden: string[];
}
export interface AskOptions {
  /** The kubelet's own credentials may read what its pods name, and it is not known beforehand what that is. */
  ownRights: boolean;
  client: KubeConfigFile;
  nodeName: string;
  loaded: { flags: KubeletFlags; config: KubeletConfiguration };
  view: HostView;
  clock: Clock;
  env: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
}

const CALL_MS = 5_000;
const UNLIMITED = { qps: 0, burst: 0 };
/** Credentials are what the log of a client is about; here each failure is an answer in words. */
const quiet: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => quiet, setVerbosity() {} };

/** Never rejects. */
export async function askRunning(o: AskOptions): Promise<Running> {
  const api = apiOf(o, o.client);
  try {
    const node = await api.request({ verb: 'GET', path: `/api/v1/nodes/${encodeURIComponent(o.nodeName)}` }, call(o));
    const version = node.ok ? textAt(node.body, 'status.nodeInfo.kubeletVersion') : null;
    const noVersion = node.ok ? 'the status of the node does not say it' : `the node ${o.nodeName} cannot be read: ${said(node.failure)}`;
    const forbidden = o.ownRights ? await forbiddenReads(api, o.signal) : [];
    const config = await configOf(api, o, internalAddress(node.ok ? node.body : null));
    return { version, noVersion: version === null ? noVersion : '', ...config, forbidden };
  } finally {
    api.close();
  }
}

function apiOf(o: AskOptions, config: KubeConfigFile): KubeApi {
  const userAgent = `actorlet-observe/${GIT_VERSION}`;
  return createKubeApi({ config, clock: o.clock, log: quiet, env: o.env, userAgent, kube: UNLIMITED, event: UNLIMITED });
}
const call = (o: AskOptions): { timeoutMs: number; signal: AbortSignal } => ({ timeoutMs: CALL_MS, signal: o.signal });

/** From the kubelet itself, which needs the right to `nodes/configz` alone; through the API server else, which needs `nodes/proxy`. */
async function configOf(api: KubeApi, o: AskOptions, address: string): Promise<Pick<Running, 'config' | 'configFrom' | 'unknownFields'>> {
  const refusals: string[] = [];
  for (const { where, ask } of [
    { where: 'the /configz of the kubelet', ask: () => fromKubelet(o, address) },
    { where: 'the /configz of the kubelet, through the API server', ask: () => throughServer(api, o) },
  ]) {
    const answer = await ask();
    if ('why' in answer) refusals.push(answer.why);
    else return { ...configured(answer.plain, o.loaded.config), configFrom: where };
  }
  return { config: null, configFrom: [...new Set(refusals)].join('; '), unknownFields: [] };
}

type Answer = { plain: Tree } | { why: string };

async function throughServer(api: KubeApi, o: AskOptions): Promise<Answer> {
  const path = `/api/v1/nodes/${encodeURIComponent(o.nodeName)}/proxy/configz`;
  const answer = await api.request({ verb: 'GET', path }, call(o));
  return answer.ok ? plainOf(answer.body) : { why: `the API server: ${said(answer.failure)}` };
}

async function fromKubelet(o: AskOptions, address: string): Promise<Answer> {
  const { config, flags } = o.loaded;
  if (!config.enableServer) return { why: 'the kubelet serves nothing (enableServer: false)' };
  const { certFile } = servingFiles({ config, flags });
  let certificate: Buffer;
  let name: string | null;
  try {
    certificate = await readRegular(await o.view.at(certFile), { bytesMax: CREDENTIAL_BYTES_MAX });
    name = nameOf(certificate);
  } catch (error) {
    // Without it nothing tells that it is the kubelet who listens there, and credentials go to nobody else.
    return { why: `the certificate of the kubelet's server, ${certFile}, cannot be read: ${messageOf(error)}` };
  }
  const hosts = address === '' ? [listening(config.address)] : [listening(config.address), address];
  let why = '';
  for (const host of hosts) {
    const server = URL.parse(`https://${host.includes(':') ? `[${host}]` : host}:${config.port}`);
    if (server === null) continue;
    // That very certificate, or one that it vouches for.
    const api = apiOf(o, { ...o.client, server, ca: { data: certificate }, tlsServerName: name, insecure: false, proxy: null });
    try {
      const answer = await api.request({ verb: 'GET', path: '/configz' }, call(o));
      if (answer.ok) return plainOf(answer.body);
      why = `the kubelet at ${server.host}: ${said(answer.failure)}`;
      if (answer.failure.code !== 0) break;
    } finally {
      api.close();
    }
  }
  return { why };
}

/** A name that the first certificate of a file is for. */
function nameOf(pem: Buffer): string | null {
  return /(?:DNS|IP Address):([^,\s"]+)/.exec(new X509Certificate(pem).subjectAltName ?? '')?.[1] ?? null;
}
const listening = (address: string): string => (address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '::1' : address);

function plainOf(body: unknown): Answer {
  const plain = isTree(body) ? body.kubeletconfig : undefined;
  return isTree(plain) ? { plain } : { why: 'the answer of /configz holds no kubeletconfig' };
}

/** What an answer leaves out is empty there: its own defaults are in it. Header values are masked in it, so those of the files stay. */
function configured(plain: Tree, files: KubeletConfiguration): Pick<Running, 'config' | 'unknownFields'> {
  const { kind: _, apiVersion: __, ...fields } = plain;
  const { values } = decodeMerged(fields, new Map());
  const config = {
    ...applyDefaults(values, { evictionHard: {}, enforceNodeAllocatable: [] }),
    staticPodURLHeader: files.staticPodURLHeader,
  };
  const known = toV1beta1({ ...config });
  return { config, unknownFields: Object.keys(fields).filter((name) => !Object.hasOwn(known, name) && !Object.hasOwn(config, name)) };
}

function internalAddress(node: unknown): string {
  const addresses = isTree(node) ? getPath(node, 'status.addresses') : undefined;
  const found: unknown = Array.isArray(addresses) ? addresses.find((a: unknown) => isTree(a) && a.type === 'InternalIP') : undefined;
  return isTree(found) && typeof found.address === 'string' ? found.address : '';
}

function textAt(body: unknown, path: string): string | null {
  const value = isTree(body) ? getPath(body, path) : undefined;
  return typeof value === 'string' && value !== '' ? value : null;
}

function said({ code, reason, message }: KubeFailure): string {
  return code === 0 ? `${message || reason}` : `${message || reason} (${code})`;
}

export interface Difference {
  field: string;
  running: string;
  files: string;
  why: string;
}

/**
 * Fields in which the running kubelet differs from what its files and flags come to. Secrets are masked on both sides. What neither
 * sets and has no default here, such as the certificate that a kubelet makes for itself, it has filled in.
 */
export function differencesOf(
  running: KubeletConfiguration,
  files: KubeletConfiguration,
  { setBy, changed }: { setBy(path: string): string | null; changed: readonly string[] },
): Difference[] {
  const [there, here] = [leaves(toV1beta1(running)), leaves(toV1beta1(files))];
  return [...new Set([...there.keys(), ...here.keys()])].sort().flatMap((field) => {
    const [a = 'not set', b = 'not set'] = [there.get(field), here.get(field)];
    const by = setBy(field);
    if (a === b || (by === null && !here.has(field))) return [];
    const why =
      changed.length > 0
        ? `${changed.join(', ')} changed after the kubelet was started`
        : by === null
          ? 'no file and no flag sets it: the kubelet has another default, or found it out by itself'
          : `${by} sets it, and the kubelet runs with something else`;
    return [{ field, running: a, files: b, why }];
  });
}

/** Maps of resources and lists are values of their own. */
function leaves(tree: Readonly<Record<string, unknown>>, under = ''): Map<string, string> {
  const out = new Map<string, string>();
  for (const [key, value] of Object.entries(tree)) {
    const path = under === '' ? key : `${under}.${key}`;
    if (isTree(value)) for (const [p, v] of leaves(value, path)) out.set(p, v);
    else out.set(path, typeof value === 'string' ? value : JSON.stringify(value));
  }
  return out;
}
