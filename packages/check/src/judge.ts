/** Whether a static pod would run: by the admission of the pod manager, then by an embedded runtime. Changes nothing. */

import { lstatSync } from 'node:fs';
import { allocationOptions, offered } from '@actorlet/kubelet/actors/allocation/options.ts';
import { declaredHere, nodeIdentity } from '@actorlet/kubelet/actors/api/options.ts';
import { nodeNameOf, readNodeFacts } from '@actorlet/kubelet/actors/nodeFacts.ts';
import { abilityOf, ownPlacement } from '@actorlet/kubelet/actors/pods/manager/facts.ts';
import { createClock } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import { createHostFs } from '@actorlet/kubelet/boot/dependencies/fs.ts';
import { createHost } from '@actorlet/kubelet/boot/dependencies/machine/host.ts';
import { allocationOrder, deviceRequests } from '@actorlet/kubelet/machines/allocation/devices/allocate.ts';
import { CHECKPOINT_FILE, decodeCheckpoint } from '@actorlet/kubelet/machines/allocation/devices/checkpoint.ts';
import type { NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import type { Container } from '@actorlet/kubelet/machines/kube/podTable.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import type { Volume } from '@actorlet/kubelet/machines/kube/volumeTable.ts';
import type { NodeFacts } from '@actorlet/kubelet/machines/nodeFacts.ts';
import { containerMounts, type MountedVolume } from '@actorlet/kubelet/machines/pod/volumes/containerMounts.ts';
import { admit, type Refusal, unsupported } from '@actorlet/kubelet/machines/pods/admission/admission.ts';
import { generateContainerConfig } from '@actorlet/kubelet/machines/pods/workers/config/containerConfig.ts';
import { generateSandboxConfig } from '@actorlet/kubelet/machines/pods/workers/config/sandboxConfig.ts';
import { partOf } from '@actorlet/kubelet/machines/shape/lenient.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { ContainerConfig, PodSandboxConfig } from '@actorlet/kubelet/machines/wire/cri.ts';
import { readRegular } from '@actorlet/process/src/regularFile.ts';

/** Why a pod would not run, as what it would be: `is refused: ...`. Null: it would. Earlier pods hold their room. */
export type Judge = (pod: Pod) => string | null;

/** What the runtime said of itself. */
export interface PodsOfRuntime {
  /** It gives containers exactly the groups that a pod lists, where that is asked for. Null: it did not answer. */
  strictGroups: boolean | null;
}
const CHECKPOINT_BYTES_MAX = 16 * 1024 * 1024;
export const UNKNOWN_RUNTIME: PodsOfRuntime = { strictGroups: null };

export async function judgeOf(config: NodeConfig, { strictGroups }: PodsOfRuntime): Promise<Judge> {
  const host = createHost();
  const fs = createHostFs();
  let facts: NodeFacts;
  try {
    const read = await readNodeFacts(config, { host, fs, clock: createClock(), log: { warn: () => {} } });
    facts = { ...read, runtimeName: '', cgroupDriver: 'cgroupfs', recursiveReadOnly: [] };
  } catch (error) {
    // The node does not start; the check of the host says so, too.
    return () => `does not run: ${messageOf(error)}`;
  }
  const { config: c } = config;
  const allocation = allocationOptions(config, { facts: () => facts, host, devicePlugins: true, dra: false, cluster: false });
  const ability = {
    ...abilityOf(host, {
      ...{ allowedUnsafeSysctls: c.allowedUnsafeSysctls, podGroups: c.cgroupsPerQOS, declaredFeatures: declaredHere(config.gates) },
      ...offered(allocation),
    }),
    // What is not known is no reason to refuse.
    strictGroups: strictGroups ?? true,
  };
  const node = ownPlacement(host, nodeIdentity(config, nodeNameOf(config, { host })));
  const { allocatable } = facts;
  const podsMax = Number(allocatable.pods ?? c.maxPods);
  const asked = await runtimeCheck(c.containerRuntimeEndpoint);
  const lacksDevices = await devicesOf(config);
  const others: Pod[] = [];
  const seen: Pod['metadata'][] = [];
  return (pod) => {
    const own = pod.metadata;
    const twin = seen.find(({ uid, name, namespace }) => uid === own.uid || (name === own.name && namespace === own.namespace));
    if (twin !== undefined) return `is ignored: pod ${twin.namespace}/${twin.name} has its ${twin.uid === own.uid ? 'UID' : 'name'}`;
    seen.push(own);
    const refusal = admit({ pod, others, podsMax, allocatable, node, ability }) ?? lacksDevices(pod);
    if (refusal !== null) return `is refused: ${refusal.message}`;
    others.push(pod);
    const why = asked === null ? null : askedOfRuntime(pod, { facts, asked });
    return why === null ? null : `does not run: ${why}`;
  };
}

/** What the device manager refuses. Plugins that registered before may come again, and a cluster's node object may count others. */
async function devicesOf({ flags }: NodeConfig): Promise<(pod: Pod) => Refusal | null> {
  const was = await readRegular(`${flags.rootDir}/device-plugins/${CHECKPOINT_FILE}`, { bytesMax: CHECKPOINT_BYTES_MAX }).catch(() => null);
  let known: readonly string[] = [];
  try {
    known = was === null ? [] : decodeCheckpoint(was.toString()).resources;
  } catch {
    // It is set aside at the start.
  }
  const lacks = (pod: Pod): boolean =>
    allocationOrder(pod).some(({ container }) => deviceRequests(container).some(({ resource }) => !known.includes(resource)));
  return (pod) => (flags.kubeconfig === '' && lacks(pod) ? unsupported(pod, { podGroups: true, extendedResources: false }) : null);
}

/** What an embedded runtime refuses: the very functions it asks itself. @throws with the field that it cannot honour */
interface RuntimeCheck {
  sandbox(config: PodSandboxConfig): void;
  container(config: ContainerConfig, sandbox: PodSandboxConfig): void;
}

/** How an embedded runtime judges a pod. Null: the runtime is another program, or runs whatever it is asked for. */
async function runtimeCheck(endpoint: string): Promise<RuntimeCheck | null> {
  if (endpoint !== 'embedded://process' && endpoint !== 'embedded://oci') return null;
  const { checkContainer, checkSandbox } = await import('@actorlet/runtimes/src/process/container/plan.ts');
  const { createCatalogue } = await import('@actorlet/runtimes/src/process/store/images.ts');
  const { probeIsolation } = await import('@actorlet/runtimes/src/process/probe.ts');
  const isolation = await probeIsolation({ path: process.env.PATH ?? '' });
  const images = createCatalogue(process.execPath, [], isolation.uid);
  const command = (config: ContainerConfig, sandbox: PodSandboxConfig): void => {
    const namespaces = sandbox.linux?.securityContext?.namespaceOptions ?? {};
    checkContainer(config, { isolation, namespaces }, (path) => kindAt(path) ?? 'dir');
  };
  if (endpoint === 'embedded://process')
    return {
      sandbox: (config) => checkSandbox(config, isolation),
      container(config, sandbox) {
        // The words of a pull of a name that no registry has.
        images.pull(config.image.image);
        command(config, sandbox);
      },
    };
  const oci = await import('@actorlet/runtimes/src/oci/bundle/spec.ts');
  return {
    sandbox: (config) => oci.checkPod(config.linux?.securityContext),
    container: (config, sandbox) => (images.has(config.image.image) ? command(config, sandbox) : oci.checkContainer(config)),
  };
}

function kindAt(path: string): 'file' | 'dir' | null {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found === undefined ? null : found.isDirectory() ? 'dir' : 'file';
}

function askedOfRuntime(pod: Pod, { facts, asked }: { facts: NodeFacts; asked: RuntimeCheck }): string | null {
  const sandbox = generateSandboxConfig(pod, { attempt: 0, facts });
  if (!sandbox.ok) return sandbox.message;
  const volumes = new Map((pod.spec.volumes ?? []).map((v) => [v.name, willBe(v, pod, facts)]));
  const containers = [
    ...(pod.spec.initContainers ?? []).map((container) => ({ container, kind: 'init' as const })),
    ...pod.spec.containers.map((container) => ({ container, kind: 'regular' as const })),
  ];
  try {
    asked.sandbox(sandbox.config);
    for (const { container, kind } of containers) {
      const mounts = containerMounts(plainMounts(container), volumes);
      if (!mounts.ok) return mounts.message;
      // Variables may need files of volumes that are not there yet, and no runtime refuses them.
      const made = generateContainerConfig({
        ...{ pod, container: { ...container, env: [], envFrom: [] }, kind, restartCount: 0, facts, mounts: mounts.value },
        ...{ imageRef: container.image ?? '', imageUser: null, podIPs: [] },
      });
      if (!made.ok) return made.message;
      asked.container(made.config, sandbox.config);
    }
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

/** Parts of volumes and images are made at the start: whether they can be is seen then. */
function plainMounts(container: Container): Container {
  const whole = (container.volumeMounts ?? []).map(({ subPath: _, subPathExpr: __, ...mount }) => mount);
  return { ...container, volumeMounts: whole };
}

function willBe(volume: Volume, pod: Pod, facts: NodeFacts): MountedVolume {
  const host = partOf(volume, 'hostPath').path;
  const path = typeof host === 'string' ? host : `${facts.rootDir}/pods/${pod.metadata.uid}/volumes/${volume.name}`;
  return { hostPath: path, readOnly: false, managed: false };
}
