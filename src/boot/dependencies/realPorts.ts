/** The real ports of a node daemon. */
import type { Cri, Ports } from '../../actors/kernel/ports.ts';
import type { NodeConfig } from '../../machines/config.ts';
import type { PortsInput } from '../steps/context.ts';
import { createClock, createEntropy, createRng, createYield } from './clock.ts';
import { createGrpcCri } from './cri/grpcCri.ts';
import { connectEmbedded, isEmbeddedEndpoint } from './embedded.ts';
import { createHostFs } from './fs.ts';
import { createHost } from './host.ts';
import { createMetrics } from './metrics.ts';
import { createNet } from './net.ts';
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
    host: createHost(),
    log,
    metrics: createMetrics({
      onCollectError: (collector, error) => log.warn({ collector, err: String(error) }, 'a metric could not be collected'),
    }),
  };
  return { ...base, cri: await createCri(config, base) };
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
