/** Header blocks of SPDY/3 on their way in: one zlib stream for each connection, with the dictionary of the protocol. */
import { once } from 'node:events';
import { constants, createInflate, type Inflate } from 'node:zlib';

/** Headers of one stream; what Kubernetes sends has a tenth of it. */
const BLOCK_BYTES_MAX = 64 * 1024;

/** Each with its length before it. */
const WORDS = (
  'options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow authorization ' +
  'cache-control connection content-base content-encoding content-language content-length content-location content-md5 content-range ' +
  'content-type date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified ' +
  'location max-forwards pragma proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding ' +
  'upgrade user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie keep-alive origin'
)
  .split(' ')
  .map((word) => word.replace('_', ' '));
const TAIL =
  '100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative Information' +
  '204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error' +
  '501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, ' +
  'Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,' +
  'publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.';

function sized(text: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(text.length);
  return Buffer.concat([length, Buffer.from(text)]);
}
const DICTIONARY = Buffer.concat([...WORDS.map(sized), Buffer.from(TAIL)]);

export class HeaderReader {
  readonly #inflate: Inflate = createInflate({ dictionary: DICTIONARY, flush: constants.Z_SYNC_FLUSH });

  constructor() {
    // Seen by the read that waits.
    this.#inflate.on('error', () => undefined);
  }

  /** Names are in lower case; of a name that comes twice the first value counts. @throws on a block that is none, or too large. */
  async read(block: Buffer): Promise<Map<string, string>> {
    const plain = await this.#plain(block);
    const headers = new Map<string, string>();
    let at = 4;
    const text = (): string => {
      const bytes = plain.readUInt32BE(at);
      if (at + 4 + bytes > plain.length) throw new Error('a header block ends too early');
      at += 4 + bytes;
      return plain.toString('latin1', at - bytes, at);
    };
    for (let left = plain.readUInt32BE(0); left > 0; left--) {
      const [name, value] = [text().toLowerCase(), text()];
      if (!headers.has(name)) headers.set(name, value);
    }
    return headers;
  }

  async #plain(block: Buffer): Promise<Buffer> {
    const inflate = this.#inflate;
    const parts: Buffer[] = [];
    let bytes = 0;
    let over = false;
    const done = new Promise<void>((resolve, reject) => inflate.write(block, (error) => (error ? reject(error) : resolve())));
    done.then(
      () => (over = true),
      () => (over = true),
    );
    for (;;) {
      const part = inflate.read() as Buffer | null;
      if (part === null && over) break;
      if (part === null) await Promise.race([done, once(inflate, 'readable')]);
      else parts.push(part);
      bytes += part?.length ?? 0;
      if (bytes > BLOCK_BYTES_MAX) throw new Error(`a header block has more than ${BLOCK_BYTES_MAX} bytes`);
    }
    await done;
    return Buffer.concat(parts);
  }

  close(): void {
    this.#inflate.destroy();
  }
}
