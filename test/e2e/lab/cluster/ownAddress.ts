/** An address that this machine alone has: the reference kubelet takes none of 127.0.0.0/8, and the API server has to reach it. */
import { execFileSync } from 'node:child_process';

export interface OwnAddress extends Disposable {
  readonly ip: string;
}

/** Of a network for tests (RFC 2544), on the loopback interface, until it is disposed. */
export function ownAddress(): OwnAddress {
  const ip = `198.18.${(process.pid >> 8) & 0xff}.${process.pid & 0xff || 1}`;
  execFileSync('ip', ['address', 'add', `${ip}/32`, 'dev', 'lo']);
  return {
    ip,
    [Symbol.dispose]() {
      execFileSync('ip', ['address', 'del', `${ip}/32`, 'dev', 'lo']);
    },
  };
}
