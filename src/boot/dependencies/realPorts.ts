/** The real ports of a node daemon. */

import { servingFiles } from '../../actors/edge/options.ts';
import { configuredShutdownGroups } from '../../actors/reclaim/nodeShutdown/options.ts';
import type { NodeConfig } from '../../machines/config/config.ts';
import { messageOf } from '../../machines/text/errors.ts';
import type { Certificates } from '../../ports/certificates.ts';
import type { KubeApi } from '../../ports/kube.ts';
import type { Clock, Cri, Ports, SubordinateIds } from '../../ports/ports.ts';
import { StartError } from '../errors.ts';
import type { PortsInput } from '../steps/context.ts';
import { GIT_VERSION, versionInfo } from '../version.ts';
import { certificateTtl } from './certificates/ttl.ts';
import { createCgroups } from './cgroups/cgroups.ts';
import { createClock, createEntropy, createRng, createYield } from './clock.ts';
import { loadCredentialPrograms } from './credentialPrograms.ts';
import { createGrpcCri } from './cri/grpcCri.ts';
import { createGrpcCsi } from './csi/grpcCsi.ts';
import { createDebugger } from './debugger/debugger.ts';
import { createGrpcDevicePlugins } from './devicePlugins/grpcDevicePlugins.ts';
import { createDocuments } from './documents/documents.ts';
import { createGrpcDra } from './dra/grpcDra.ts';
import { connectEmbedded, isEmbeddedEndpoint, podTunnel } from './embedded.ts';
import { createHostFs } from './fs.ts';
import { createGzipPort } from './gzip.ts';
import { createDiskUsage } from './machine/diskUsage.ts';
import { createHost } from './machine/host.ts';
import { createIptables } from './machine/iptables.ts';
import { createJournal } from './machine/journal.ts';
import { createKernelLog } from './machine/kernelLog.ts';
import { createSys } from './machine/sys.ts';
import { createMetrics } from './metrics/metrics.ts';
import { createMounter } from './mounts/mounter.ts';
import { createNet } from './net/net.ts';
import { proxyOf } from './net/proxy.ts';
import { createGrpcPodResources } from './podResources/grpcPodResources.ts';
import { createGrpcPodsApi } from './podsApi/grpcPodsApi.ts';
import { createProber } from './prober.ts';
import { createProfiler } from './profiler.ts';

export async function createRealPorts(config: NodeConfig, input: PortsInput): Promise<Ports> {
  const { log } = input;
  const clock = createClock();
  const base = {
    clock,
    rng: createRng(),
    entropy: createEntropy(),
    yield: createYield(),
    fs: createHostFs(),
    documents: createDocuments({ entropy: createEntropy() }),
    sys: createSys({ notify: input.notify }),
    net: createNet(input.watchdog),
    prober: createProber(podTunnel(config.config.containerRuntimeEndpoint, config.flags.rootDir)),
    host: createHost({ subordinateIds: await subordinateIds(config, clock) }),
    mounter: createMounter(),
    journal: createJournal(),
    diskUsage: createDiskUsage({ clock: createClock() }),
    gzip: createGzipPort(),
    csi: createGrpcCsi({ clock: createClock() }),
    devicePlugins: createGrpcDevicePlugins({ clock: createClock() }),
    dra: createGrpcDra({ clock: createClock() }),
    podResources: createGrpcPodResources(),
    podsApi: createGrpcPodsApi(),
    kernelLog: createKernelLog(),
    ...(config.config.cgroupsPerQOS || config.config.kubeletCgroups !== '' || config.config.systemCgroups !== ''
      ? { cgroups: createCgroups() }
      : {}),
    ...(configuredShutdownGroups(config).length > 0 ? { inhibitor: (await import('./logind/logind.ts')).createInhibitor({ log }) } : {}),
    // Embedded runtimes share the network of the machine with other work.
    ...(config.config.makeIPTablesUtilChains && !isEmbeddedEndpoint(config.config.containerRuntimeEndpoint)
      ? { iptables: createIptables() }
      : {}),
    profiler: createProfiler(),
    debugger: createDebugger({ folder: `${config.flags.rootDir}/actorlet/debugger`, heartbeat: input.watchdog.shared, log }),
    log,
    metrics: createMetrics({
      ofProcess: true,
      onCollectError: (collector, error) => log.warn({ collector, err: String(error) }, 'a metric could not be collected'),
    }),
  };
  const cluster = await joinCluster(config, base);
  const { enableServer, serverTLSBootstrap, tlsCertFile } = config.config;
  // A certificate that the cluster signs has an actor that tells.
  if (enableServer && (tlsCertFile !== '' || !serverTLSBootstrap)) {
    const certificate = { file: servingFiles(config).certFile };
    certificateTtl({ metrics: base.metrics, clock: base.clock, side: 'server', certificate });
  }
  const credentialPrograms = await loadCredentialPrograms(config.flags, {
    ...{ clock: base.clock, env: process.env },
    tokens: config.gates.enabled('KubeletServiceAccountTokenForCredentialProviders'),
  });
  return {
    ...base,
    cri: await createCri(config, base),
    ...cluster,
    ...(credentialPrograms === undefined ? {} : { credentialPrograms }),
  };
}

