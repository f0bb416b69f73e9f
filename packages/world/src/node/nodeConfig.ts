/** The configuration of a daemon on a simulated machine. */

import type { KubeletConfiguration, NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import { defaultNodeConfig } from '@actorlet/kubelet/machines/config/defaults.ts';
import { cpusConfig, kubeReservedOf } from '../host/cpus.ts';
import { memoryConfig } from '../host/memory.ts';
import { identityConfig } from '../identity/identity.ts';
import { KUBECONFIG, MANIFESTS, ONE_MANIFEST, POD_LOGS, PODS_URL, ROOT_DIR } from '../paths.ts';
import type { SimMachine } from './machine.ts';

const IDENTITY_GATES = { ClusterTrustBundle: true, ClusterTrustBundleProjection: true, PodCertificateRequest: true };

export function configOf({ name, tuning, kube, beside }: SimMachine): NodeConfig {
  const shown = identityConfig(tuning);
  const parts: Partial<KubeletConfiguration>[] = [
    memoryConfig(tuning.throttles),
    beside.config,
    shown.config,
    cpusConfig(tuning),
    tuning.podIdentities ? { featureGates: IDENTITY_GATES } : {},
  ];
  return defaultNodeConfig({
    flags: {
      rootDir: ROOT_DIR,
      hostnameOverride: name,
      adminSocket: `${ROOT_DIR}/actorlet.sock`,
      kubeconfig: kube === undefined ? '' : KUBECONFIG,
      ...shown.flags,
    },
    config: {
      cgroupsPerQOS: tuning.cgroups !== null,
      staticPodPath: tuning.oneManifest ? ONE_MANIFEST : MANIFESTS,
      staticPodURL: tuning.http ? PODS_URL : '',
      podLogsDir: POD_LOGS,
      resolvConf: '',
      readOnlyPort: 10_255,
      runtimeRequestTimeout: tuning.requestTimeoutMs,
      syncFrequency: tuning.syncFrequencyMs,
      fileCheckFrequency: tuning.fileCheckMs,
      httpCheckFrequency: tuning.httpCheckMs,
      ...(tuning.eviction ?? { evictionHard: {} }),
      ...tuning.images,
      ...(tuning.cgroups === null ? {} : { podPidsLimit: tuning.cgroups.podPidsLimit, kubeReserved: kubeReservedOf(tuning) }),
      ...(kube === undefined ? {} : { registerNode: tuning.registers, configMapAndSecretChangeDetectionStrategy: tuning.objects }),
      ...(Object.assign({}, ...parts) as Partial<KubeletConfiguration>),
      featureGates: Object.assign({}, ...parts.map((part) => part.featureGates)) as Record<string, boolean>,
      ...tuning.shutdown,
    },
  });
}
