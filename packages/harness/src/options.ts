/** What a test node is made from: options checked and completed, its folders, its configuration file. */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { didYouMean } from '@actorlet/kubelet/machines/text/nearest.ts';
import { type Charge, RUNTIMES, type Runtime } from './reaper/charge.ts';

export interface NodeOptions {
  /**
   * `process` (default): pods are processes of this machine (docs/embedded-runtime.md has the images). `oci`: OCI images too, with
   * or without root, where crun, skopeo and umoci are installed. `hollow`: simulated
   * containers scripted by annotations; they end with the daemon. `containerd`: a runtime of the tests' own at `endpoint`.
   */
  runtime?: Runtime;
  /** Socket of the runtime, as a path or `unix://`; for `containerd` only. It must hold no pods. */
  endpoint?: string;
  /** Folder for everything of the node, made if missing; it must be empty, and is removed at the end. Default: a new temporary one. */
  rootDir?: string;
  /** Name of the node, which pods carry behind theirs. Default `test-` and eight hex digits. */
  name?: string;
  /** Lets `inject` cause faults. Default true. */
  faultInjection?: boolean;
  /** Opens the kubelet's read-only port (/pods, /metrics) on a free port of 127.0.0.1, see `node.url`. Default false: no port at all. */
  readOnlyPort?: boolean;
  /** Further fields of the KubeletConfiguration. */
  config?: Readonly<Record<string, unknown>>;
  /** Further flags of the daemon. */
  flags?: readonly string[];
  /** For the daemon, over those of this process. */
  env?: Readonly<Record<string, string>>;
  /** How long waits wait that do not say so themselves. Default 30000. */
  timeoutMs?: number;
  /** How long the node may take to come up. Default 60000. */
  startTimeoutMs?: number;
  /** Leave the folder (logs, configuration) where it is; pods go all the same. Default: whether ACTORLET_TEST_KEEP is set. */
  keep?: boolean;
}

/** For callers without types. */
const OPTIONS: Readonly<Record<keyof NodeOptions, true>> = {
  ...{ runtime: true, endpoint: true, rootDir: true, name: true, faultInjection: true, readOnlyPort: true },
  ...{ config: true, flags: true, env: true, timeoutMs: true, startTimeoutMs: true, keep: true },
};

export const TIMEOUT_MS = 30_000;
export const START_TIMEOUT_MS = 60_000;
/** Socket addresses hold 108 bytes with the final zero. */
const SOCKET_PATH_BYTES_MAX = 107;
const LONGEST_SOCKET = 'root/sandbox/streaming.sock';
const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

interface Layout {
  dir: string;
  rootDir: string;
  manifests: string;
  podLogs: string;
  configFile: string;
  adminSocket: string;
}

export interface Plan {
  charge: Charge;
  layout: Layout;
}

/** Checks the options and makes the folders. @throws naming the option. */
export function prepare(o: NodeOptions, sandboxEntry: string): Plan {
  for (const name of Object.keys(o))
    if (!(name in OPTIONS)) throw new Error(`${name}: is no option of a test node${didYouMean(name, Object.keys(OPTIONS))}`);
  const runtime = o.runtime ?? 'process';
  if (!RUNTIMES.includes(runtime)) throw new Error(`runtime: ${JSON.stringify(runtime)} is none of ${RUNTIMES.join(', ')}`);
  if ((runtime === 'containerd') !== (o.endpoint !== undefined)) {
    throw new Error(
      runtime === 'containerd'
        ? 'endpoint: runtime containerd needs the socket of a containerd that holds no pods, such as unix:///run/test/containerd.sock'
        : `endpoint: runtime ${runtime} has none; with a runtime of your own say runtime: 'containerd'`,
    );
  }
  const nodeName = o.name ?? `test-${randomBytes(4).toString('hex')}`;
  if (!NAME.test(nodeName))
    throw new Error(`name: ${JSON.stringify(nodeName)} must be lower-case letters, digits and "-", at most 63 characters`);
  const socket = (o.endpoint ?? '').replace(/^unix:\/\//, '');
  if (runtime === 'containerd' && !socket.startsWith('/'))
    throw new Error(`endpoint: ${JSON.stringify(o.endpoint)} is not the path of a socket`);
  const keep = o.keep ?? (process.env.ACTORLET_TEST_KEEP ?? '') !== '';
  const layout = folders(o.rootDir);
  return { layout, charge: { dir: layout.dir, rootDir: layout.rootDir, runtime, socket, nodeName, sandboxEntry, keep } };
}

function folders(given: string | undefined): Layout {
  const base = given === undefined ? tmpdir() : resolve(given);
  const longest = given === undefined ? join(base, 'actorlet-XXXXXX', LONGEST_SOCKET) : join(base, LONGEST_SOCKET);
  if (Buffer.byteLength(longest) > SOCKET_PATH_BYTES_MAX) {
    throw new Error(
      `${given === undefined ? 'TMPDIR' : 'rootDir'}: ${base} is too long: sockets below it (${longest}) may have ${SOCKET_PATH_BYTES_MAX} bytes`,
    );
  }
  if (given !== undefined && existsSync(base) && readdirSync(base).length > 0)
    throw new Error(`rootDir: ${base} is not empty, and it is removed with the node: name a new one`);
  if (given !== undefined) mkdirSync(base, { recursive: true });
  const dir = given === undefined ? mkdtempSync(join(base, 'actorlet-')) : base;
  const rootDir = join(dir, 'root');
  const manifests = join(dir, 'manifests');
  mkdirSync(manifests);
  return {
    dir,
    rootDir,
    manifests,
    podLogs: join(dir, 'logs', 'pods'),
    configFile: join(dir, 'config.yaml'),
    adminSocket: join(rootDir, 'actorlet.sock'),
  };
}

/** Writes the configuration. JSON is YAML. */
export function writeConfig(p: Plan, o: { config: NodeOptions['config']; readOnlyPort: number }): void {
  const { charge, layout } = p;
  const config = {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    containerRuntimeEndpoint: charge.runtime === 'containerd' ? `unix://${charge.socket}` : `embedded://${charge.runtime}`,
    staticPodPath: layout.manifests,
    podLogsDir: layout.podLogs,
    address: '127.0.0.1',
    // Whatever listens on a port can meet somebody else there; the admin socket is enough.
    readOnlyPort: o.readOnlyPort,
    healthzPort: 0,
    healthzBindAddress: '127.0.0.1',
    enableServer: false,
    failSwapOn: false,
    // A node that is thrown away is not worth more than its neighbours.
    oomScoreAdj: 0,
    // Where the machine has no file watches left, listings must do.
    fileCheckFrequency: '1s',
    cgroupsPerQOS: false,
    // The packet filter of the machine is not a test's to change.
    makeIPTablesUtilChains: false,
    enforceNodeAllocatable: [],
    // How full the machine is, is no matter of a test.
    evictionHard: { 'memory.available': '0%' },
    // Nor does it take away from its machine's runtime what others may want.
    imageGCHighThresholdPercent: 100,
    ...o.config,
    // Pods of a cluster are tried out as static ones: a service account that they name is not looked at.
    featureGates: { PreventStaticPodAPIReferences: false, ...Object(o.config?.featureGates) },
  };
  writeFileSync(layout.configFile, JSON.stringify(config, null, 2), { mode: 0o600 });
}

/** A port that was free just now. */
export function freePort(): Promise<number> {
  return new Promise((found, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => (address !== null && typeof address === 'object' ? found(address.port) : reject(new Error('no free port'))));
    });
  });
}
