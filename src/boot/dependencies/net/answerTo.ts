/** What answers a request of Node's HTTP client, also where a server switches protocols unasked. */
import type { ClientRequest, IncomingMessage } from 'node:http';

/**
 * Sends it. Without a listener, Node cuts off who switches protocols, without a response and without an error, and hears no
 * signal after that. It is an answer like any other, as in Go; what comes after it is no body.
 */
export function answerTo(req: ClientRequest, body?: Buffer): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    req.on('response', resolve);
    req.on('error', reject);
    req.on('upgrade', (switched, connection) => {
      connection.destroy();
      switched.push(null);
      resolve(switched);
    });
    req.end(body);
  });
}
