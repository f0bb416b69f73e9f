/** What `--check` finds in files: credentials, certificates, programs, and what the agent before left. Reads only. */

import type { ProviderState } from '@actorlet/kubelet/actors/allocation/provider.ts';
import { PROVIDERS } from '@actorlet/kubelet/actors/allocation/providers.ts';
import { createClock } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import { loadCredentialPrograms } from '@actorlet/kubelet/boot/dependencies/credentialPrograms.ts';
import { isEmbeddedEndpoint } from '@actorlet/kubelet/boot/dependencies/embedded.ts';
import { loadSubordinateIds } from '@actorlet/kubelet/boot/dependencies/machine/subordinateIds.ts';
import { StartError } from '@actorlet/kubelet/boot/errors.ts';
import { openAllocationState } from '@actorlet/kubelet/boot/steps/host/allocationState.ts';
import type { NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { certificates, credentials, isThere } from './certificates.ts';
import type { Finding } from './findings.ts';

export async function checkFiles(config: NodeConfig): Promise<Finding[]> {
  const parts = await Promise.all([credentials(config), certificates(config), refusals(config), leftovers(config)]);
  return parts.flat();
}

/** What the start refuses when it makes its ports: credential programs, which are not run here, and ids of user namespaces. */
async function refusals({ flags, config, gates }: NodeConfig): Promise<Finding[]> {
  const outside = { clock: createClock(), env: process.env };
  const tokens = gates.enabled('KubeletServiceAccountTokenForCredentialProviders');
  const ids = { idsPerPod: config.userNamespaces.idsPerPod, maxPods: config.maxPods };
  const asked = [
    loadCredentialPrograms(flags, { ...outside, tokens }),
    isEmbeddedEndpoint(config.containerRuntimeEndpoint) ? null : loadSubordinateIds({ ...outside, ...ids }),
  ];
  const todo = 'The node does not start before this is mended.';
  return (await Promise.allSettled(asked)).flatMap((answer): Finding[] => {
    if (answer.status === 'fulfilled') return [];
    if (!(answer.reason instanceof StartError)) throw answer.reason;
    return answer.reason.problems.map((problem) => ({ level: 'error', ...problem, todo }));
  });
}

async function leftovers(config: NodeConfig): Promise<Finding[]> {
  const { rootDir } = config.flags;
  const found: Finding[] = [];
  for (const [name, what] of [
    ['device-plugins/kubelet_internal_checkpoint', 'devices of running containers are taken over from it'],
    ['pods', 'running pods below it are taken over'],
    ['dra_manager_state', 'ResourceClaims of running pods are taken over from it'],
    ['allocated_pods_state', 'what running pods were granted is taken over from it'],
  ] as const) {
    const path = `${rootDir}/${name}`;
    if (await isThere(path)) found.push({ level: 'note', where: path, what, todo: '' });
  }
  for (const { state } of PROVIDERS) if (state !== undefined) found.push(...(await stateFindings(config, state)));
  return found;
}

async function stateFindings(config: NodeConfig, state: ProviderState): Promise<Finding[]> {
  try {
    const opened = await openAllocationState(config, state);
    return opened.ok ? [] : [{ level: 'error', where: state.field, what: opened.message, todo: 'Drain the node and remove the file.' }];
  } catch (error) {
    return [{ level: 'error', where: state.field, what: messageOf(error), todo: '' }];
  }
}
