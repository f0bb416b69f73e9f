/** The configuration of a daemon on a simulated machine. */

import type { NodeConfig } from '../../../machines/config/config.ts';
import { defaultNodeConfig } from '../../../machines/config/defaults.ts';
import { cpusConfig, kubeReservedOf } from '../host/cpus.ts';
import { memoryConfig } from '../host/memory.ts';
import { identityConfig } from '../identity/identity.ts';
import { KUBECONFIG, MANIFESTS, ONE_MANIFEST, POD_LOGS, PODS_URL, ROOT_DIR } from '../paths.ts';
import type { SimMachine } from './machine.ts';

const IDENTITY_GATES = { ClusterTrustBundle: true, ClusterTrustBundleProjection: true, PodCertificateRequest: true };

export function configOf({ name, tuning, kube, beside }: SimMachine): NodeConfig {
  const shown = identityConfig(tuning);
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
      ...memoryConfig(tuning.throttles),
      ...(kube === undefined ? {} : { registerNode: tuning.registers, configMapAndSecretChangeDetectionStrategy: tuning.objects }),
      ...beside.config,
      ...shown.config,
      ...cpusConfig(tuning, beside.config),
      ...(tuning.podIdentities ? { featureGates: IDENTITY_GATES } : {}),
      ...tuning.shutdown,
    },
  });
}
