/** Invariants about devices of plugins: who holds them, what containers get with them, who is refused for want of them, and what is left. */

import type { SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import { allocationOrder, deviceRequests } from '@actorlet/kubelet/machines/allocation/devices/allocate.ts';
import { CHECKPOINT_FILE, decodeCheckpoint } from '@actorlet/kubelet/machines/allocation/devices/checkpoint.ts';
import { devicesAddr, devicesView } from '@actorlet/kubelet/machines/allocation/devices/messages.ts';
import { type Allocation, deviceIds } from '@actorlet/kubelet/machines/allocation/devices/types.ts';
import type { Container } from '@actorlet/kubelet/machines/kube/podTable.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { isRefused, podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { SimKube } from '@actorlet/world/src/kube/types.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { DEVICE_FOLDER } from '@actorlet/world/src/paths.ts';
import { responseFor } from '@actorlet/world/src/plugins/devicePlugins.ts';
import { hasCome, hasGone, type PluginTuning, pluginSocket } from '@actorlet/world/src/plugins/machineDevices.ts';
import { manifestName } from '../../steady.ts';
import { type Checker, isForDevices, podOf, targetOf } from '../checker.ts';
import { DeviceRoom } from './deviceRoom.ts';

interface Config {
  metadata?: { name?: string; attempt?: number };
  devices?: readonly { hostPath?: string }[];
  mounts?: readonly { containerPath?: string; hostPath?: string }[];
  envs?: readonly { key?: string; value?: string }[];
  annotations?: Readonly<Record<string, string>>;
  CDIDevices?: readonly { name?: string }[];
}
const DEV = '/dev/';

function containerOf(pod: Pod | undefined, name: string): Container | undefined {
  return pod === undefined ? undefined : allocationOrder(pod).find(({ container }) => container.name === name)?.container;
}

/** Devices of plugins among what a container is to be created with. */
function given(node: SimNode, config: Config): string[] {
  const known = new Set(node.tuning.devices?.plugins.flatMap((p) => p.devices) ?? []);
  return (config.devices ?? []).map((d) => (d.hostPath ?? '').slice(DEV.length)).filter((id) => known.has(id));
}

/** No two containers that run at once have the same device. */
export function devicesAreNotShared(): Checker {
  /** By node, pod, container and attempt, as it was created. */
  const held = new Map<string, readonly string[]>();
  return {
    name: 'devices-are-not-shared',
    arrived(s, call) {
      if (call.method !== 'CreateContainer' || s.node.tuning.devices === null) return undefined;
      const { config = {} } = call.req as { config?: Config };
      const { uid } = targetOf(call, s.node.runtime.hollow.dump());
      const { name = '', attempt = 0 } = config.metadata ?? {};
      held.set(`${s.node.name} ${uid} ${name} ${attempt}`, given(s.node, config));
      return undefined;
    },
    changed(s, dump) {
      if (s.node.tuning.devices === null) return undefined;
      const user = new Map<string, string>();
      for (const c of dump.containers) {
        if (c.state !== 'CONTAINER_RUNNING') continue;
        const who = `${c.name} of pod ${c.podUid}`;
        for (const id of held.get(`${s.node.name} ${c.podUid} ${c.name} ${c.attempt}`) ?? []) {
          const other = user.get(id);
          if (other !== undefined) return `${s.node.name}: ${other} and ${who} run with device ${id}, both`;
          user.set(id, who);
        }
      }
      return undefined;
    },
  };
}

/** A container is made with as many devices as it asks for, what their plugin answered when it gave them, and after it prepared them. */
export function devicesComeOfTheirPlugin(): Checker {
  /** Preparations by node that a container was made after already. */
  const used = new Map<string, Set<object>>();
  return {
    name: 'devices-come-of-their-plugin',
    arrived(s, call) {
      if (call.method !== 'CreateContainer' || call.boot !== s.node.boots || s.node.tuning.devices === null) return undefined;
      const { uid } = targetOf(call, s.node.runtime.hollow.dump());
      const { config = {} } = call.req as { config?: Config };
      const container = containerOf(podOf(s, uid), config.metadata?.name ?? '');
      if (container === undefined) return undefined;
      const ids = given(s.node, config);
      const who = `${s.node.name}: ${container.name} of pod ${uid}`;
      const asked = deviceRequests(container);
      const total = asked.reduce((sum, r) => sum + r.count, 0);
      if (ids.length !== total) return `${who} asks for ${total} devices and is made with [${ids.join(' ')}]`;
      for (const { resource, count } of asked) {
        const plugin = s.node.tuning.devices.plugins.find((p) => p.resource === resource);
        const mine = ids.filter((id) => plugin?.devices.includes(id)).sort();
        if (plugin === undefined || mine.length !== count)
          return `${who} asks for ${count} of ${resource} and is made with [${mine.join(' ')}]`;
        const same = s.node.devices.answered.filter((c) => c.resource === resource && c.ids.join() === mine.join());
        if (!same.some((c) => c.method === 'Allocate')) return `${who} is made with [${mine.join(' ')}], and nobody allocated these`;
        const lacks = lacking(config, resource, mine);
        if (lacks !== undefined) return `${who} is made without ${lacks}, which the plugin of ${resource} answered`;
        if (!plugin.options.preStartRequired) continue;
        const before = used.get(s.node.name) ?? new Set<object>();
        used.set(s.node.name, before);
        const prepared = same.find((c) => c.method === 'PreStart' && !before.has(c));
        if (prepared === undefined) return `${who} is made with [${mine.join(' ')}], and nobody prepared them for it`;
        for (const c of same) if (c.method === 'PreStart') before.add(c);
      }
      return undefined;
    },
  };
}

function lacking(config: Config, resource: string, ids: readonly string[]): string | undefined {
  const { envs, mounts, annotations, cdiDevices } = responseFor(resource, ids);
  for (const [key, value] of Object.entries(envs))
    if (!config.envs?.some((e) => e.key === key && e.value === value)) return `the variable ${key}=${value}`;
  for (const m of mounts)
    if (!config.mounts?.some((x) => x.containerPath === m.containerPath && x.hostPath === m.hostPath))
      return `the mount ${m.containerPath}`;
  for (const [key, value] of Object.entries(annotations)) if (config.annotations?.[key] !== value) return `the annotation ${key}=${value}`;
  for (const name of cdiDevices) if (!config.CDIDevices?.some((d) => d.name === name)) return `the CDI device ${name}`;
  return undefined;
}

/** Which container holds what, as it is on disk; nothing where that is not whole, which is a fault of the disk's. */
function recorded(node: SimNode): Allocation[] {
  const text = node.disk.textOf(`${DEVICE_FOLDER}/${CHECKPOINT_FILE}`);
  if (text === undefined) return [];
  try {
    return decodeCheckpoint(text).allocations;
  } catch {
    return [];
  }
}

/**
 * Nobody is refused for want of devices who asks for none, who ran before the daemon began (trap 30), or while there are
 * enough that nobody holds.
 */
export function devicesAreRefusedForReason(): Checker {
  const rooms = new Map<string, DeviceRoom>();
  const judged = new Set<string>();
  /** Containers that ran when the present daemon of a node began. */
  const ran = new Map<string, ReadonlySet<string>>();
  const roomOf = (node: SimNode): DeviceRoom => {
    const room = rooms.get(node.name) ?? new DeviceRoom();
    rooms.set(node.name, room);
    return room;
  };
  const running = (node: SimNode) => node.runtime.hollow.dump().containers.filter((c) => c.state === 'CONTAINER_RUNNING');
  return {
    name: 'devices-are-refused-for-reason',
    booted({ node }) {
      if (node.tuning.devices === null) return undefined;
      ran.set(node.name, new Set(running(node).map((c) => c.id)));
      roomOf(node).unheard();
      return undefined;
    },
    beat(s) {
      if (s.node.tuning.devices !== null) roomOf(s.node).look(s);
      return undefined;
    },
    statuses(s, statuses) {
      for (const [uid, { status }] of statuses) {
        const key = `${s.node.name} ${uid}`;
        if (!isForDevices(status) || judged.has(key)) continue;
        const pod = podOf(s, uid);
        if (pod === undefined) continue;
        judged.add(key);
        const who = `${s.node.name}: pod ${uid} (${manifestName(pod.metadata.name, s.node)})`;
        const why = `${status.reason ?? ''}: ${status.message ?? ''}`;
        if (s.node.tuning.devices === null) return `${who} is refused, and nobody was asked for devices: ${why}`;
        if (!allocationOrder(pod).some(({ container }) => deviceRequests(container).length > 0))
          return `${who} asks for no device and is refused: ${why}`;
        const before = running(s.node).find((c) => c.podUid === uid && ran.get(s.node.name)?.has(c.id) === true);
        if (before !== undefined) return `${who} runs since before its daemon, and is refused: ${why}`;
        const free = roomOf(s.node).contradicts(s, { uid, message: status.message ?? '' });
        if (free !== undefined) return `${who} is refused, ${free}: ${why}`;
      }
      return undefined;
    },
  };
}

/**
 * A container of it that has to start may wait for good: its plugin is never there again, or it came back over what was
 * left of its earlier life, which keeps its place at admission, after others were given what it had.
 */
export function waitsForDevices(node: SimNode, o: { uid: string; manifest: object; monoMs: number }): boolean {
  const { plugins = [] } = node.tuning.devices ?? {};
  if (plugins.length === 0) return false;
  const held = recorded(node);
  const lacks = (container: Container): boolean =>
    deviceRequests(container).some(({ resource, count }) => {
      const plugin = plugins.find((p) => p.resource === resource);
      if (plugin === undefined || hasGone(plugin, o.monoMs)) return true;
      if (held.some((a) => a.uid === o.uid && a.container === container.name && a.resource === resource)) return false;
      const taken = new Set(held.filter((a) => a.resource === resource).flatMap(deviceIds));
      return plugin.devices.length - taken.size < count;
    });
  // Only fields that every manifest has are read.
  return allocationOrder(o.manifest as Pod).some(({ container }) => lacks(container));
}

/** In fair weather plugins are heard, the node counts what they list, what is gone counts as nothing, and who was refused holds nothing. */
export function devicesUnsettled(node: SimNode, o: { tree: SupervisionTree; kube: SimKube | undefined; monoMs: number }): string[] {
  const { plugins = [] } = node.tuning.devices ?? {};
  if (plugins.length === 0) return [];
  const found: string[] = [];
  const snapshot: unknown = o.tree.actorAt(devicesAddr.path)?.getSnapshot();
  const value = isRecord(snapshot) ? JSON.stringify(snapshot.value) : '-';
  if (value !== '{"open":"serving"}') found.push(`the device manager is ${value}`);
  const machines = isRecord(snapshot) && isRecord(snapshot.children) ? Object.keys(snapshot.children) : [];
  const records = o.tree.registry.read(podsView)?.value.records;
  for (const { uid, resource } of recorded(node)) {
    const record = records?.get(uid);
    if (record !== undefined && isRefused(record)) found.push(`devices of ${resource} are kept for pod ${uid}, which was refused`);
  }
  const shown = o.tree.registry.read(devicesView)?.value;
  const status = o.kube?.store.list('nodes').find((n) => n.metadata.name === node.name)?.status;
  const said = (what: 'capacity' | 'allocatable', resource: string): unknown =>
    isRecord(status) && isRecord(status[what]) ? status[what][resource] : undefined;
  for (const p of plugins) {
    if (!hasCome(p, o.monoMs)) {
      found.push(`the plugin of ${p.resource} has not come yet`);
      continue;
    }
    const gone = hasGone(p, o.monoMs);
    const own = machines.filter((name) => name.startsWith(`${p.resource}#`)).length;
    if (own !== (gone ? 0 : 1)) found.push(`${own} statecharts are about the plugin of ${p.resource}`);
    const right = gone ? '0' : String(listed(node, p));
    for (const what of ['capacity', 'allocatable'] as const) {
      const here = shown?.[what][p.resource];
      // After a restart nobody remembers what had gone before; the cluster is told 0, and never nothing.
      if (here !== right && !(gone && here === undefined)) found.push(`${what} of ${p.resource} is ${here ?? '-'}, ${right} are listed`);
      if (o.kube !== undefined && said(what, p.resource) !== right)
        found.push(`${what} of ${p.resource} is ${String(said(what, p.resource))} in the API, ${right} are listed`);
    }
  }
  return found;
}

function listed(node: SimNode, p: PluginTuning): number {
  return node.devices.sockets.get(pluginSocket(DEVICE_FOLDER, p))?.devices.length ?? 0;
}
