/** The step that makes the API server's certificate where none is given (boot-and-node 6.6). */

import { access, constants, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { servingFiles } from '../../actors/edge/options.ts';
import type { NodeConfig } from '../../machines/config/config.ts';
import { codeOf, messageOf } from '../../machines/text/errors.ts';
import { type Problem, StartError } from '../errors.ts';
import { need, type Step } from './context.ts';

const DIR_MODE = 0o755;
const CERT_MODE = 0o644;
const KEY_MODE = 0o600;

/** What is missing of the files that are given, or left in `--cert-dir`. Null: nothing. Changes nothing. */
export async function servingProblem({ config, flags }: Pick<NodeConfig, 'config' | 'flags'>): Promise<Problem | null> {
  if (!config.enableServer) return null;
  const given = config.authentication.x509.clientCAFile;
  if (given !== '' && !(await readable(given)))
    return {
      where: 'authentication.x509.clientCAFile (--client-ca-file)',
      what: `${given} cannot be read: client certificates cannot be checked`,
    };
  const { certFile, keyFile } = servingFiles({ config, flags });
  const have = { cert: await readable(certFile), key: await readable(keyFile) };
  if (config.tlsCertFile !== '') {
    if (!have.cert) return { where: 'tlsCertFile (--tls-cert-file)', what: `${certFile} cannot be read` };
    return have.key ? null : { where: 'tlsPrivateKeyFile (--tls-private-key-file)', what: `${keyFile} cannot be read` };
  }
  if (config.serverTLSBootstrap || have.cert === have.key) return null;
  const [there, missing] = have.cert ? [certFile, keyFile] : [keyFile, certFile];
  const what = `${there} is there and ${missing} is not readable; bring it back, or remove both and they are made anew`;
  return { where: '--cert-dir', what };
}

export const makeServingCertificate: Step = {
  name: 'make the serving certificate',
  async run(ctx) {
    const { config, flags } = need(ctx, 'nodeConfig');
    const problem = await servingProblem({ config, flags });
    if (problem !== null) throw new StartError('the API server cannot be served', [problem]);
    if (!config.enableServer || config.tlsCertFile !== '') return undefined;
    // That certificate comes from the cluster, once the node belongs to it.
    if (config.serverTLSBootstrap) return undefined;
    const { certFile, keyFile } = servingFiles({ config, flags });
    if (await readable(certFile)) return undefined;
    const host = (flags.hostnameOverride || hostname()).trim().toLowerCase();
    try {
      const { selfSignedCertificate } = await import('../process/selfSigned.ts');
      const made = await selfSignedCertificate(host, Date.now());
      await mkdir(dirname(certFile), { recursive: true, mode: DIR_MODE });
      // The certificate last: what is there then is whole. Neither is ever seen half written.
      await put(keyFile, made.key, KEY_MODE);
      await put(certFile, made.cert, CERT_MODE);
    } catch (error) {
      const hint = codeOf(error) === 'EACCES' ? '; choose a folder you may write, or set enableServer: false for no server' : '';
      throw refused('--cert-dir', `a serving certificate cannot be put into ${flags.certDir}: ${messageOf(error)}${hint}`);
    }
    need(ctx, 'log').info({ certificate: certFile, host }, 'made a self-signed serving certificate, valid for a year');
    return undefined;
  },
};

function refused(where: string, what: string): StartError {
  return new StartError('the API server has no certificate to serve with', [{ where, what }]);
}

async function readable(path: string): Promise<boolean> {
  try {
    await access(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

async function put(path: string, text: string, mode: number): Promise<void> {
  const beside = `${path}.new`;
  await rm(beside, { force: true });
  await writeFile(beside, text, { mode, flag: 'wx', flush: true });
  await rename(beside, path);
}
