/** What must be true some time after everything healed: the runtime holds what the manifests say and nothing else, and every actor is at rest. */

import type { SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import type { ActorState } from '@actorlet/kubelet/actors/supervision/types.ts';
import { isCritical } from '@actorlet/kubelet/machines/pod/phase.ts';
import { waitingPodsView } from '@actorlet/kubelet/machines/pods/admission/messages.ts';
import { isWanted, podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import { pressureView } from '@actorlet/kubelet/machines/reclaim/eviction/messages.ts';
import { probesView } from '@actorlet/kubelet/machines/services/probes/messages.ts';
import { isUp } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import type { HollowContainerDump, HollowSandboxDump } from '@actorlet/runtimes/src/hollow/index.ts';
import type { SimKube } from '@actorlet/world/src/kube/types.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { ONE_MANIFEST, ROOT_DIR } from '@actorlet/world/src/paths.ts';
import type { Wanted } from '../../nemesis/workload/operator.ts';
import { manifestName } from '../../steady.ts';
import { cpusUnsettled } from '../allocation/cpuInvariants.ts';
import { devicesUnsettled, waitsForDevices } from '../allocation/deviceInvariants.ts';
import { memoryUnsettled } from '../allocation/memoryInvariants.ts';
import { apiUnsettled } from '../api/apiLiveness.ts';
import { certificatesUnsettled } from '../api/certificateInvariants.ts';
import { apiUnanswered } from '../api/edgeInvariants.ts';
import { identityUnsettled } from '../api/identityInvariants.ts';
import { logsUnsettled } from '../api/logInvariants.ts';
import { outdatedFiles } from '../api/objectFiles.ts';
import { isEvicted, type Scene } from '../checker.ts';
import { groupsUnsettled } from '../node/cgroupInvariants.ts';
import { driversUnsettled } from '../node/driverInvariants.ts';
import { hostUnsettled } from '../node/hostInvariants.ts';
import { killsUnreported } from '../node/kernelLogInvariants.ts';
import { shutdownUnsettled } from '../node/shutdownInvariants.ts';
import { resourcesUnsettled } from './resizeInvariants.ts';
import { claimsUnsettled } from './resourceClaimInvariants.ts';

function restless(a: ActorState, found: string[]): void {
  if (!isUp(a)) found.push(`${a.path} is ${a.lifecycle}${a.lastError === undefined ? '' : `: ${a.lastError}`}`);
  else if (a.mailbox !== undefined && a.mailbox.depth > 0) found.push(`the mailbox of ${a.path} holds ${a.mailbox.depth}`);
  for (const c of a.children) restless(c, found);
}

/** In fair weather what was lost is opened again: the link, the hint stream, the watch on the manifests. */
function deafness(node: SimNode, tree: SupervisionTree): string[] {
  const found: string[] = [];
  const value = (path: string): unknown => {
    const snapshot: unknown = tree.actorAt(path)?.getSnapshot();
    return snapshot !== null && typeof snapshot === 'object' && 'value' in snapshot ? snapshot.value : undefined;
  };
  const has = (path: string, key: string): unknown => {
    const v = value(path);
    return v !== null && typeof v === 'object' && key in v ? (v as Record<string, unknown>)[key] : undefined;
  };
  if (has('node/runtime/cri', 'ready') === undefined) found.push('the link to the runtime is not ready');
  if (node.tuning.hints && has('node/runtime/pleg', 'stream') !== 'open') found.push('the hint stream is not open');
  // A path that is not there might become a directory or a file: there is nothing to watch yet.
  const there = !node.tuning.oneManifest || node.disk.has(ONE_MANIFEST);
  if (there && has('node/pods/sources/file', 'watch') === 'broken') found.push('the watch on the manifests is not open');
  return found;
}

/** What is not yet as it should be; empty when all is. */
export async function unsettled(
  node: SimNode,
  /** `uids`: of every pod that ever had a sandbox. */
  { scene, uids }: { scene: Scene; uids: ReadonlySet<string> },
): Promise<string[]> {
  const op = scene.operator;
  const found: string[] = [];
  const { daemon } = node;
  if (daemon === undefined || !daemon.up) return [`${node.name}: no daemon is up`];
  restless(daemon.tree.state(), found);
  found.push(...deafness(node, daemon.tree));
  const dump = node.runtime.hollow.dump();
  const { containers: listed } = await node.runtime.hollow.call(
    'ListContainers',
    {},
    { timeoutMs: null, signal: new AbortController().signal },
  );
  const images = new Map(listed.map((c) => [c.id, c.image?.userSpecifiedImage ?? '']));
  const records = daemon.tree.registry.read(podsView)?.value.records;
  const statuses = daemon.tree.registry.read(statusesView)?.value;
  const currentUids = new Set<string>();
  for (const [name, w] of op.wanted) {
    const record = [...(records?.values() ?? [])].find((r) => isWanted(r) && manifestName(r.pod.metadata.name, node) === name);
    if (record === undefined) {
      found.push(`pod ${name} is not known to the pod manager`);
      continue;
    }
    const { uid, labels } = record.pod.metadata;
    if (labels?.rev !== String(w.pod.rev)) found.push(`pod ${name} is known as revision ${labels?.rev ?? '-'}, wanted ${w.pod.rev}`);
    currentUids.add(uid);
    const boxes = dump.sandboxes.filter((b) => b.uid === uid);
    const containers = dump.containers.filter((c) => c.podUid === uid);
    if (isEvicted(node, uid)) {
      found.push(...evictedProblems(w, { containers, phase: statuses?.get(uid)?.status.phase ?? '' }));
      continue;
    }
    const waits = waitsForDevices(node, { uid, manifest: w.pod.manifest, monoMs: scene.monoMs });
    // Pods that loop or wait are not always up when somebody looks; critical ones, and those of files, may write what they will.
    if (w.pod.writesTooMuch === true && w.pod.fate === 'steady' && !waits && !isCritical(record.pod) && holdsToLimits(node))
      found.push(`pod ${name} writes more than it may, and is not evicted`);
    const lasts = w.pod.fate === 'steady' || w.pod.fate === 'loops';
    if (node.kube !== undefined && w.source === 'api' && lasts)
      found.push(...volumesUnsettled(node, node.kube, { uid, manifest: w.pod.manifest }).map((what) => `pod ${name}: ${what}`));
    // What runs is not ended where its resources are gone; what ended of it cannot start.
    if (waits || daemon.tree.registry.read(waitingPodsView)?.value.get(uid)?.wait === 'unallocated') continue;
    found.push(...podProblems(w, { boxes, containers, images, phase: statuses?.get(uid)?.status.phase ?? '' }));
    // Its worker may have lost the hint, and looks at the next resync.
    const probed = daemon.tree.registry.read(probesView)?.value;
    for (const c of containers) {
      const { liveness, startup } = probed?.get(c.id) ?? {};
      if (c.state === 'CONTAINER_RUNNING' && (liveness === 'failure' || startup === 'failure'))
        found.push(`${c.name} of pod ${name} failed its probe, and runs on`);
    }
  }
  for (const b of dump.sandboxes) if (!currentUids.has(b.uid)) found.push(`sandbox ${b.id} of pod ${b.name} (${b.uid}) is still there`);
  for (const c of dump.containers)
    if (!currentUids.has(c.podUid)) found.push(`container ${c.id} (${c.name} of ${c.podUid}) is still there`);
  for (const r of records?.values() ?? []) {
    if (!currentUids.has(r.pod.metadata.uid)) found.push(`pod manager still knows ${r.pod.metadata.name} (${r.pod.metadata.uid})`);
  }
  for (const uid of uids) {
    if (!currentUids.has(uid) && node.disk.has(`${ROOT_DIR}/pods/${uid}`)) found.push(`the directory of pod ${uid} is still there`);
  }
  const below = `${ROOT_DIR}/pods/`;
  for (const { path } of node.mounts.table) {
    const [uid = ''] = path.slice(below.length).split('/');
    if (path.startsWith(below) && !currentUids.has(uid)) found.push(`${path} is still mounted`);
  }
  for (const uid of statuses?.keys() ?? []) if (!currentUids.has(uid)) found.push(`a status of pod ${uid} is still kept`);
  const { pressures = [] } = daemon.tree.registry.read(pressureView)?.value ?? {};
  for (const p of pressures) found.push(`the node still says ${p}`);
  if (records !== undefined) found.push(...resourcesUnsettled(records, { statuses, dump }));
  if (node.kube !== undefined) {
    found.push(...apiUnsettled(node, node.kube, { op, records, statuses }));
    found.push(...certificatesUnsettled(node, { wallMs: node.kube.wallMs() }));
  }
  const held = { tree: daemon.tree, kube: node.kube, uids: currentUids, dump };
  for (const check of [driversUnsettled, claimsUnsettled, cpusUnsettled, memoryUnsettled]) found.push(...check(node, held));
  found.push(...logsUnsettled(node));
  found.push(...groupsUnsettled(node, { tree: daemon.tree, uids: currentUids, dump }));
  found.push(...devicesUnsettled(node, { tree: daemon.tree, kube: node.kube, monoMs: scene.monoMs }));
  found.push(...shutdownUnsettled(node, daemon.tree));
  found.push(...hostUnsettled(node, daemon.tree));
  const kernel = scene.environment.kernelOf(node);
  if (kernel !== undefined) found.push(...killsUnreported(node, { kernel, tree: daemon.tree }));
  const caller = scene.environment.callerOf(node);
  if (caller !== undefined) found.push(...apiUnanswered(caller, { nowMs: scene.monoMs }));
  return found.map((f) => `${node.name}: ${f}`);
}

function volumesUnsettled(node: SimNode, kube: SimKube, pod: { uid: string; manifest: object }): string[] {
  return [...outdatedFiles(node, kube, pod), ...identityUnsettled(node, kube, pod)];
}

/** Whether what pods write is watched. */
function holdsToLimits(node: SimNode): boolean {
  return node.daemon?.tree.actorAt('node/reclaim/eviction') !== undefined;
}

/**
 * Evicted, or not let in under pressure: it has failed, nothing of it runs, and its object stays until somebody deletes it.
 * A pod that ended by itself just before it heard of that keeps the end it came to.
 */
function evictedProblems({ pod: { name, fate } }: Wanted, { containers, phase }: Pick<Held, 'containers' | 'phase'>): string[] {
  const running = containers.filter((c) => c.state === 'CONTAINER_RUNNING');
  return [
    ...(phase === 'Failed' || (fate === 'ends' && phase === 'Succeeded') ? [] : [`pod ${name} was evicted, its phase is ${phase || '-'}`]),
    ...running.map((c) => `pod ${name} was evicted, yet ${c.name} runs`),
  ];
}

interface Held {
  boxes: HollowSandboxDump[];
  containers: HollowContainerDump[];
  images: ReadonlyMap<string, string>;
  phase: string;
}

function podProblems(w: Wanted, { boxes, containers, images, phase }: Held): string[] {
  const { name, fate, containers: names } = w.pod;
  const found: string[] = [];
  const running = containers.filter((c) => c.state === 'CONTAINER_RUNNING');
  if (fate === 'deleted') return running.map((c) => `pod ${name} is deleted, yet ${c.name} runs`);
  if (fate === 'ends') {
    if (phase !== 'Succeeded' && phase !== 'Failed') found.push(`pod ${name} should have ended, its phase is ${phase || '-'}`);
    if (running.length > 0) found.push(`pod ${name} has ended, yet ${running.map((c) => c.name).join(', ')} run`);
    return found;
  }
  const ready = boxes.filter((b) => b.ready);
  if (ready.length !== 1) found.push(`pod ${name} has ${ready.length} ready sandboxes`);
  for (const c of running) {
    if (w.pod.images[c.name] !== images.get(c.id))
      found.push(`${c.name} of pod ${name} runs ${images.get(c.id)}, wanted ${w.pod.images[c.name]}`);
  }
  if (fate === 'loops') return found;
  if (phase !== 'Running') found.push(`pod ${name} has phase ${phase || '-'}`);
  for (const want of names) if (!running.some((c) => c.name === want)) found.push(`${want} of pod ${name} does not run`);
  return found;
}
