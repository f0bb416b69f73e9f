/**
 * What this node has pulled and with whose credentials, below `<root-dir>/image_manager`: an intent before each pull, a record after it.
 * What cannot be read or written is taken for "the pod has to show its credentials". One operation at a time.
 */

import { own } from '../../../machines/data/own.ts';
import { sameData } from '../../../machines/data/sameData.ts';
import type { OwnedAuth } from '../../../machines/runtime/imagePuller/keyring.ts';
import { fullNameOf } from '../../../machines/runtime/imagePuller/messages.ts';
import {
  type AccessGranted,
  accessOf,
  credentialText,
  grantedBy,
  intentText,
  isPulledByName,
  mustVerify,
  nameOf,
  namesIn,
  namesOwners,
  type PulledRecord,
  preloadedNames,
  RECORD_BYTES_MAX,
  readIntent,
  readRecord,
  recordText,
  type VerificationPolicy,
  withAccess,
} from '../../../machines/runtime/imagePuller/pullRecords.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { AuthConfig, Image } from '../../../machines/wire/cri.ts';
import { ifThere, listIfThere, textIfThere, unlinkIfThere } from '../../../ports/ifThere.ts';
import { LastingFolder } from '../../../ports/lastingFolder.ts';
import type { Clock, Entropy, HostFs, Logger } from '../../../ports/ports.ts';

const DIR_MODE = 0o700;
const FILE_MODE = 0o600;
const PREFIX = 'sha256-';
const TEMPORARY = '.tmp';

export interface VerificationOptions {
  policy: VerificationPolicy;
  /** Names of images without tag or digest, or beginnings that end in `/*`. */
  allowlist: readonly string[];
  /** `<root-dir>/image_manager`. */
  dir: string;
}
export interface PullRecordsOptions extends VerificationOptions {
  ports: { fs: HostFs; entropy: Entropy; clock: Clock };
  log: Logger;
  /** Every image that the runtime has. */
  images(): Promise<readonly Image[]>;
  /** What each {@link PullRecords.mustPull} came to. */
  checked?(result: PullCheck): void;
}
/** An image that is there. `listed`: its {@link namesOf}. */
interface Present {
  image: string;
  imageRef: string;
  listed: readonly string[];
}
/** Every name by which the runtime has it. */
export const namesOf = (image: Image | null): string[] => [...(image?.repoTags ?? []), ...(image?.repoDigests ?? [])];
/** Whether a pod may use an image that is there; in the words of the kubelet's metric. */
export type PullCheck = 'credentialPolicyAllowed' | 'credentialRecordFound' | 'mustAuthenticate' | 'error';

export class PullRecords {
  readonly #o: PullRecordsOptions;
  /** Pulls under way, by image. */
  readonly #intents = new Map<string, number>();
  /** Intents of an earlier daemon have become records, and records of images that are gone have gone. */
  #settled = false;
  #last: Promise<unknown> = Promise.resolve();
  /** By image that this node had not pulled when it was last used: what the runtime listed then. */
  readonly #before = new Map<string, readonly string[]>();
  readonly #folders: readonly LastingFolder[];

  constructor(o: PullRecordsOptions) {
    this.#o = o;
    // Without them an image that was pulled with credentials would count as preloaded.
    const root = o.dir.slice(0, o.dir.lastIndexOf('/'));
    this.#folders = [this.#pulling(), this.#pulled()].map((dir) => new LastingFolder(o.ports.fs, dir, { mode: DIR_MODE, root }));
  }

