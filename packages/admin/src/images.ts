/** Loads archives of images into the embedded runtime of a node. */
import { request } from 'node:http';
import { dirname, join, resolve } from 'node:path';
import { CtlError, EXIT } from './client.ts';

export interface LoadedImage {
  id: string;
  tags: string[];
}

/** `name`: for an archive whose one image has none, or another; else ''. @throws CtlError with what is wrong. */
export async function loadImages(adminSocket: string, o: { file: string; name: string; signal?: AbortSignal }): Promise<LoadedImage[]> {
  const socketPath = join(dirname(resolve(adminSocket)), 'sandbox', 'streaming.sock');
  const query = new URLSearchParams({ path: resolve(o.file), name: o.name });
  const answer = await new Promise<string>((done, reject) => {
    const req = request({ socketPath, method: 'POST', path: `/load?${query}`, agent: false, ...(o.signal ? { signal: o.signal } : {}) });
    req.on('response', (res) => {
      let body = '';
      res.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
      res.on('end', () => done(body));
      res.on('error', reject);
    });
    req.on('error', ({ message }) => {
      const todo = 'images are loaded into a node that runs on embedded://oci';
      reject(new CtlError(EXIT.noDaemon, `no embedded runtime answers at ${socketPath} (${message}): ${todo}`));
    });
    req.end();
  });
  const { loaded, error } = JSON.parse(answer) as { loaded?: LoadedImage[]; error?: string };
  if (loaded === undefined) throw new CtlError(EXIT.failed, error ?? 'the runtime did not answer');
  return loaded;
}
