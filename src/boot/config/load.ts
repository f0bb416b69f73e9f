/**
 * From argument values to one configuration (boot-and-node 2.3): defaults, then the file, then drop-ins, then flags.
 * Everything found wrong is collected; nothing is applied by halves.
 */

import { readdir, stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { DEFAULT_EVICTION_HARD, defaultKubeletConfiguration, defaultKubeletFlags } from '../../machines/config/defaults.ts';
import type { KubeletConfiguration, KubeletFlags } from '../../machines/config.ts';
import { messageOf } from '../../machines/text/errors.ts';
import { readRegular } from '../../sandbox/process/regularFile.ts';
import type { Problem } from '../errors.ts';
import type { GivenFlag } from '../flags/parse.ts';
import { flagHint } from '../flags/table.ts';
import { type DecodedFile, decodeConfigFile } from './decode.ts';
import { applyDefaults, mergeDropIn } from './merge.ts';
import { isTree, type Tree, withPath } from './paths.ts';

/** A configuration file larger than this is not one. */
const FILE_BYTES_MAX = 10 * 1024 * 1024;

export interface LoadedConfig {
  flags: KubeletFlags;
  config: KubeletConfiguration;
  /** Where each path that differs from the built-in default was set: `/etc/kubelet.yaml:12`. Flags are not in here. */
  origins: ReadonlyMap<string, string>;
  /** Files read, in order. */
  files: readonly string[];
  warnings: readonly Problem[];
  errors: readonly Problem[];
}

/** Never rejects: an unreadable or malformed file is an entry of `errors`. */
export async function loadConfig(given: ReadonlyMap<string, GivenFlag>): Promise<LoadedConfig> {
  const flags = flagsOf(given);
  const errors: Problem[] = [];
  const decoded: DecodedFile[] = [];
  let config = defaultKubeletConfiguration();
  if (flags.config !== '') {
    const file = await readOne(flags.config, '--config', errors);
    if (file !== undefined) {
      decoded.push(file);
      config = applyDefaults(file.values);
    }
  }
  for (const path of flags.configDir === '' ? [] : await dropIns(flags.configDir, errors)) {
    const file = await readOne(path, '--config-dir', errors);
    if (file === undefined) continue;
    decoded.push(file);
    config = mergeDropIn(config, file.values);
  }
  const mentioned = (path: string): boolean => decoded.some((d) => d.origins.has(path));
  // Several pulls at once and nobody said whether to serialise them: asking for them was saying so.
  if ((config.maxParallelImagePulls ?? 1) > 1 && !mentioned('serializeImagePulls')) config = { ...config, serializeImagePulls: false };
  const written = applyFlags(config, given);
  config = finish(written);
  const warnings: Problem[] = [];
  for (const field of ['containerRuntimeEndpoint', 'imageServiceEndpoint'] as const) {
    if (written[field] === config[field]) continue;
    warnings.push({ where: `${field}${flagHint(field)}`, what: `a bare path is deprecated; write ${config[field]}` });
  }
  if (config.kubeReservedCgroup !== '' && config.kubeletCgroups !== '' && !config.kubeletCgroups.startsWith(config.kubeReservedCgroup)) {
    warnings.push({
      where: `kubeletCgroups${flagHint('kubeletCgroups')}`,
      what: 'lies outside kubeReservedCgroup (--kube-reserved-cgroup)',
    });
  }
  // The reference skips what it cannot parse; so does this, but says which.
  for (const ip of flags.nodeIPs)
    if (isIP(ip) === 0) warnings.push({ where: '--node-ip', what: `${JSON.stringify(ip)} is not an IP address; it is skipped` });
  for (const ip of config.clusterDNS)
    if (isIP(ip) === 0)
      warnings.push({ where: `clusterDNS${flagHint('clusterDNS')}`, what: `${JSON.stringify(ip)} is not an IP address; it is skipped` });
  return {
    flags: { ...flags, nodeIPs: flags.nodeIPs.filter((ip) => isIP(ip) !== 0) },
    config,
    origins: new Map(decoded.flatMap((d) => [...d.origins])),
    files: decoded.map((d) => d.file),
    warnings: [...decoded.flatMap((d) => d.warnings), ...warnings],
    errors: [...errors, ...decoded.flatMap((d) => d.errors)],
  };
}

/** KubeletFlags from what was given, the rest at their defaults. */
function flagsOf(given: ReadonlyMap<string, GivenFlag>): KubeletFlags {
  let flags: KubeletFlags = defaultKubeletFlags();
  for (const { spec, value } of given.values()) {
    if (spec.flag !== undefined && value !== undefined) flags = { ...flags, [spec.flag]: value };
  }
  return flags.adminSocket === '' ? { ...flags, adminSocket: join(flags.rootDir, 'actorlet.sock') } : flags;
}

/** Flags win; a collection replaces the whole of the file's, except featureGates, which are merged. */
function applyFlags(config: KubeletConfiguration, given: ReadonlyMap<string, GivenFlag>): KubeletConfiguration {
  let out: Tree = { ...config };
  for (const { spec, value } of given.values()) {
    if (spec.cfg === undefined || value === undefined) continue;
    if (spec.cfg === 'featureGates' && isTree(value)) out = { ...out, featureGates: { ...config.featureGates, ...value } };
    else if (spec.cfg === 'seccompDefault') out = { ...out, seccompDefault: value === true || config.seccompDefault };
    else out = withPath(out, spec.cfg, value);
  }
  return { ...config, ...out };
}

/** What holds whoever set it. */
function finish(config: KubeletConfiguration): KubeletConfiguration {
  const endpoint = config.containerRuntimeEndpoint;
  return {
    ...config,
    podPidsLimit: config.podPidsLimit < 0 ? -1 : config.podPidsLimit,
    evictionHard: config.mergeDefaultEvictionSettings ? { ...DEFAULT_EVICTION_HARD, ...config.evictionHard } : config.evictionHard,
    containerRuntimeEndpoint: unixUrl(endpoint),
    imageServiceEndpoint: unixUrl(config.imageServiceEndpoint),
  };
}

/** A bare absolute path is an older way to write a unix socket. */
function unixUrl(endpoint: string): string {
  return endpoint.startsWith('/') ? `unix://${endpoint}` : endpoint;
}

async function readOne(path: string, flag: string, errors: Problem[]): Promise<DecodedFile | undefined> {
  try {
    const info = await stat(path);
    if (!info.isFile()) throw new Error('it is not a regular file');
    if (info.size > FILE_BYTES_MAX) throw new Error(`it has ${info.size} bytes, more than ${FILE_BYTES_MAX}`);
    return decodeConfigFile(path, (await readRegular(path, { bytesMax: FILE_BYTES_MAX })).toString('utf8'));
  } catch (error) {
    errors.push({ where: flag, what: `cannot read ${path}: ${messageOf(error)}` });
    return undefined;
  }
}

/** Regular files ending in `.conf`, found depth first in lexical order. */
async function dropIns(dir: string, errors: Problem[]): Promise<string[]> {
  try {
    const entries = (await readdir(dir, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1));
    const found: string[] = [];
    for (const entry of entries) {
      const path = join(dir, entry.name);
      if (entry.isDirectory()) found.push(...(await dropIns(path, errors)));
      else if (entry.isFile() && entry.name.endsWith('.conf')) found.push(path);
    }
    return found;
  } catch (error) {
    errors.push({ where: '--config-dir', what: `cannot list ${dir}: ${messageOf(error)}` });
    return [];
  }
}
