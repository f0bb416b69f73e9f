/** The step that makes the API server's certificate where none is given (boot-and-node 6.6). */

import { access, constants, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { servingFiles } from '../../actors/edge/options.ts';
import { codeOf, messageOf } from '../../machines/text/errors.ts';
import { StartError } from '../errors.ts';
import { selfSignedCertificate } from '../process/selfSigned.ts';
import { need, type Step } from './context.ts';

const DIR_MODE = 0o755;
const CERT_MODE = 0o644;
const KEY_MODE = 0o600;

export const makeServingCertificate: Step = {
  name: 'make the serving certificate',
  async run(ctx) {
    const { config, flags } = need(ctx, 'nodeConfig');
    if (!config.enableServer) return undefined;
    const given = config.authentication.x509.clientCAFile;
    if (given !== '' && !(await readable(given)))
      throw new StartError('the client CA is not there: client certificates cannot be checked', [
        { where: 'authentication.x509.clientCAFile (--client-ca-file)', what: `${given} cannot be read` },
      ]);
    const { certFile, keyFile } = servingFiles({ config, flags });
    const have = { cert: await readable(certFile), key: await readable(keyFile) };
    if (config.tlsCertFile !== '') {
      if (!have.cert) throw refused('tlsCertFile (--tls-cert-file)', `${certFile} cannot be read`);
      if (!have.key) throw refused('tlsPrivateKeyFile (--tls-private-key-file)', `${keyFile} cannot be read`);
      return undefined;
    }
    // That certificate comes from the cluster, once the node belongs to it.
    if (config.serverTLSBootstrap) return undefined;
    if (have.cert && have.key) return undefined;
    if (have.cert !== have.key) {
      const [there, missing] = have.cert ? [certFile, keyFile] : [keyFile, certFile];
      throw refused('--cert-dir', `${there} is there and ${missing} is not readable; bring it back, or remove both and they are made anew`);
    }
    const host = (flags.hostnameOverride || hostname()).trim().toLowerCase();
    try {
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