  /**
   * Whether the registry has to be asked although the image is there. `auths`: called where a record names whose credentials open
   * it, and outside of the turn, since programs may be asked. Never rejects.
   */
  async mustPull(o: Present & { auths(): Promise<readonly OwnedAuth[]> }): Promise<boolean> {
    const first = await this.#inTurn(() => this.#check(o, null));
    const auths = first === null ? await o.auths() : [];
    const result = first ?? (await this.#inTurn(() => this.#check(o, auths))) ?? 'error';
    this.#o.checked?.(result);
    return result === 'mustAuthenticate' || result === 'error';
  }

  /** Null: it depends on credentials, and `auths` is null. */
  async #check(o: Present, auths: readonly OwnedAuth[] | null): Promise<PullCheck | null> {
    const { policy, allowlist } = this.#o;
    // What these two say depends on no record.
    if (policy === 'NeverVerify') return 'credentialPolicyAllowed';
    if (policy === 'NeverVerifyAllowlistedImages' && !mustVerify({ policy, allowlist }, { image: o.image, pulledHere: true }))
      return 'credentialPolicyAllowed';
    try {
      await this.#settle();
      const record = await this.#record(o.imageRef);
      const pulledHere = (record !== null && isPulledByName(record, o)) || (await this.#intended(o.image));
      if (!pulledHere && this.#intents.size === 0) this.#before.set(o.imageRef, o.listed);
      if (!mustVerify({ policy, allowlist }, { image: o.image, pulledHere })) return 'credentialPolicyAllowed';
      if (record === null) return 'mustAuthenticate';
      const name = nameOf(o.image);
      if (name === null) return 'error';
      const known = own(record.access, name);
      if (auths === null && namesOwners(known)) return null;
      const access = accessOf(known, auths ?? [], (auth) => this.#hash(auth));
      if (!access.granted) return 'mustAuthenticate';
      if (access.learn !== null) await this.#learn(o, access.learn);
      return 'credentialRecordFound';
    } catch (error) {
      this.#o.log.error({ image: o.image, err: messageOf(error) }, 'what is known of pulls cannot be read: the registry is asked');
      return 'error';
    }
  }

  /** Before a pull. Rejects where it cannot be written down: an image must not come unseen. Pulls of one image share a note. */
  begin(image: string): Promise<void> {
    return this.#inTurn(async () => {
      const others = this.#intents.get(image) ?? 0;
      if (others === 0) {
        for (const folder of this.#folders) await folder.make();
        await this.#write(this.#pulling(), image, intentText(image));
      }
      this.#intents.set(image, others + 1);
    });
  }

  /** After one that worked. Never rejects: without its record the intent stays, and says that the node pulled it. */
  pulled(o: Present & { auth: OwnedAuth | null }): Promise<void> {
    return this.#inTurn(async () => {
      let written = false;
      try {
        await this.#learn(
          o,
          grantedBy(o.auth, (auth) => this.#hash(auth)),
        );
        written = true;
      } catch (error) {
        this.#o.log.error({ image: o.image, err: messageOf(error) }, 'a pull cannot be recorded: the next pod has to ask the registry');
      }
      await this.#end(o.image, written);
    });
  }

  /** `unknown`: the image may come, or have come, all the same. Never rejects. */
  failed(image: string, { unknown }: { unknown: boolean }): Promise<void> {
    return this.#inTurn(() => this.#end(image, !unknown));
  }

