/**
 * From argument values to one configuration (boot-and-node 2.3): defaults, then the file, then drop-ins, then flags.
 * Everything found wrong is collected; nothing is applied by halves.
 */

import { stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { readRegular } from '@actorlet/process/src/regularFile.ts';
import type { KubeletConfiguration, KubeletFlags } from '../../machines/config/config.ts';
import { DEFAULT_EVICTION_HARD, defaultKubeletConfiguration, defaultKubeletFlags } from '../../machines/config/defaults.ts';
import { plainV1beta1 } from '../../machines/config/v1beta1.ts';
import { textOf } from '../../machines/document/read.ts';
import { messageOf } from '../../machines/text/errors.ts';
import type { Problem } from '../errors.ts';
import type { GivenFlag } from '../flags/parse.ts';
import { flagHint } from '../flags/table.ts';
import { type DecodedFile, decodeConfigFile, decodeDropIn, decodeMerged, withAbsolutePaths } from './decode.ts';
import { dropInFiles } from './dropIns.ts';
import { applyDefaults, mergePatch } from './merge.ts';
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
  /** Files of the folder of drop-ins that are not read: another ending than `.conf`. */
  skipped: readonly string[];
  warnings: readonly Problem[];
  errors: readonly Problem[];
}

/** Never rejects: an unreadable or malformed file is an entry of `errors`. */
export async function loadConfig(given: ReadonlyMap<string, GivenFlag>, cwd = process.cwd()): Promise<LoadedConfig> {
  const flags = flagsOf(given);
  const read: Files = { decoded: [], skipped: [], errors: [], warnings: [] };
  let config = defaultKubeletConfiguration();
  if (flags.config !== '') {
    const file = await readOne(flags.config, { flag: '--config', decode: decodeConfigFile }, read);
    if (file !== undefined) config = applyDefaults(file.values);
  }
  if (flags.configDir !== '') config = await withDropIns(config, { dir: flags.configDir, cwd }, read);
  const { decoded, errors } = read;
  const mentioned = (path: string): boolean => decoded.some((d) => d.origins.has(path));
  // Several pulls at once and nobody said whether to serialise them: asking for them was saying so.
  if ((config.maxParallelImagePulls ?? 1) > 1 && !mentioned('serializeImagePulls')) config = { ...config, serializeImagePulls: false };
  const written = applyFlags(config, given);
  config = pullsOfOci(finish(written), (path, flag) => mentioned(path) || given.has(flag));
  const warnings: Problem[] = [...read.warnings];
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
    skipped: read.skipped,
    warnings: [...decoded.flatMap((d) => d.warnings), ...warnings],
    errors: [...errors, ...decoded.flatMap((d) => d.errors)],
  };
}

/** Of programs of this machine: a registry that hangs may not hold up the pods of others. */
const OCI_PULLS = { serializeImagePulls: false, maxParallelImagePulls: 10, registryPullQPS: 0 };
function pullsOfOci(config: KubeletConfiguration, isGiven: (path: string, flag: string) => boolean): KubeletConfiguration {
  if (config.containerRuntimeEndpoint !== 'embedded://oci') return config;
  const fields: [string, string][] = [
    ['serializeImagePulls', 'serialize-image-pulls'],
    ['maxParallelImagePulls', 'max-parallel-image-pulls'],
    ['registryPullQPS', 'registry-qps'],
  ];
  if (fields.some(([path, flag]) => isGiven(path, flag))) return config;
  return { ...config, ...OCI_PULLS };
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

/** What holds for a value, wherever it was set. */
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

/** A bare absolute path is an older way to write a unix socket, and so is one slash behind the scheme. */
function unixUrl(endpoint: string): string {
  const path = /^(?:unix:)?(\/[^/].*)$/.exec(endpoint)?.[1];
  return path === undefined ? endpoint : `unix://${path}`;
}

interface Files {
  decoded: DecodedFile[];
  skipped: string[];
  errors: Problem[];
  warnings: Problem[];
}

/**
 * Drop-ins over a configuration, as the reference does it: each is merged as JSON, and the result is read and defaulted once more. So null
 * sets a field back to its default, names may have any case, and a relative path stands against the working directory.
 */
async function withDropIns(
  base: KubeletConfiguration,
  { dir, cwd }: { dir: string; cwd: string },
  read: Files,
): Promise<KubeletConfiguration> {
  const found = await dropInFiles(dir);
  read.skipped.push(...found.skipped);
  read.errors.push(...found.errors);
  read.warnings.push(...found.warnings);
  let merged: unknown = plainV1beta1(base);
  for (const path of found.files) {
    const file = await readOne(path, { flag: '--config-dir', decode: decodeDropIn }, read);
    if (file !== undefined && file.errors.length === 0) merged = mergePatch(merged, file.plain);
  }
  if (!isTree(merged)) return base;
  const { values, errors } = decodeMerged(merged, new Map(read.decoded.flatMap((d) => [...d.origins])));
  read.errors.push(...errors);
  // Thresholds that a drop-in takes away do not come back.
  return applyDefaults(withAbsolutePaths(values, cwd), { evictionHard: {} });
}

type Decode = (file: string, text: string) => DecodedFile;

async function readOne(path: string, { flag, decode }: { flag: string; decode: Decode }, read: Files): Promise<DecodedFile | undefined> {
  try {
    const info = await stat(path);
    if (!info.isFile()) throw new Error('it is not a regular file');
    if (info.size > FILE_BYTES_MAX) throw new Error(`it has ${info.size} bytes, more than ${FILE_BYTES_MAX}`);
    const text = textOf(await readRegular(path, { bytesMax: FILE_BYTES_MAX }));
    if (text === null) throw new Error('it is neither UTF-8 nor UTF-16');
    const file = decode(path, text);
    read.decoded.push(file);
    return file;
  } catch (error) {
    read.errors.push({ where: flag, what: `cannot read ${path}: ${messageOf(error)}` });
    return undefined;
  }
}
