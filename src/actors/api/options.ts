/** What the actors that speak to the API server are made of, from the configuration. */
import { namesAddresses } from '../../machines/api/node/nodeAddresses.ts';
import type { NodeConfig } from '../../machines/config/config.ts';
import type { NodeFacts } from '../../machines/nodeFacts.ts';
import { declaredFeatures } from '../../machines/pods/admission/ability/declaredFeatures.ts';
import type { CertificateOptions } from './certificates/certificate.ts';
import type { LeaseOptions } from './lease.ts';
import type { NodeStatusOptions } from './nodeStatus.ts';
import type { PodWritersOptions } from './podWriters.ts';

export interface ApiLayerOptions {
  nodeStatus: NodeStatusOptions;
  lease: LeaseOptions;
  /** Certificates that this node gets from the cluster. */
  certificates: readonly CertificateOptions[];
  podWriters: PodWritersOptions;
}

export function apiLayerOptions(
  config: NodeConfig,
  facts: NodeFacts,
  said: Pick<NodeStatusOptions, 'kubeletVersion' | 'startedMs'>,
): ApiLayerOptions {
  const { config: c } = config;
  const durationMs = c.nodeLeaseDurationSeconds * 1000;
  const timeoutMs = Math.min(c.nodeStatusUpdateFrequency, durationMs);
  return {
    nodeStatus: nodeStatusOptions(config, facts, { ...said, timeoutMs }),
    lease: { nodeName: facts.nodeName, durationMs, timeoutMs },
    certificates: certificateOptions(config, facts.nodeName),
    podWriters: { podsMax: c.maxPods },
  };
}

function nodeStatusOptions(
  config: NodeConfig,
  facts: NodeFacts,
  said: Pick<NodeStatusOptions, 'kubeletVersion' | 'startedMs' | 'timeoutMs'>,
): NodeStatusOptions {
  const { config: c, flags, gates } = config;
  return {
    ...said,
    declaredFeatures: declaredHere(gates),
    identity: nodeIdentity(config, facts.nodeName),
    register: c.registerNode,
    updateFrequencyMs: c.nodeStatusUpdateFrequency,
    reportFrequencyMs: c.nodeStatusReportFrequency,
    // Where nobody named one, the cloud's controller finds them by the host name.
    addresses: flags.cloudProvider === 'external' && flags.nodeIPs.length === 0 ? [] : facts.hostIPs,
    capacity: facts.capacity,
    allocatable: facts.allocatable,
    needed: c.localStorageCapacityIsolation ? ['ephemeral-storage'] : [],
    swapBytes: facts.memoryControl?.swapBytes ?? 0,
    port: c.enableServer ? c.port : 0,
    imagesMax: c.nodeStatusMaxImages,
  };
}

/** Undefined: the node declares none, and asks no pod for any. */
export function declaredHere(gates: NodeConfig['gates']): readonly string[] | undefined {
  return gates.enabled('NodeDeclaredFeatures') ? declaredFeatures((gate) => gates.enabled(gate)) : undefined;
}

export function nodeIdentity({ config: c, flags }: NodeConfig, name: string): NodeStatusOptions['identity'] {
  return {
    name,
    hostname: name,
    labels: flags.nodeLabels,
    taints: c.registerWithTaints,
    schedulable: flags.registerSchedulable,
    providerID: c.providerID,
    externalCloud: flags.cloudProvider === 'external',
    providedIPs: flags.cloudProvider === 'external' && namesAddresses(flags.nodeIPs) ? flags.nodeIPs.join(',') : '',
    controllerAttachDetach: c.enableControllerAttachDetach,
  };
}

function certificateOptions({ config: c, flags, gates }: NodeConfig, nodeName: string): CertificateOptions[] {
  const both = { nodeName, dir: flags.certDir, dnsOnly: gates.enabled('AllowDNSOnlyNodeCSR') };
  const client = c.rotateCertificates || flags.bootstrapKubeconfig !== '';
  const serving = c.serverTLSBootstrap && c.enableServer && c.tlsCertFile === '';
  return [
    ...(client ? [{ ...both, use: 'client' as const, rotate: c.rotateCertificates }] : []),
    ...(serving ? [{ ...both, use: 'serving' as const, rotate: true }] : []),
  ];
}