  /**
   * An image was removed. Asked once more: one that came again meanwhile keeps its record, without which it would count as
   * one that this node never pulled. Never rejects: what stays is looked through when the next daemon begins.
   */
  forget(imageRef: string): Promise<void> {
    return this.#inTurn(async () => {
      try {
        if ((await this.#o.images()).some((i) => i.id === imageRef)) return;
        this.#before.delete(imageRef);
        await this.#remove(this.#pulled(), imageRef);
      } catch (error) {
        this.#o.log.warn(
          { imageRef, err: messageOf(error) },
          'the record of an image that is gone cannot be removed; it grants nothing without it',
        );
      }
    });
  }

  #inTurn<T>(operation: () => Promise<T>): Promise<T> {
    const result = this.#last.then(operation, operation);
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #end(image: string, forget: boolean): Promise<void> {
    const left = (this.#intents.get(image) ?? 1) - 1;
    if (left > 0) this.#intents.set(image, left);
    else this.#intents.delete(image);
    if (left > 0 || !forget) return;
    try {
      await this.#remove(this.#pulling(), image);
    } catch (error) {
      this.#o.log.error({ image, err: messageOf(error) }, 'the note of a pull that is over cannot be removed');
    }
  }

  /** Adds to the record, or makes one. What stands there and cannot be read is replaced: it grants nothing. */
  async #learn({ image, imageRef, listed }: Present, more: AccessGranted): Promise<void> {
    const name = nameOf(image);
    if (name === null) throw new Error(`"${image}" is no name of an image`);
    const known = await this.#record(imageRef).catch(() => undefined);
    const access: Record<string, AccessGranted> = { ...known?.access };
    if (known !== undefined && own(access, name) === undefined) {
      const o = { before: this.#before.get(imageRef) ?? [], listed, pulls: await this.#underWay() };
      for (const free of preloadedNames(name, o)) access[free] = { nodePodsAccessible: true };
    }
    for (const pulled of namesIn(image)) delete access[pulled];
    access[name] = withAccess(own(access, name), more);
    if (known && sameData(known.access, access)) return;
    const record: PulledRecord = { updatedMs: this.#o.ports.clock.wallMs(), imageRef, access };
    await this.#write(this.#pulled(), imageRef, recordText(record));
  }

  /** Null: there is none. Rejects where one stands there that cannot be read. */
  async #record(imageRef: string): Promise<PulledRecord | null> {
    const text = await this.#read(this.#pulled(), this.#fileName(imageRef));
    if (text === null) return null;
    const record = readRecord(text);
    if (record === null) throw new Error(`${this.#pulled()}/${this.#fileName(imageRef)} is no record of a pull`);
    return record.imageRef === imageRef ? record : null;
  }

  async #intended(image: string): Promise<boolean> {
    return this.#intents.has(image) || (await this.#read(this.#pulling(), this.#fileName(image))) !== null;
  }

  /** Every image that stands in an intent; null where one cannot be read. */
  #underWay(): Promise<(string | null)[]> {
    return this.#files(this.#pulling()).then((files) =>
      Promise.all(files.map(async (file) => readIntent((await this.#read(this.#pulling(), file)) ?? ''))),
    );
  }

  /** Once: what an earlier daemon began may have come, and nobody knows with what; and records of images that are gone. */
  async #settle(): Promise<void> {
    if (this.#settled) return;
    const intents = await this.#files(this.#pulling());
    const records = await this.#files(this.#pulled());
    if (intents.length > 0 || records.length > 0) {
      const images = await this.#o.images();
      for (const file of intents) await this.#settleIntent(file, images);
      const ids = new Set(images.map((i) => i.id));
      for (const file of records) {
        const record = readRecord((await this.#read(this.#pulled(), file)) ?? '');
        if (record !== null && !ids.has(record.imageRef)) await this.#o.ports.fs.unlink(`${this.#pulled()}/${file}`);
      }
    }
    this.#settled = true;
  }

  async #settleIntent(file: string, images: readonly Image[]): Promise<void> {
    const image = readIntent((await this.#read(this.#pulling(), file)) ?? '');
    // A pull of this daemon is still under way.
    if (image === null || this.#intents.has(image)) return;
    const wanted = fullNameOf(image);
    const come = images
      .map((i) => ({ image, imageRef: i.id, listed: namesOf(i) }))
      .filter((i) => i.listed.some((n) => fullNameOf(n) === wanted));
    // The name stands in the record without credentials: it is none that was there before.
    for (const present of come) await this.#learn(present, {});
    if (come.length > 0) await this.#o.ports.fs.unlink(`${this.#pulling()}/${file}`);
  }

  #hash(auth: AuthConfig): string {
    return this.#o.ports.entropy.sha256Hex(credentialText(auth));
  }
  #pulling(): string {
    return `${this.#o.dir}/pulling`;
  }
  #pulled(): string {
    return `${this.#o.dir}/pulled`;
  }
  #fileName(key: string): string {
    return `${PREFIX}${this.#o.ports.entropy.sha256Hex(key)}`;
  }

  async #files(dir: string): Promise<string[]> {
    return (await listIfThere(this.#o.ports.fs, dir)).filter((name) => name.startsWith(PREFIX) && !name.endsWith(TEMPORARY));
  }

  /** Null: there is no such file, or nothing that could be a record. */
  #read(dir: string, file: string): Promise<string | null> {
    return ifThere(textIfThere(this.#o.ports.fs, `${dir}/${file}`, RECORD_BYTES_MAX), ['EFBIG', 'EINVAL']);
  }

  async #write(dir: string, key: string, text: string): Promise<void> {
    const { fs } = this.#o.ports;
    const path = `${dir}/${this.#fileName(key)}`;
    await fs.writeFile(`${path}${TEMPORARY}`, text, { mode: FILE_MODE, fsync: true });
    await fs.rename(`${path}${TEMPORARY}`, path);
    await fs.fsyncDir(dir);
  }

  #remove(dir: string, key: string): Promise<void> {
    return unlinkIfThere(this.#o.ports.fs, `${dir}/${this.#fileName(key)}`);
  }
}
