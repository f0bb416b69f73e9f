/** One HTTPS request of a test, or one over a unix socket, with its answer as text. */
import { request as plainly } from 'node:http';
import { type RequestOptions, request } from 'node:https';

export interface Answer {
  status: number;
  body: string;
}
export function askHttps(options: RequestOptions, body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const req = (options.socketPath === undefined ? request : plainly)({ ...options, agent: false }, (res) => {
      let text = '';
      res.on('data', (d: Buffer) => {
        text += d.toString();
      });
      res.once('error', reject);
      res.once('end', () => resolve({ status: res.statusCode ?? 0, body: text }));
    });
    req.once('timeout', () => req.destroy(new Error(`${options.path}: no answer`)));
    req.once('error', reject);
    req.end(body);
  });
}
