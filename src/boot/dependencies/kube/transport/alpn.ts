/** Whether an API server speaks HTTP/2. All do, but proxies in front of one may not. */
import { connect, type SecureContext } from 'node:tls';

const TIMEOUT_MS = 5_000;
const HTTPS_PORT = 443;

/** True where that cannot be told now: calls then tell what is wrong. Only protocols are agreed upon, nothing is sent. */
export function speaksHttp2(server: URL, secureContext: SecureContext): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({
      host: server.hostname.replace(/^\[|\]$/g, ''),
      port: Number(server.port || HTTPS_PORT),
      secureContext,
      rejectUnauthorized: false,
      ALPNProtocols: ['h2', 'http/1.1'],
      timeout: TIMEOUT_MS,
    });
    const told = (is: boolean): void => {
      socket.destroy();
      resolve(is);
    };
    socket.once('secureConnect', () => told(socket.alpnProtocol === 'h2'));
    socket.once('timeout', () => told(true));
    socket.once('error', () => told(true));
  });
}
