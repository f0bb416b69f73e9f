/** What is in an archive of images: one of `docker save` or `podman save`, or a tar of an OCI layout. */
import { statSync } from 'node:fs';
import { textsOf } from '@actorlet/kubelet/machines/shape/lenient.ts';
import { CODE, RuntimeRefusal } from '../../shared/model.ts';
import { ProgramError, runProgram } from '../run.ts';
import { within } from './budget.ts';
import { parseName } from './names.ts';

const LOOK_WITHIN_MS = 120_000;
const IMAGES_MAX = 100;
const OCI_NAME = ['io.containerd.image.name', 'org.opencontainers.image.ref.name'] as const;

export interface ArchiveImage {
  /** For skopeo, with `PATH` in the place of the file. */
  transport: string;
  tags: string[];
}

/** `name`: for an archive with one image, instead of what the archive says; '' for that. @throws RuntimeRefusal */
export async function archiveImages(path: string, o: { name: string; signal: AbortSignal }): Promise<ArchiveImage[]> {
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) throw refuse(path, 'there is no such file');
  const read = (member: string): Promise<unknown> =>
    runProgram('tar', ['-xOf', path, '--occurrence=1', member], {
      signal: o.signal,
      watch: within(LOOK_WITHIN_MS, 'the archive was not read'),
    }).then((out) => JSON.parse(out.toString('utf8')) as unknown);
  let isCut = false;
  const orNull = (error: Error): null => {
    isCut ||= error instanceof ProgramError && error.stderr.includes('Unexpected EOF');
    return null;
  };
  const docker = await read('manifest.json').catch(orNull);
  const oci = Array.isArray(docker) ? null : await read('index.json').catch(orNull);
  const found = Array.isArray(docker)
    ? docker.map((m: { RepoTags?: unknown } | null, i) => ({ transport: `docker-archive:PATH:@${i}`, named: textsOf(m?.RepoTags) }))
    : ociImages(oci);
  if (found.length === 0 && isCut) throw refuse(path, 'it ends too early: it was not copied whole');
  if (found.length === 0)
    throw refuse(path, 'it is no archive of images: neither manifest.json (docker save) nor index.json (OCI) is in it');
  if (found.length > IMAGES_MAX) throw refuse(path, `it has more than ${IMAGES_MAX} images`);
  if (o.name !== '' && found.length > 1) throw refuse(path, `it has ${found.length} images, so one name does not do`);
  return found.map(({ transport, named }) => {
    const names = o.name === '' ? named : [o.name];
    const tags = names.map((n) => parseName(n)?.full ?? '').filter((n) => n !== '' && !n.includes('@'));
    if (tags.length === 0)
      throw refuse(path, `its image has no name${names.length > 0 ? ` that can be used (${names.join(', ')})` : ''}: give one with --name`);
    return { transport, tags };
  });
}

function ociImages(index: unknown): { transport: string; named: string[] }[] {
  const { manifests } = (index ?? {}) as { manifests?: unknown };
  if (!Array.isArray(manifests)) return [];
  return manifests.map((m: { annotations?: Record<string, unknown> } | null) => {
    const annotations = m?.annotations ?? {};
    const ref = annotations[OCI_NAME[1]];
    const selected = typeof ref === 'string' && manifests.length > 1 ? `:${ref}` : '';
    return { transport: `oci-archive:PATH${selected}`, named: textsOf(OCI_NAME.map((key) => annotations[key])).slice(0, 1) };
  });
}

const refuse = (path: string, why: string): RuntimeRefusal => new RuntimeRefusal(CODE.invalidArgument, `cannot load ${path}: ${why}`);
