/** An observer that is asked over TCP, through a forwarded port, with a token. */
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { readGivenSync } from '@actorlet/process/src/givenFile.ts';
import { CtlError, EXIT, type RemoteAddress } from './client.ts';

const TOKEN_CHARS_MAX = 4_096;
const TOKEN_FILE_BYTES_MAX = 64 * 1024;

/** Of the process that asks. */
interface Asked {
  env: Readonly<Record<string, string | undefined>>;
}

/** `--server` and `--token-file`, else ACTORLET_SERVER and ACTORLET_TOKEN_FILE; undefined: the admin socket is meant. */
export function remoteFrom(
  { server, tokenFile, socket }: { server?: string | undefined; tokenFile?: string | undefined; socket?: string | undefined },
  { env }: Asked,
): RemoteAddress | undefined {
  if (server !== undefined && socket !== undefined) throw new CtlError(EXIT.usage, '--server and --socket name two nodes: give one.');
  const at = socket === undefined ? (server ?? env.ACTORLET_SERVER ?? '') : '';
  if (at === '') return undefined;
  const file = tokenFile ?? env.ACTORLET_TOKEN_FILE ?? '';
  if (file === '') throw new CtlError(EXIT.usage, `${at} wants a token: --token-file FILE. 'actorctl token' on the node prints it.`);
  return { server: loopbackOf(at), token: tokenIn(file) };
}

/** What goes there is not encrypted, so it is to stay on this machine: the forwarded port has the encryption. */
function loopbackOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isLoopback = url !== null && /^(?:127(?:\.\d+){3}|localhost|\[::1\])$/.test(url.hostname);
  if (url?.protocol !== 'http:' || !isLoopback)
    throw new CtlError(EXIT.usage, `--server ${JSON.stringify(text)}: give a forwarded port of this machine, as http://127.0.0.1:10261.`);
  return url;
}

function tokenIn(file: string): string {
  let text: string;
  try {
    text = readGivenSync(file, { bytesMax: TOKEN_FILE_BYTES_MAX });
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    throw new CtlError(
      code === 'EACCES' ? EXIT.noPermission : EXIT.usage,
      `the token cannot be read from ${file}: ${/^E(?!INVAL)/.test(code) ? code : messageOf(error)}.`,
    );
  }
  const token = text.trim();
  if (token === '' || token.length > TOKEN_CHARS_MAX || /[^\x21-\x7e]/.test(token))
    throw new CtlError(EXIT.usage, `${file} holds no token: it is to be one word.`);
  return token;
}
