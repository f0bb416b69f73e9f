/** Reads what `fileKeyRef`s of a container name. Containers wrote it, so it is trusted with nothing but text. */

import type { Container } from '../../../../machines/kube/podTable.ts';
import type { MountedVolume } from '../../../../machines/pod/volumes/containerMounts.ts';
import { ENV_FILE_BYTES_MAX, type EnvFile, type EnvFiles, envFileKey } from '../../../../machines/pods/workers/config/envFile.ts';
import { codeOf } from '../../../../machines/text/errors.ts';
import type { HostFs } from '../../../../ports/ports.ts';

/** `mounted`: asked for only where a variable comes from a file. */
export async function readEnvFiles(
  fs: HostFs,
  container: Container,
  mounted: () => Promise<ReadonlyMap<string, MountedVolume>>,
): Promise<EnvFiles> {
  const refs = (container.env ?? []).flatMap((e) => e.valueFrom?.fileKeyRef ?? []);
  const files = new Map<string, EnvFile>();
  if (refs.length === 0) return files;
  const volumes = await mounted();
  for (const ref of refs) {
    const key = envFileKey(ref);
    if (files.has(key)) continue;
    const volume = volumes.get(ref.volumeName);
    files.set(key, volume === undefined || volume.image === true ? { kind: 'noVolume' } : await readOne(fs, volume.hostPath, ref.path));
  }
  return files;
}

/** A link may stand there at any moment: what was really opened must lie in the volume, whatever its name says. */
async function readOne(fs: HostFs, volume: string, relative: string): Promise<EnvFile> {
  const path = `${volume}/${relative}`;
  if (relative.split('/').includes('..')) return { kind: 'unreadable', why: `"${relative}" leads out of the volume` };
  try {
    const file = await fs.openRead(path, { within: [volume] });
    try {
      const chunks: Uint8Array[] = [];
      let length = 0;
      for (let chunk = await file.read(0, CHUNK_BYTES); chunk.length > 0; chunk = await file.read(length, CHUNK_BYTES)) {
        chunks.push(chunk);
        length += chunk.length;
        if (length > ENV_FILE_BYTES_MAX) return { kind: 'unreadable', why: `"${path}" has more than ${ENV_FILE_BYTES_MAX} bytes` };
      }
      return { kind: 'found', path, content: joined(chunks, length) };
    } finally {
      await file.close();
    }
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT') return { kind: 'absent', path };
    return { kind: 'unreadable', why: WHY[code] === undefined ? `"${path}": ${String(error)}` : `"${path}" ${WHY[code]}` };
  }
}

const CHUNK_BYTES = 65_536;
const WHY: Readonly<Record<string, string>> = {
  EACCES: 'leads out of the volume',
  EINVAL: 'is not a regular file',
  ELOOP: 'is a ring of links',
  ENOTDIR: 'leads through something that is no directory',
};

function joined(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const all = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}
