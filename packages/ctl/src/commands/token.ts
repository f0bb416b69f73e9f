/** `actorctl token`: what lets a laptop ask an observer through a forwarded port. */
import { dirname, join, resolve } from 'node:path';
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { readRegularSync } from '@actorlet/process/src/regularFile.ts';

const TOKEN_BYTES_MAX = 64 * 1024;

/** It is beside the admin socket, for who may use that. */
export function readToken(adminSocket: string): string {
  const file = join(dirname(resolve(adminSocket)), 'token');
  try {
    return readRegularSync(file, { bytesMax: TOKEN_BYTES_MAX }).toString().trim();
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code === 'EACCES' || code === 'EPERM') throw new CtlError(EXIT.noPermission, `no permission for ${file}.`);
    const why = code === 'ENOENT' ? 'no observer with --listen keeps one there' : code;
    throw new CtlError(EXIT.no, `no token in ${file}: ${why}.`);
  }
}
