/** Features that nodes declare and pods need (gate NodeDeclaredFeatures, KEP-5328). Each is a gate of its own too. Pure. */

import { sameData } from '../../../data/sameData.ts';
import type { Pod } from '../../../kube/types.ts';
import { isRestartableInit } from '../../../pod/runtime/shouldRestart.ts';

interface Feature {
  /** Not declared here, whatever its gate says: this node has no such thing. */
  absent?: true;
  /** A pod with this can run only where the feature is. Absent: it is asked for in updates alone. */
  pod?(pod: Pod): boolean;
  update?(from: Pod, to: Pod): boolean;
}

/** By name, in the order of the kubelet. */
const FEATURES: Readonly<Record<string, Feature>> = {
  ExtendWebSocketsToKubelet: {},
  InPlacePodLevelResourcesVerticalScaling: {
    update: (from, to) => !sameData(from.spec.resources ?? {}, to.spec.resources ?? {}),
  },
  InPlacePodVerticalScalingInitContainers: {
    update: ({ spec: from }, { spec: to }) =>
      (from.initContainers ?? []).some(
        (c, i) => !isRestartableInit(c) && !sameData(c.resources ?? {}, to.initContainers?.[i]?.resources ?? {}),
      ),
  },
  RestartAllContainersOnContainerExits: {
    pod: ({ spec }) =>
      [...(spec.initContainers ?? []), ...spec.containers].some((c) =>
        (c.restartPolicyRules ?? []).some((rule) => rule.action === 'RestartAllContainers'),
      ),
  },
  UserNamespacesHostNetworkSupport: { absent: true, pod: ({ spec }) => spec.hostNetwork === true && spec.hostUsers === false },
};

export function declaredFeatures(isOn: (gate: string) => boolean): string[] {
  return Object.keys(FEATURES).filter((name) => FEATURES[name]?.absent !== true && isOn(name));
}

const missing = (declared: readonly string[], needs: (feature: Feature) => boolean): string[] =>
  Object.entries(FEATURES).flatMap(([name, feature]) => (needs(feature) && !declared.includes(name) ? [name] : []));

/** What a new pod needs and this node does not declare. */
export function missingFeatures(pod: Pod, declared: readonly string[]): string[] {
  return missing(declared, (f) => f.pod?.(pod) === true);
}
/** The same of a change. */
export function missingForUpdate(from: Pod, to: Pod, declared: readonly string[]): string[] {
  return missing(declared, (f) => f.update?.(from, to) === true);
}

export function missingFeaturesText(features: readonly string[]): string {
  return `Pod requires node features that are not available: ${features.join(', ')}`;
}
