/**
 * Volumes of drivers, staged and published (resources and volumes 8.17). What is written down comes before the call that it
 * is about, so whatever a call may have done is found and undone, also after a crash.
 */

import { put } from '../../../../machines/data/own.ts';
import { mountsAt } from '../../../../machines/host/mountinfo.ts';
import type { ObjectSource } from '../../../../machines/kube/objects.ts';
import type { Pod } from '../../../../machines/kube/types.ts';
import type { CsiVolume } from '../../../../machines/pod/volumes/kinds/csi.ts';
import { standOf, type VolumeRef, volumeKey } from '../../../../machines/pod/volumes/volumePaths.ts';
import type { VolumeData } from '../../../../machines/services/volumes/csi/data.ts';
import type { DriverRules } from '../../../../machines/services/volumes/csi/driver.ts';
import {
  accessMode,
  attachmentId,
  groupApplies,
  isFinal,
  lifecycleRefusal,
  NO_ATTACHER,
  NO_ROOM,
  NOT_ATTACHED,
  NOT_REPORTED,
  podContext,
  TOKENS_KEY,
  uniqueName,
  volumeCapability,
} from '../../../../machines/services/volumes/csi/volume.ts';
import { contextOption } from '../../../../machines/services/volumes/selinux.ts';
import type { SetUpDone } from '../../../../machines/services/volumes/volumeMachine.ts';
import { messageOf } from '../../../../machines/text/errors.ts';
import { unlinkIfThere } from '../../../../ports/ifThere.ts';
import { CsiError } from '../../../../ports/sockets/csi.ts';
import { lstatIfThere } from '../disk/files.ts';
import { giveForeignTree } from '../disk/group.ts';
import { DIR_MODE } from '../disk/limits.ts';
import type { CsiApi } from './api.ts';
import { type Driver, driverNamed } from './calls.ts';
import { mountLabel } from './labels.ts';
import { type CsiOptions, type Place, placeOf, readData, volumesOnDisk, writeData, writeMarker } from './place.ts';
import { type Leftover, removeLeftovers, removeTarget } from './takeDown.ts';

export interface CsiSetUpOptions extends CsiOptions {
  api: CsiApi;
  objects: ObjectSource | null;
  /** Names of attachable volumes that the API server has been told this node uses. */
  reportedInUse(): readonly string[];
  /** To the events of the pod. */
  warn(pod: Pod, reason: string, message: string): void;
}
export interface CsiJob {
  ref: VolumeRef;
  pod: Pod;
  csi: CsiVolume;
  /** It stands, and its driver wants it published again. */
  again: boolean;
}

function deviceOf(v: Pick<CsiVolume, 'driver' | 'handle'>): string {
  return `${v.driver}^${v.handle}`;
}

export async function setUpCsi(o: CsiSetUpOptions, job: CsiJob, signal: AbortSignal): Promise<SetUpDone> {
  const { csi } = job;
  const who = 'mounter.SetUpAt failed to get CSI client';
  const driver = driverNamed(o, csi.driver, { who, of: job.ref, migrated: csi.migrated === true });
  const rules = await (job.again ? o.api.driverAsListed : o.api.driver)(csi.driver, signal);
  const refusal = lifecycleRefusal(csi, rules);
  if (refusal !== null) throw new Error(`kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: ${refusal}`);
  const attach = csi.lifecycle === 'Persistent' && rules.attachRequired;
  const publishContext = attach ? await attached(o, { ...job, rules }, signal) : {};
  return o.ledger.run(deviceOf(csi), signal, () => publish(o, { ...job, driver, rules, attach, publishContext }, signal));
}

/** What the attacher left for the driver. Rejects until the volume is attached. */
async function attached(
  o: CsiSetUpOptions,
  { ref, csi, rules, again }: CsiJob & { rules: DriverRules },
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  const name = uniqueName(csi);
  if (!o.controllerAttaches) throw new Error(NO_ATTACHER);
  if (o.ledger.use(volumeKey(ref), name)) o.inUseChanged();
  if (!o.reportedInUse().includes(name)) throw new Error(NOT_REPORTED);
  const isAttached = again || (await o.api.attachedToNode(signal)).includes(name);
  // A volume that could not be attached is never among those of the node: only its attachment says that there is no room.
  if (!isAttached && rules.allocatablePeriodMs === null) throw new Error(NOT_ATTACHED);
  const attachment = await o.api.attachment(idOf(o, csi), csi.handle, signal);
  if (attachment.state === 'failed' && attachment.exhausted === true && rules.allocatablePeriodMs !== null) {
    o.exhausted(csi.driver);
    throw new Error(`${attachment.message}: ${NO_ROOM}`);
  }
  if (!isAttached) throw new Error(NOT_ATTACHED);
  if (attachment.state !== 'attached') throw new Error(attachment.message);
  return attachment.publishContext;
}

