/** Probes of the network on a simulated machine. */
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { Prober } from '@actorlet/kubelet/ports/prober.ts';
import type { Power } from '../time.ts';

/** What probes find, after how many ms. */
export type Probed = () => { kind: 'healthy' | 'unhealthy' | 'refused'; afterMs: number };

/** Every address answers the same; a dead daemon hears nothing, and an aborted question ends. */
export function simProber(power: Power, clock: Clock, probed: Probed): Prober {
  const ask = (signal: AbortSignal) =>
    new Promise<'healthy' | 'unhealthy'>((resolve, reject) => {
      const { kind, afterMs } = probed();
      const fail = (message: string) => reject(new Error(message));
      const timer = clock.setTimeout(() => {
        if (!power.on) return;
        if (kind === 'refused') fail('connect ECONNREFUSED');
        else resolve(kind);
      }, afterMs);
      signal.addEventListener('abort', () => {
        clock.clearTimeout(timer);
        fail('aborted');
      });
    });
  const grpc: Prober['grpcHealth'] = async (_at, { signal }) => {
    try {
      return { ok: true, status: (await ask(signal)) === 'healthy' ? 1 : 2 };
    } catch (error) {
      return { ok: false, code: 14, details: String(error) };
    }
  };
  return {
    async httpGet(_url, { signal }) {
      return { status: (await ask(signal)) === 'healthy' ? 200 : 503, location: null, body: new Uint8Array(), bodyError: null };
    },
    async tcpDial(_at, { signal }) {
      await ask(signal);
    },
    grpcHealth: grpc,
  };
}