/** Embedded runtimes make no user namespaces for pods. */
async function subordinateIds({ config: c }: NodeConfig, clock: Clock): Promise<SubordinateIds | null> {
  if (isEmbeddedEndpoint(c.containerRuntimeEndpoint)) return null;
  const { loadSubordinateIds } = await import('./machine/subordinateIds.ts');
  return loadSubordinateIds({ clock, env: process.env, idsPerPod: c.userNamespaces.idsPerPod, maxPods: c.maxPods });
}

async function createCri(config: NodeConfig, base: Omit<Ports, 'cri'>): Promise<Cri> {
  const { containerRuntimeEndpoint: endpoint, imageServiceEndpoint } = config.config;
  if (isEmbeddedEndpoint(endpoint)) {
    const { rootDir } = config.flags;
    return (await connectEmbedded({ endpoint, rootDir, execPath: process.execPath, ...base })).cri;
  }
  return createGrpcCri({
    endpoint,
    ...(imageServiceEndpoint === '' ? {} : { imageEndpoint: imageServiceEndpoint }),
    log: base.log,
    clock: base.clock,
  });
}

export interface JoinConfig {
  flags: Pick<NodeConfig['flags'], 'kubeconfig' | 'bootstrapKubeconfig' | 'certDir'>;
  config: Pick<NodeConfig['config'], 'kubeAPIQPS' | 'kubeAPIBurst' | 'eventRecordQPS' | 'eventBurst' | 'rotateCertificates'>;
}

/** Nothing in standalone mode, which then loads no TLS either. Whether the server can be reached is not asked here. */
export async function joinCluster(
  config: JoinConfig,
  base: Pick<Ports, 'clock' | 'fs' | 'log'> & Partial<Pick<Ports, 'metrics'>>,
): Promise<{ kube?: KubeApi; certificates?: Certificates }> {
  const { kubeconfig, bootstrapKubeconfig, certDir } = config.flags;
  if (kubeconfig === '') return {};
  const { chooseCredentials } = await import('./kube/choose.ts');
  const { createCredentials } = await import('./kube/credentials.ts');
  const { createKubeApi } = await import('./kube/kubeApi.ts');
  const { createPki } = await import('./certificates/pki.ts');
  const { kubeAPIQPS, kubeAPIBurst, eventRecordQPS, eventBurst, rotateCertificates } = config.config;
  const { client, kept } = await chooseCredentials({
    ...{ kubeconfig, bootstrapKubeconfig, certDir, rotate: rotateCertificates },
    ...{ nowMs: base.clock.wallMs(), fs: base.fs, log: base.log },
  });
  const outside = { ...base, env: process.env, userAgent: `kubelet/${GIT_VERSION} (${versionInfo().platform ?? ''})` };
  if (kept === null && client.cert !== null && base.metrics !== undefined) {
    certificateTtl({ metrics: base.metrics, clock: base.clock, side: 'client', certificate: client.cert });
  }
  try {
    // Files that cannot be read now are a mistake of who starts the node; later on they may be in rotation. A program is
    // not asked: what it asks may be away as the API server may, and what runs here must go on without either.
    if (kept === null) await createCredentials({ ...client, exec: null }, outside).current();
  } catch (error) {
    const what = messageOf(error);
    throw new StartError('the API client cannot be made', [{ where: '--kubeconfig', what }]);
  }
  try {
    proxyOf(client.server, client.proxy, outside.env);
  } catch (error) {
    throw new StartError('the API client cannot be made', [{ where: 'environment', what: messageOf(error) }]);
  }
  const kube = createKubeApi({
    config: client,
    ...outside,
    kube: { qps: kubeAPIQPS, burst: kubeAPIBurst },
    event: { qps: eventRecordQPS, burst: eventBurst },
  });
  // Throttled as any client that says nothing about it; only certificate requests go through it.
  const bootstrap = kept?.bootstrap ?? null;
  const limits = { kube: { qps: 0, burst: 0 }, event: { qps: 0, burst: 0 } };
  const first = bootstrap === null ? null : createKubeApi({ config: bootstrap, ...outside, ...limits });
  return { kube, certificates: { ...createPki(), client: kept === null ? null : { ...kept, bootstrap: first } } };
}
