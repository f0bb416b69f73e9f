/** The real ports of a node daemon. */
import type { Cri, KubeApi, Ports } from '../../actors/kernel/ports.ts';
import type { NodeConfig } from '../../machines/config.ts';
import { StartError } from '../errors.ts';
import type { PortsInput } from '../steps/context.ts';
import { GIT_VERSION, versionInfo } from '../version.ts';
import { createClock, createEntropy, createRng, createYield } from './clock.ts';
import { createGrpcCri } from './cri/grpcCri.ts';
import { connectEmbedded, isEmbeddedEndpoint } from './embedded.ts';
import { createHostFs } from './fs.ts';
import { createHost } from './host.ts';
import { createMetrics } from './metrics.ts';
import { createMounter } from './mounter.ts';
import { createNet } from './net.ts';
import { createProber } from './prober.ts';
import { createSys } from './sys.ts';

export async function createRealPorts(config: NodeConfig, input: PortsInput): Promise<Ports> {
  const { log } = input;
  const base = {
    clock: createClock(),
    rng: createRng(),
    entropy: createEntropy(),
    yield: createYield(),
    fs: createHostFs(),
    sys: createSys({ notify: input.notify }),
    net: createNet(),
    prober: createProber(),
    host: createHost(),
    mounter: createMounter(),
    log,
    metrics: createMetrics({
      onCollectError: (collector, error) => log.warn({ collector, err: String(error) }, 'a metric could not be collected'),
    }),
  };
  const kube = await createKube(config, base);
  return { ...base, cri: await createCri(config, base), ...(kube === null ? {} : { kube }) };
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

/** Null in standalone mode, which then loads no TLS either. Whether the server can be reached is not asked here. */
async function createKube(config: NodeConfig, base: Pick<Ports, 'clock' | 'log'>): Promise<KubeApi | null> {
  const { kubeconfig } = config.flags;
  if (kubeconfig === '') return null;
  const { createCredentials } = await import('./kube/credentials.ts');
  const { createKubeApi } = await import('./kube/kubeApi.ts');
  const { readKubeConfig } = await import('./kube/kubeconfig.ts');
  const { kubeAPIQPS, kubeAPIBurst, eventRecordQPS, eventBurst } = config.config;
  try {
    const file = await readKubeConfig(kubeconfig);
    // Credentials that cannot be read now are a mistake of who starts the node; later on they may be in rotation.
    await createCredentials(file, base).current();
    return createKubeApi({
      config: file,
      ...base,
      userAgent: `kubelet/${GIT_VERSION} (${versionInfo().platform ?? ''})`,
      kube: { qps: kubeAPIQPS, burst: kubeAPIBurst },
      event: { qps: eventRecordQPS, burst: eventBurst },
    });
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error);
    throw new StartError('the API client cannot be made', [{ where: '--kubeconfig', what }]);
  }
}
