/** Credentials of the node itself, in files that an administrator put there. What they open is open for every pod of the node. */

import { repositoryOf } from '../../../machines/runtime/imagePuller/credentialProviders.ts';
import type { DockerFilePlace } from '../../../machines/runtime/imagePuller/dockerFiles.ts';
import { type Credential, credentialsAmong, dockerCredentials, type OwnedAuth } from '../../../machines/runtime/imagePuller/keyring.ts';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import { ifThere } from '../../../ports/ifThere.ts';
import type { Logger, Ports } from '../../../ports/ports.ts';

/** So long what was read counts, also that there was nothing; as in the kubelet. */
const KEPT_MS = 300_000;
const FILE_BYTES_MAX = 1_048_576;

export class NodeKeyring {
  readonly #ports: Pick<Ports, 'clock' | 'fs'>;
  readonly #log: Logger;
  readonly #places: readonly DockerFilePlace[];
  #read: { entries: Promise<readonly Credential[]>; untilMonoMs: number } | null = null;

  constructor(o: { ports: Pick<Ports, 'clock' | 'fs'>; log: Logger; places: readonly DockerFilePlace[] }) {
    this.#ports = o.ports;
    this.#log = o.log;
    this.#places = o.places;
  }

  /** Those that match the image, best first. Never rejects. */
  async credentials(image: string): Promise<readonly OwnedAuth[]> {
    const at = repositoryOf(image);
    return at === null ? [] : credentialsAmong(await this.#entries(), at.repository);
  }

  #entries(): Promise<readonly Credential[]> {
    const nowMonoMs = this.#ports.clock.monoMs();
    if (this.#read === null || this.#read.untilMonoMs <= nowMonoMs)
      this.#read = { entries: this.#first(), untilMonoMs: nowMonoMs + KEPT_MS };
    return this.#read.entries;
  }

  /** What the first file says that can be used. */
  async #first(): Promise<readonly Credential[]> {
    for (const { path, kind } of this.#places) {
      const said = await this.#file(path, kind);
      if (typeof said !== 'string') return said;
      if (said !== '') this.#log.warn({ file: path, err: said }, 'credentials of this node cannot be used; the next file is looked at');
    }
    return [];
  }

  /** '': there is no such file, or it is for others; else what is wrong with it, without anything of it. */
  async #file(path: string, kind: DockerFilePlace['kind']): Promise<Credential[] | string> {
    try {
      const bytes = await ifThere(this.#ports.fs.readFile(path, { bytesMax: FILE_BYTES_MAX }));
      return bytes === null ? '' : dockerCredentials(kind, bytes);
    } catch (error) {
      if (codeOf(error) !== 'EACCES') return messageOf(error);
      // A daemon in a user namespace has a home that it may not look into.
      this.#log.info({ file: path }, 'there may be credentials of this node, but this process may not read them');
      return '';
    }
  }
}
