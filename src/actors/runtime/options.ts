/** What the actors that speak to the container runtime are made of, from the configuration. */
import type { NodeConfig } from '../../machines/config/config.ts';
import { VERIFICATION_POLICIES } from '../../machines/config/words.ts';
import { builtInto } from '../../machines/runtime/imagePuller/builtIn.ts';
import { pullRecordsDir } from '../../machines/runtime/imagePuller/messages.ts';
import { DEFAULT_VERIFICATION } from '../../machines/runtime/imagePuller/pullRecords.ts';
import type { CriLinkOptions } from './cri/cri.ts';
import type { ImagePullerOptions } from './imagePuller/imagePuller.ts';
import type { VerificationOptions } from './imagePuller/pullRecords.ts';
import type { PlegOptions } from './pleg/pleg.ts';

export interface RuntimeOptions {
  cri: CriLinkOptions;
  images: ImagePullerOptions;
  pleg: PlegOptions;
  /** False where there is no kernel to listen to. */
  oomWatcher: boolean;
}

export function runtimeOptions(config: NodeConfig, kernelLog: boolean): RuntimeOptions {
  const { config: c } = config;
  const runtimeRequestTimeoutMs = c.runtimeRequestTimeout;
  return {
    cri: { runtimeRequestTimeoutMs },
    images: {
      runtimeRequestTimeoutMs,
      serializeImagePulls: c.serializeImagePulls,
      maxParallelImagePulls: c.maxParallelImagePulls,
      registryPullQPS: c.registryPullQPS,
      registryBurst: c.registryBurst,
      isBuiltIn: builtInto(c.containerRuntimeEndpoint),
      rootDir: config.flags.rootDir,
      verification: verificationOptions(config),
    },
    pleg: { runtimeRequestTimeoutMs },
    oomWatcher: kernelLog,
  };
}

function verificationOptions({ config: c, flags, gates }: NodeConfig): VerificationOptions | null {
  if (!gates.enabled('KubeletEnsureSecretPulledImages')) return null;
  const policy = VERIFICATION_POLICIES.find((p) => p === c.imagePullCredentialsVerificationPolicy) ?? DEFAULT_VERIFICATION;
  return { policy, allowlist: c.preloadedImagesVerificationAllowlist, dir: pullRecordsDir(flags.rootDir) };
}
