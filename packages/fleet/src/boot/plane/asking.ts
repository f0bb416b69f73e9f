/** Questions to programs of a control plane by HTTPS. */
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import type { PairFiles } from '../../plane/flags.ts';

const TIMEOUT_MS = 5_000;
const BODY_BYTES_MAX = 1024 * 1024;

export interface AskedAs {
  caFile: string;
  pair: PairFiles;
}

/** The status and the text. @throws Error where there is no answer. */
export function ask(url: string, as: AskedAs): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const req = request(url, {
      ca: readFileSync(as.caFile),
      cert: readFileSync(as.pair.certFile),
      key: readFileSync(as.pair.keyFile),
      agent: false,
      timeout: TIMEOUT_MS,
    });
    req.once('timeout', () => req.destroy(new Error(`GET ${url}: no answer within ${TIMEOUT_MS} ms`)));
    req.once('error', reject);
    req.once('response', (res) => {
      let text = '';
      res.setEncoding('utf8').on('data', (part: string) => {
        text += part;
        if (text.length > BODY_BYTES_MAX) req.destroy(new Error(`GET ${url}: the answer is too long`));
      });
      res.once('error', reject);
      res.once('end', () => resolve({ status: res.statusCode ?? 0, text }));
    });
    req.end();
  });
}
