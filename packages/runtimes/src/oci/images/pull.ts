/** Images through skopeo and umoci: from a registry or an archive into a folder of their own, checked before they are unpacked. */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { AuthConfig } from '@actorlet/kubelet/machines/wire/cri.ts';
import { writeOwnSync } from '@actorlet/process/src/regularFile.ts';
import { CODE, RuntimeRefusal } from '../../shared/model.ts';
import type { Programs } from '../programs.ts';
import { ProgramError, runProgram } from '../run.ts';
import { archiveImages } from './archive.ts';
import { diskUsage, type Limits, tooMuch, watchDownload, watchUnpacking, within } from './budget.ts';
import { readLayout } from './layout.ts';
import { type ImageName, isLoopback, parseName } from './names.ts';
import type { ImageRecord, Records } from './records.ts';

const POLICY = '/etc/containers/policy.json';
const ABSENT = /manifest unknown|name unknown|not found|status 404|requested access to the resource is denied/i;

export interface PullDeps {
  programs: Programs;
  records: Records;
  limits: Limits;
  /** This process is root of the machine. */
  root: boolean;
}

/** What is asked of a registry: with an unchanged digest, one request. @throws RuntimeRefusal */
export async function pullImage(d: PullDeps, ref: string, o: { auth: AuthConfig | undefined; signal: AbortSignal }): Promise<ImageRecord> {
  const name = parseName(ref);
  if (name === null) throw new RuntimeRefusal(CODE.invalidArgument, `${JSON.stringify(ref)} is no name of an image`);
  return staged(d, `failed to pull image ${name.full}`, async (dir) => {
    const authFile = join(dir, 'auth.json');
    writeOwnSync(authFile, authJson(name.registry, o.auth), 0o600);
    const access = ['--authfile', authFile, ...(isLoopback(name.registry) ? ['false'] : []).map((v) => `--tls-verify=${v}`)];
    const digest = name.digest ?? (await digestOf(d, name, { access, signal: o.signal }));
    const digests = [`${name.repository}@${digest}`];
    const tags = name.digest === null ? [name.full] : [];
    const known = d.records.list().find((r) => r.digests.some((have) => have.endsWith(`@${digest}`)));
    if (known !== undefined) {
      d.records.name(known, { tags, digests });
      return known;
    }
    const from = `docker://${name.repository}@${digest}`;
    const copyAccess = access.map((a) => a.replace('--tls-verify', '--src-tls-verify'));
    return take(d, { dir, from, access: copyAccess, registry: `the registry ${name.registry}`, tags, digests, signal: o.signal });
  });
}

/** Every image of a Docker or OCI archive. @throws RuntimeRefusal */
export async function loadArchive(d: PullDeps, path: string, o: { name: string; signal: AbortSignal }): Promise<ImageRecord[]> {
  const images = await archiveImages(path, o);
  const loaded: ImageRecord[] = [];
  for (const { transport, tags } of images) {
    loaded.push(
      await staged(d, `failed to load ${path}`, (dir) => {
        // A path may hold a colon, which would end it for skopeo.
        symlinkSync(path, join(dir, 'archive.tar'));
        const from = transport.replace('PATH', join(dir, 'archive.tar'));
        return take(d, { dir, from, access: [], registry: 'the archive', tags, digests: [], signal: o.signal });
      }),
    );
  }
  return loaded;
}

