/** `--listen`: `actorctl` of a laptop asks this observer through a forwarded port. */
import { randomBytes } from 'node:crypto';
import { closeSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '@actorlet/kubelet/boot/errors.ts';
import { need, type Step } from '@actorlet/kubelet/boot/steps/context.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { openOwnSync, readRegular } from '@actorlet/process/src/regularFile.ts';
import { observeArguments } from '../found/step.ts';
import { serveApi } from './api.ts';

const TOKEN_BYTES = 32;
/** A shorter one may be guessed. */
const TOKEN_CHARS_MIN = 32;
const TOKEN_FILE_BYTES_MAX = 4_096;
/** In the observer's own folder: `actorctl token` prints it. */
const TOKEN_FILE = 'token';
const TOKEN_MODE = 0o600;

export const serveTheApi: Step = {
  name: 'answer actorctl over TCP',
  async run(ctx) {
    const { listen, tokenFile, folder } = observeArguments(ctx.argv, { cwd: ctx.io.cwd });
    if (listen === null) return undefined;
    const token = tokenFile === '' ? makeToken(join(folder, TOKEN_FILE)) : await readToken(tokenFile);
    const socketPath = need(ctx, 'nodeConfig').flags.adminSocket;
    const where = `${listen.host.includes(':') ? `[${listen.host}]` : listen.host}:${listen.port}`;
    const api = await serveApi({ ...listen, token, socketPath }).catch((error: unknown) => {
      throw new StartError('the observer cannot be asked over TCP', [{ where: '--listen', what: `${where}: ${messageOf(error)}` }]);
    });
    ctx.cleanup.use(api);
    need(ctx, 'log').info(
      { address: where },
      `actorctl --server=http://${where} --token-file=FILE asks this observer; actorctl token prints the token`,
    );
    return undefined;
  },
};

/** Another one at each start. */
function makeToken(path: string): string {
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  const fd = openOwnSync(path, TOKEN_MODE);
  try {
    writeSync(fd, `${token}\n`);
  } finally {
    closeSync(fd);
  }
  return token;
}

async function readToken(path: string): Promise<string> {
  const wrong = (what: string): never => {
    throw new StartError('the observer has no token', [{ where: '--token-file', what: `${path}: ${what}` }]);
  };
  const text = await readRegular(path, { bytesMax: TOKEN_FILE_BYTES_MAX }).catch((error: unknown) => wrong(messageOf(error)));
  const token = text.toString('utf8').trim();
  if (token.length < TOKEN_CHARS_MIN || /\s/.test(token)) wrong(`a token is one word of at least ${TOKEN_CHARS_MIN} characters`);
  return token;
}