function idOf(o: CsiOptions, csi: CsiVolume): string {
  const { sha256Hex } = o.ports.entropy;
  return attachmentId({ handle: csi.handle, driver: csi.driver, node: o.facts().nodeName, sha256Hex });
}

interface PublishJob extends CsiJob {
  driver: Driver;
  rules: DriverRules;
  attach: boolean;
  publishContext: Readonly<Record<string, string>>;
}

async function publish(o: CsiSetUpOptions, job: PublishJob, signal: AbortSignal): Promise<SetUpDone> {
  const { ref, pod, csi, driver, rules, attach, publishContext } = job;
  const { fs } = o.ports;
  const place = placeOf(o, ref, csi);
  await refuseSecondPod(o, job);
  const capabilities = await driver.capabilities(signal);
  const mode = accessMode(csi, capabilities);
  if (!mode.ok) throw new Error(mode.message);
  const gid = pod.spec.securityContext?.fsGroup;
  const delegated = gid !== undefined && capabilities.has('VOLUME_MOUNT_GROUP');
  const context = await mountLabel(o, job, deviceOf(csi));
  const labelled = context === '' ? csi : { ...csi, mountOptions: [...csi.mountOptions, contextOption(context)] };
  const capability = volumeCapability(labelled, { mode: mode.value, group: delegated ? String(gid) : '' });
  const ofPod = await tokens(o, job, signal);
  const volumeContext = { ...podContext(csi, pod, rules), ...(rules.tokensInSecrets ? {} : ofPod) };
  const stages = csi.lifecycle === 'Persistent' && capabilities.has('STAGE_UNSTAGE_VOLUME');
  const mustStage = stages && !o.ledger.staged.has(deviceOf(csi));
  const secretsOf = async (which: CsiVolume['stageSecret']) => (which === null ? {} : o.api.secret(which, signal));
  const stageSecrets = mustStage ? await secretsOf(csi.stageSecret) : {};
  const publishSecrets = { ...(await secretsOf(csi.publishSecret)), ...(rules.tokensInSecrets ? ofPod : {}) };

  const held = await readData(fs, o.facts().rootDir, ref);
  if (held !== null && deviceOf(held) !== deviceOf(csi)) {
    throw new Error(`${place.dir} holds volume ${held.handle} of driver ${held.driver}, which is not the one that the pod asks for`);
  }
  const data = dataOf(o, { ...job, context });
  await writeData(fs, csi.block ? place.stageDir : place.dir, data);
  if (csi.block) await linkDevice(o, place);
  const leftover: Leftover = { ref, place, data };
  if (mustStage) {
    await fs.mkdirp(place.staging, DIR_MODE);
    if (!csi.block) await writeData(fs, place.stageDir, data);
    const request = {
      volumeId: csi.handle,
      publishContext,
      stagingTargetPath: place.staging,
      volumeCapability: capability,
      secrets: stageSecrets,
      volumeContext: { ...csi.attributes },
    };
    await undoneIfFinal(o, leftover, () => driver.call('NodeStageVolume', request, signal), { staged: false });
    o.ledger.staged.add(deviceOf(csi));
  }
  if (csi.block) await fs.mkdirp(place.target.slice(0, place.target.lastIndexOf('/')), DIR_MODE);
  const request = {
    volumeId: csi.handle,
    publishContext,
    stagingTargetPath: stages ? place.staging : '',
    targetPath: place.target,
    volumeCapability: capability,
    readonly: csi.readOnly,
    secrets: publishSecrets,
    volumeContext,
  };
  await undoneIfFinal(o, leftover, () => driver.call('NodePublishVolume', request, signal), { staged: stages });
  if (!delegated && groupApplies(csi, rules, gid)) await giveForeignTree(o, { pod, dir: place.target }, signal);
  const done = {
    at: csi.block ? place.link : place.target,
    readOnly: csi.readOnly,
    device: csi.block,
    republish: rules.requiresRepublish,
    ...(context === '' ? {} : { labelled: false as const }),
  };
  const mounted = mountsAt(await o.mounter.list(o.facts().rootDir, place.target), place.target).length > 0;
  await writeMarker(fs, place.marker, { ...done, mounted });
  if (attach) o.log.debug({ uid: ref.uid, volume: ref.name, driver: csi.driver }, 'an attached volume is published');
  return done;
}

