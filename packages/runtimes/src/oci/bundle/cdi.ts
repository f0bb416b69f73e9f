/** Devices of the Container Device Interface: what drivers wrote into their spec files, for the bundle of a container. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { readRegularSync } from '@actorlet/process/src/regularFile.ts';
import { parse } from 'yaml';

/** Where drivers write. A device of the last folder that has it counts. */
const CDI_DIRS = ['/etc/cdi', '/var/run/cdi'] as const;
const SPEC_BYTES_MAX = 4 * 1024 * 1024;
const HOOKS = ['prestart', 'createRuntime', 'createContainer', 'startContainer', 'poststart', 'poststop'] as const;
type HookName = (typeof HOOKS)[number];

interface DeviceNode {
  path: string;
  hostPath: string;
  fileMode?: number;
  uid?: number;
  gid?: number;
}
export interface CdiEdits {
  env: string[];
  devices: DeviceNode[];
  mounts: { hostPath: string; containerPath: string; options: string[] }[];
  hooks: Partial<Record<HookName, object[]>>;
  gids: number[];
}

/** All that these devices ask for. @throws Error naming what cannot be had. */
export function cdiEdits(names: readonly string[], dirs: readonly string[] = CDI_DIRS): CdiEdits {
  const all: CdiEdits = { env: [], devices: [], mounts: [], hooks: {}, gids: [] };
  if (names.length === 0) return all;
  const known = devicesIn(dirs);
  const specs = new Set<string>();
  for (const name of new Set(names)) {
    const found = known.get(name);
    if (found === undefined) throw new Error(`unresolvable CDI device ${name}: it is not in ${dirs.join(' or ')}`);
    if (found.clash !== null) throw new Error(`CDI device ${name} is in ${found.file} and in ${found.clash}`);
    if (!specs.has(found.file)) add(all, found.spec.containerEdits, found.file);
    specs.add(found.file);
    add(all, found.device.containerEdits, found.file);
  }
  return all;
}

interface Found {
  file: string;
  /** Another file of the same folder that has it, too. */
  clash: string | null;
  spec: Record<string, unknown>;
  device: Record<string, unknown>;
}

/** A file that cannot be read has no devices. */
function devicesIn(dirs: readonly string[]): Map<string, Found> {
  const known = new Map<string, Found>();
  for (const dir of dirs) {
    const here = new Map<string, Found>();
    for (const file of filesIn(dir)) {
      const spec = read(file);
      if (spec === null || typeof spec.kind !== 'string') continue;
      for (const device of records(spec.devices)) {
        const name = `${spec.kind}=${text(device.name)}`;
        here.set(name, { file, clash: here.get(name)?.file ?? null, spec, device });
      }
    }
    for (const [name, found] of here) known.set(name, found);
  }
  return known;
}

function filesIn(dir: string): string[] {
  try {
    return readdirSync(dir)
      .filter((name) => /\.(?:json|ya?ml)$/.test(name))
      .sort()
      .map((name) => join(dir, name));
  } catch {
    return [];
  }
}
function read(file: string): Record<string, unknown> | null {
  try {
    const found: unknown = parse(readRegularSync(file, { bytesMax: SPEC_BYTES_MAX }).toString('utf8'));
    return isRecord(found) ? found : null;
  } catch {
    return null;
  }
}

function add(to: CdiEdits, edits: unknown, file: string): void {
  if (!isRecord(edits)) return;
  if (edits.intelRdt !== undefined) throw new Error(`${file}: intelRdt is not supported`);
  to.env.push(...strings(edits.env));
  to.gids.push(...numbers(edits.additionalGids));
  for (const d of records(edits.deviceNodes)) {
    const path = text(d.path);
    to.devices.push({ path, hostPath: text(d.hostPath) || path, ...owner(d) });
  }
  for (const m of records(edits.mounts)) {
    if (!['', 'none', 'bind'].includes(text(m.type))) throw new Error(`${file}: mounts of type ${text(m.type)} are not supported`);
    to.mounts.push({ hostPath: text(m.hostPath), containerPath: text(m.containerPath), options: strings(m.options) });
  }
  for (const { hookName, path, args, env, timeout } of records(edits.hooks)) {
    const name = HOOKS.find((n) => n === hookName);
    if (name === undefined) throw new Error(`${file}: hook ${text(hookName) || 'without a name'} is not supported`);
    const hook = { path: text(path), args: strings(args), env: strings(env), ...(typeof timeout === 'number' ? { timeout } : {}) };
    to.hooks[name] = [...(to.hooks[name] ?? []), hook];
  }
}

function owner({ fileMode, uid, gid }: Record<string, unknown>): Pick<DeviceNode, 'fileMode' | 'uid' | 'gid'> {
  const given = Object.entries({ fileMode, uid, gid }).filter(([, v]) => typeof v === 'number');
  return Object.fromEntries(given);
}
function records(list: unknown): Record<string, unknown>[] {
  return Array.isArray(list) ? list.filter(isRecord) : [];
}
function strings(list: unknown): string[] {
  return Array.isArray(list) ? list.filter((v) => typeof v === 'string') : [];
}
function numbers(list: unknown): number[] {
  return Array.isArray(list) ? list.filter((v) => typeof v === 'number') : [];
}
function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
