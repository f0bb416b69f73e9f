/** Credentials of a kubeconfig, read again when their files change: rotated certificates and tokens need no restart. */

import { stat } from 'node:fs/promises';
import { createSecureContext, getCACertificates, type SecureContext, type SecureContextOptions } from 'node:tls';
import { readRegular } from '@actorlet/process/src/regularFile.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { Clock, Logger } from '../../../ports/ports.ts';
import { createExecPlugin, type ExecPlugin } from './execPlugin.ts';
import { CREDENTIAL_BYTES_MAX, type KubeConfigFile, type Material } from './kubeconfig.ts';

/** Files are looked at no more often than this, and only when a call is made: a rotated certificate is used within it. */
const CREDENTIAL_CHECK_MS = 10_000;

export interface Loaded {
  /** Grows whenever certificate, key or authority changed: connections made with an older one must not be used again. */
  generation: number;
  tls: Pick<SecureContextOptions, 'ca' | 'cert' | 'key'>;
  /** Made of `tls` once, for every connection: each of its own would parse all of it again, and keep it. */
  context: SecureContext;
  /** Bearer token; '' for none. */
  token: string;
}

export interface Credentials {
  /** @throws Error naming the file when there is nothing to use; a failed reload keeps what was read before. */
  current(): Promise<Loaded>;
  /**
   * The credentials may be others now: look at the files before the next call. With `refused` the server said no to them; true when
   * the next call has others for sure, which a program gives.
   */
  suspect(o?: { refused: boolean }): boolean;
}

/** Changes with the content, as far as the file system tells. */
async function stampOf(material: Material | null): Promise<string> {
  if (material === null || 'data' in material) return '';
  const s = await stat(material.file);
  return `${s.ino} ${s.size} ${s.mtimeMs}`;
}

async function bytesOf(material: Material | null): Promise<Buffer | undefined> {
  if (material === null) return undefined;
  return 'data' in material ? material.data : readRegular(material.file, { bytesMax: CREDENTIAL_BYTES_MAX });
}

export interface CredentialsOptions {
  clock: Clock;
  log: Logger;
  /** What a credential program is given besides its own. Default: nothing. */
  env?: Readonly<Record<string, string | undefined>>;
}

export function createCredentials(config: KubeConfigFile, o: CredentialsOptions): Credentials {
  const parts = [config.ca, config.cert, config.key, config.token];
  const plugin: ExecPlugin | null =
    config.exec === null
      ? null
      : createExecPlugin(config.exec, {
          ...o,
          env: o.env ?? {},
          cluster: { server: config.server.href, tlsServerName: config.tlsServerName, ca: () => bytesOf(config.ca) },
        });
  let loaded: (Loaded & { stamp: string }) | undefined;
  let checkedAtMs = Number.NEGATIVE_INFINITY;
  let checking: Promise<Loaded> | undefined;
  let complained = '';

  const load = async (stamp: string): Promise<Loaded & { stamp: string }> => {
    const [ca, cert, key, token] = await Promise.all(parts.map(bytesOf));
    // OpenSSL passes over it, and then trusts no server.
    if (ca?.includes('CERTIFICATE-----') === false) throw new Error('the certificate authority holds no certificate in PEM');
    const tls = { ...(ca === undefined ? {} : { ca }), ...(cert === undefined ? {} : { cert }), ...(key === undefined ? {} : { key }) };
    // A certificate and a key that do not belong together, or half of a file: refused here, with the files' names.
    const context = contextOf(tls);
    const before = loaded?.tls;
    const same = before !== undefined && sameBytes(before.ca, ca) && sameBytes(before.cert, cert) && sameBytes(before.key, key);
    return {
      stamp,
      generation: same ? (loaded?.generation ?? 1) : (loaded?.generation ?? 0) + 1,
      tls,
      context,
      token: token === undefined ? '' : token.toString('utf8').trim(),
    };
  };

  const check = async (): Promise<Loaded> => {
    try {
      const stamp = (await Promise.all(parts.map(stampOf))).join('|');
      if (loaded === undefined || loaded.stamp !== stamp) {
        const again = loaded !== undefined;
        loaded = await load(stamp);
        if (again) o.log.info({ kubeconfig: config.path, generation: loaded.generation }, 'credentials of the API client were read again');
      }
      complained = '';
    } catch (error) {
      const files = [...new Set(parts.flatMap((p) => (p !== null && 'file' in p ? [p.file] : [])))].join(', ');
      const why = messageOf(error);
      const message = `kubeconfig ${config.path}: credentials cannot be used (${files === '' ? 'inline data' : files}): ${why}`;
      if (loaded === undefined) throw new Error(message);
      if (complained !== why) o.log.warn({ kubeconfig: config.path }, `${message}; what was read before stays in use`);
      complained = why;
    } finally {
      checkedAtMs = o.clock.monoMs();
    }
    return loaded;
  };

  const fromFiles = async (): Promise<Loaded> => {
    if (loaded !== undefined && o.clock.monoMs() - checkedAtMs < CREDENTIAL_CHECK_MS) return loaded;
    checking ??= check().finally(() => {
      checking = undefined;
    });
    return checking;
  };
  /** What files and program give together; a new generation when either of them changed what a connection is made with. */
  let joined: (Loaded & { of: number }) | undefined;
  return {
    async current() {
      const files = await fromFiles();
      if (plugin === null) return files;
      const given = await plugin.current();
      const token = files.token === '' ? given.token : files.token;
      const tls = {
        ...files.tls,
        ...(given.cert === undefined || files.tls.cert !== undefined ? {} : { cert: given.cert, key: given.key }),
      };
      const same =
        joined !== undefined &&
        joined.of === files.generation &&
        sameBytes(joined.tls.cert, Buffer.isBuffer(tls.cert) ? tls.cert : undefined);
      const context = same && joined !== undefined ? joined.context : contextOf(tls);
      joined = { of: files.generation, generation: same ? (joined?.generation ?? 1) : (joined?.generation ?? 0) + 1, tls, context, token };
      return joined;
    },
    suspect(how) {
      checkedAtMs = Number.NEGATIVE_INFINITY;
      return how?.refused === true && plugin !== null && plugin.refused();
    },
  };
}

/** Without anything older than TLS 1.2. An authority need not be a root, as in Go: clusters have intermediates for theirs. */
export function contextOf(tls: Loaded['tls']): SecureContext {
  const ca = tls.ca ?? ofThisMachine();
  return createSecureContext({ ...tls, ...(ca === undefined ? {} : { ca }), minVersion: 'TLSv1.2', allowPartialTrustChain: true });
}

/** The authorities of this machine. Where it has none, Node's own list stands in for them. */
function ofThisMachine(): string[] | undefined {
  const all = getCACertificates('system');
  return all.length === 0 ? undefined : all;
}

function sameBytes(a: unknown, b: Buffer | undefined): boolean {
  return a === undefined ? b === undefined : b !== undefined && Buffer.isBuffer(a) && a.equals(b);
}