async function staged<T>(d: PullDeps, what: string, work: (dir: string) => Promise<T>): Promise<T> {
  const dir = join(d.records.staging, randomBytes(8).toString('hex'));
  mkdirSync(dir, { mode: 0o700 });
  try {
    return await work(dir);
  } catch (error) {
    if (error instanceof RuntimeRefusal) throw error;
    const { message } = error as Error;
    const watched = error instanceof ProgramError && error.watched;
    const code = watched ? CODE.deadlineExceeded : ABSENT.test(message) ? CODE.notFound : CODE.unknown;
    throw new RuntimeRefusal(code, `${what}: ${message}`);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

function authJson(registry: string, auth: AuthConfig | undefined): string {
  if (auth === undefined || auth === null) return '{"auths":{}}';
  if (auth.registryToken) throw new RuntimeRefusal(CODE.invalidArgument, 'pull secrets with a registryToken are not supported');
  const { username = '', password = '' } = auth;
  const basic = auth.auth || (username || password ? Buffer.from(`${username}:${password}`).toString('base64') : '');
  const entry = { ...(basic ? { auth: basic } : {}), ...(auth.identityToken ? { identitytoken: auth.identityToken } : {}) };
  return JSON.stringify({ auths: Object.keys(entry).length === 0 ? {} : { [registry]: entry } });
}

/** Digest of what the registry's name leads to now: an image, or a list of images for platforms. */
async function digestOf(d: PullDeps, name: ImageName, o: { access: string[]; signal: AbortSignal }): Promise<string> {
  const raw = await skopeo(d, ['inspect', '--raw', ...o.access, `docker://${name.full}`], {
    signal: o.signal,
    watch: within(d.limits.answerMs, `the registry ${name.registry} did not answer`),
  });
  return `sha256:${createHash('sha256').update(raw).digest('hex')}`;
}

interface Taken {
  dir: string;
  from: string;
  access: string[];
  registry: string;
  tags: string[];
  digests: string[];
  signal: AbortSignal;
}

async function take(d: PullDeps, t: Taken): Promise<ImageRecord> {
  const { programs, limits, records } = d;
  const { dir, signal } = t;
  const layout = join(dir, 'layout');
  const copy = ['copy', '--quiet', ...t.access, t.from, `oci:${layout}:image`];
  await skopeo(d, copy, { signal, tmp: dir, watch: watchDownload(dir, { limits, registry: t.registry }) });
  const { id, config } = readLayout(layout, limits);
  const known = records.find(id);
  if (known !== undefined) {
    records.name(known, t);
    return known;
  }
  const image = join(dir, 'image');
  mkdirSync(image, { mode: 0o700 });
  // umoci checks digests once more, and resolves links within the root file system.
  const unpack = ['raw', 'unpack', '--image', `${layout}:image`, join(image, 'rootfs')];
  await bounded(d, programs.umoci.path, unpack, { signal, watch: watchUnpacking(dir, limits) });
  const usage = await diskUsage(image);
  // A small image is unpacked between two looks of the watch.
  const beyond = tooMuch(usage, limits);
  if (beyond !== null) throw new Error(beyond);
  const record: ImageRecord = { id, tags: t.tags, digests: t.digests, config, ...usage };
  records.add(record, image);
  return records.find(id) ?? record;
}

type Ran = { signal: AbortSignal; watch(): string | null; tmp?: string };

function skopeo(d: PullDeps, args: string[], o: Ran): Promise<Buffer> {
  const policy = existsSync(POLICY) ? [] : ['--insecure-policy'];
  return bounded(d, d.programs.skopeo.path, [...policy, '--override-os', 'linux', ...args], o);
}

/** No file of it grows beyond the limit: the kernel sees to that between two looks of the watch. */
function bounded({ programs, limits, root }: PullDeps, file: string, args: string[], o: Ran): Promise<Buffer> {
  const { signal, watch, tmp } = o;
  // In a user namespace skopeo would take itself for the machine's root, and look into folders of root's.
  const rootless = root ? {} : { _CONTAINERS_USERNS_CONFIGURED: 'done', _CONTAINERS_ROOTLESS_UID: '1' };
  const env = { ...process.env, ...rootless, ...(tmp === undefined ? {} : { TMPDIR: tmp }) };
  return runProgram(programs.prlimit, [`--fsize=${limits.bytesMax}`, '--core=0', '--', file, ...args], { signal, watch, env });
}
