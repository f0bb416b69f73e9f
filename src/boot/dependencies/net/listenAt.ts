/**
 * Options of `server.listen`. `0.0.0.0` stands for every address of this machine, those of IPv6 among them, as in Go: without a host
 * Node listens on both, and on IPv4 alone where there is no IPv6.
 */
export function listenAt({ host, port }: { host: string; port: number }): { host?: string; port: number } {
  return host === EVERY_IPV4_ADDRESS ? { port } : { host, port };
}

const EVERY_IPV4_ADDRESS = '0.0.0.0';