function dataOf(o: CsiOptions, { ref, csi, attach, context }: PublishJob & { context: string }): VolumeData {
  return {
    driver: csi.driver,
    handle: csi.handle,
    specName: standOf(ref).name,
    nodeName: o.facts().nodeName,
    attachmentId: csi.lifecycle === 'Persistent' ? idOf(o, csi) : '',
    lifecycle: csi.lifecycle,
    attached: attach,
    context,
    block: csi.block,
  };
}

/** A claim that only one pod may use is held to that here too. */
async function refuseSecondPod(o: CsiOptions, { ref, csi }: CsiJob): Promise<void> {
  if (!csi.accessModes.includes('ReadWriteOncePod')) return;
  const others = (await volumesOnDisk(o.ports.fs, o.facts().rootDir)).filter((v) => v.ref.uid !== ref.uid);
  if (others.some((v) => deviceOf(v.data) === deviceOf(csi))) {
    throw new Error('volume uses the ReadWriteOncePod access mode and is already in use by another pod');
  }
}

/**
 * A failure that leaves nothing to wait for leaves nothing behind; any other may still have its effect, and stays to be undone.
 * `staged`: the device is kept for the next attempt, and what is written down of it says that it must be given up.
 */
async function undoneIfFinal(
  o: CsiOptions,
  leftover: Leftover,
  call: () => Promise<unknown>,
  { staged }: { staged: boolean },
): Promise<void> {
  try {
    await call();
  } catch (error) {
    // A volume that was published before is left to the containers that have it.
    const ready = await lstatIfThere(o.ports.fs, `${leftover.place.marker}/ready`);
    if (error instanceof CsiError && isFinal(error.code) && ready === null) {
      try {
        await (staged ? removeTarget(o, leftover.place, leftover.data) : removeLeftovers(o, leftover, null));
      } catch (left) {
        const err = messageOf(left);
        o.log.warn(
          { uid: leftover.ref.uid, volume: leftover.ref.name, err },
          'what a failed call of a driver left stays until the volume is taken down',
        );
      }
    }
    throw error;
  }
}

/** Bound to the pod, by audience; the driver acts for it with them. As in the reference, none for a block device. Secret. */
async function tokens(o: CsiSetUpOptions, { pod, rules, csi }: PublishJob, signal: AbortSignal): Promise<Record<string, string>> {
  if (rules.tokens.length === 0 || csi.block) return {};
  if (o.objects === null) throw new Error('this node has no API to ask for tokens of the pod');
  const { name, namespace, uid } = pod.metadata;
  const found: Record<string, { token: string; expirationTimestamp: string }> = {};
  // In the order of their names, as the reference writes them.
  const requests = [...rules.tokens].sort((a, b) => (a.audience < b.audience ? -1 : 1));
  for (const { audience, expirationSeconds } of requests) {
    const request = {
      namespace,
      serviceAccount: pod.spec.serviceAccountName || 'default',
      audiences: audience === '' ? [] : [audience],
      expirationSeconds,
      pod: { name, uid },
    };
    const answer = await o.objects.token(request, signal);
    if (answer.kind !== 'found') throw new Error(`failed to fetch token: ${answer.message ?? 'there is no such service account'}`);
    put(found, audience, { token: answer.value.token, expirationTimestamp: expiryOf(answer.value.token) });
  }
  return { [TOKENS_KEY]: JSON.stringify(found) };
}
/** A token says itself when it expires; '' for one that does not. */
function expiryOf(token: string): string {
  try {
    const payload = (token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/');
    const { exp } = JSON.parse(atob(payload)) as { exp?: unknown };
    return typeof exp === 'number' ? `${new Date(exp * 1000).toISOString().slice(0, 19)}Z` : '';
  } catch {
    return '';
  }
}

async function linkDevice(o: CsiOptions, { link, target }: Place): Promise<void> {
  const { fs } = o.ports;
  const there = await lstatIfThere(fs, link);
  if (there?.kind === 'symlink' && (await fs.readlink(link)) === target) return;
  await fs.mkdirp(link.slice(0, link.lastIndexOf('/')), DIR_MODE);
  await unlinkIfThere(fs, link);
  await fs.symlink(target, link);
}
