/** Invariants about what containers are given of claims and images, and with whose credentials images are pulled. */

import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';

import { repositoryOf } from '@actorlet/kubelet/machines/runtime/imagePuller/credentialProviders.ts';
import { locationMatches } from '@actorlet/kubelet/machines/runtime/imagePuller/keyring.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { CLAIM_VOLUME } from '../../nemesis/draws/pods/named.ts';
import { IMAGE_VOLUME } from '../../nemesis/draws/pods/volumes.ts';
import { claimedPath } from '../../nemesis/workload/objectBodies.ts';
import { type Checker, podOf, targetOf } from '../checker.ts';

interface Created {
  config?: { metadata?: { name?: string }; mounts?: readonly { containerPath?: string; hostPath?: string; image?: { image?: string } }[] };
}

/** A container that mounts a claim gets what that claim's volume holds, after the claim was bound; one that mounts an image gets that. */
export function claimsComeFirst(): Checker {
  const bound = new Set<string>();
  return {
    name: 'claims-come-first',
    object(_, { resource, object }) {
      if (resource === 'persistentvolumeclaims' && isRecord(object.status) && object.status.phase === 'Bound')
        bound.add(object.metadata.name);
      return undefined;
    },
    arrived(s, call) {
      if (call.method !== 'CreateContainer') return undefined;
      const { uid } = targetOf(call, s.node.runtime.hollow.dump());
      const { config } = call.req as Created;
      const name = config?.metadata?.name ?? '';
      const pod = podOf(s, uid);
      const container = pod?.spec.containers.find((c) => c.name === name);
      const who = `${s.node.name}: ${name} of pod ${uid} is made`;
      for (const mount of container?.volumeMounts ?? []) {
        const volume = pod?.spec.volumes?.find((v) => v.name === mount.name);
        const given = config?.mounts?.find((m) => m.containerPath === mount.mountPath);
        if (mount.name === IMAGE_VOLUME && (given?.image?.image ?? '') === '') return `${who} without the image that it mounts`;
        if (mount.name !== CLAIM_VOLUME) continue;
        const claim = isRecord(volume?.persistentVolumeClaim) ? String(volume.persistentVolumeClaim.claimName) : '';
        if (!bound.has(claim)) return `${who}, and its claim ${claim} was never bound`;
        // Mounted from there, or a hostPath, which is given itself.
        const path = given?.hostPath;
        const source = s.node.mounts.table.find((m) => m.path === path)?.source ?? path;
        if (source !== claimedPath(claim)) return `${who} with ${source ?? 'nothing'} in place of what claim ${claim} is of`;
      }
      return undefined;
    },
  };
}

/** Fair for this long, whatever was known of a secret is known anew, also where a clock that was wrong hid that a certificate had ended. */
const FAIR_MS = 120_000;

/** An image is pulled with credentials only of a secret that its pod names, or of a program that gave them for it, and in fair weather with those. */
export function pullsHaveTheirKeys(): Checker {
  const versions = new Map<string, Set<string>>();
  const sinceMs = new Map<string, number>();
  return {
    name: 'pulls-have-their-keys',
    object(s, { resource, type, object }) {
      const password = resource === 'secrets' ? passwordOf(object) : undefined;
      if (password === undefined) return undefined;
      const { name } = object.metadata;
      versions.set(name, (versions.get(name) ?? new Set()).add(password));
      if (type === 'DELETED') sinceMs.delete(name);
      else if (!sinceMs.has(name)) sinceMs.set(name, s.monoMs);
      return undefined;
    },
    pulls(s, call) {
      const { auth, image } = call.req as { auth?: { password?: string } | null; image?: { image?: string } };
      const { uid } = targetOf(call, s.node.runtime.hollow.dump());
      const pod = podOf(s, uid);
      // Its source has taken this pod back meanwhile.
      if (pod === undefined) return undefined;
      const names = (pod.spec.imagePullSecrets ?? []).map((one) => one.name ?? '');
      const what = `${s.node.name}: ${image?.image ?? ''} for pod ${uid} is pulled`;
      const { password = '' } = auth ?? {};
      const ofProgram = s.node.beside.programs?.given.get(password);
      if (ofProgram !== undefined)
        return locationMatches(ofProgram.key, repositoryOf(image?.image ?? '')?.repository ?? '')
          ? undefined
          : `${what} with what program ${ofProgram.provider} gave for ${ofProgram.key}`;
      if (password !== '')
        return names.some((name) => versions.get(name)?.has(password) === true)
          ? undefined
          : `${what} with credentials of no secret of its own`;
      const fairMs = s.environment.fairSinceMs() + FAIR_MS;
      const known = names.filter((name) => (sinceMs.get(name) ?? Number.POSITIVE_INFINITY) + FAIR_MS < s.monoMs);
      return known.length > 0 && fairMs < s.monoMs ? `${what} by nobody, and ${known.join(', ')} has been there all the time` : undefined;
    },
  };
}

/** Undefined: not of a registry. */
function passwordOf(object: KubeObject): string | undefined {
  const text = isRecord(object.data) ? object.data['.dockerconfigjson'] : undefined;
  const auth = typeof text === 'string' ? /"auth":"([^"]*)"/.exec(atob(text))?.[1] : undefined;
  return auth === undefined ? undefined : atob(auth).slice('puller:'.length);
}
