/**
 * Drivers of dynamic resources of a simulated machine: they outlive daemons and keep what they have prepared. They register as
 * plugins of `drivers.ts` do, at the same socket.
 */

import type { DeviceHealth, PreparedDevice } from '@actorlet/kubelet/machines/allocation/claims/types.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import { CsiError } from '@actorlet/kubelet/ports/sockets/csi.ts';
import type { Dra, DraCall, DraClaim, DraConnection, Prepared } from '@actorlet/kubelet/ports/sockets/dra.ts';

export interface SimDraDriver {
  name: string;
  /** Nobody answers on its socket. */
  down: boolean;
  /** UIDs of claims that it has prepared. */
  prepared: Set<string>;
  /** What a claim gets. */
  devices(claim: DraClaim): readonly PreparedDevice[];
  /** Null: it says nothing of health. */
  health: readonly DeviceHealth[] | null;
}
type DraMethod = 'NodePrepareResources' | 'NodeUnprepareResources';
export interface SimDraCall {
  driver: string;
  method: DraMethod;
  uid: string;
}
/** What becomes of a call. `answer`: in place of the true one, after the effect. */
export type SimDraFault =
  | { kind: 'refuse'; details: string }
  /** In the answer, about the claim. */
  | { kind: 'error'; error: string }
  | { kind: 'lost'; effect: boolean }
  | { kind: 'answer'; answer: (prepared: Prepared) => Prepared };

export interface SimDra {
  /** By the path of the socket. */
  readonly sockets: Map<string, SimDraDriver>;
  readonly calls: SimDraCall[];
  /** Until a call is answered; Infinity: never. */
  latencyMs: (method: DraMethod) => number;
  fault: (call: SimDraCall) => SimDraFault | undefined;
  /** A call is about to have its effect. */
  onCall: (call: SimDraCall) => void;
  add(socket: string, o: Partial<SimDraDriver> & { name: string }): SimDraDriver;
  /** Its process ends: connections and calls with it. What it prepared stays. */
  die(socket: string): void;
  back(socket: string): void;
  /** The streams of health end, for this reason. */
  endHealth(socket: string, why: string): void;
  /** It tells anew how its devices are. */
  tell(socket: string, health: readonly DeviceHealth[]): void;
  /** The machine's power fails: nothing is prepared any more. */
  powerLoss(): void;
  connect(o: { clock: Clock; power: { on: boolean } }): Dra;
}

const CONNECT_MS = 1;
const UNAVAILABLE = 14;

/** One device of a claim, named after its UID. */
function oneDevice(driver: string): SimDraDriver['devices'] {
  return ({ uid }) => [{ pool: 'node', device: `dev-${uid}`, shareId: null, requests: [], cdiIds: [`${driver}/claim=${uid}`] }];
}

interface Peer {
  socket: string;
  /** Of the daemon that is connected: the dead hear nothing. */
  power: { on: boolean };
  changed(connected: boolean): void;
  health: { devices(devices: readonly DeviceHealth[]): void; end(why: string, never: boolean): void } | null;
}

export function simDra(): SimDra {
  const sockets = new Map<string, SimDraDriver>();
  const peers = new Set<Peer>();
  const of = (socket: string): Peer[] => {
    for (const peer of peers) if (!peer.power.on) peers.delete(peer);
    return [...peers].filter((p) => p.socket === socket);
  };
  const self: SimDra = {
    sockets,
    calls: [],
    latencyMs: () => 1,
    fault: () => undefined,
    onCall: () => {},
    add(socket, o) {
      const driver: SimDraDriver = { down: false, prepared: new Set(), devices: oneDevice(o.name), health: null, ...o };
      sockets.set(socket, driver);
      return driver;
    },
    die(socket) {
      const driver = sockets.get(socket);
      if (driver !== undefined) driver.down = true;
      for (const peer of of(socket)) peer.changed(false);
      self.endHealth(socket, 'connection closed');
    },
    back(socket) {
      const driver = sockets.get(socket);
      if (driver !== undefined) driver.down = false;
      for (const peer of of(socket)) peer.changed(true);
    },
    endHealth(socket, why) {
      for (const peer of of(socket)) {
        peer.health?.end(why, false);
        peer.health = null;
      }
    },
    tell(socket, health) {
      const driver = sockets.get(socket);
      if (driver !== undefined) driver.health = health;
      for (const peer of of(socket)) peer.health?.devices(health);
    },
    powerLoss() {
      for (const driver of sockets.values()) driver.prepared.clear();
    },
    connect: (o) => ({
      connect(endpoint, { changed }) {
        // As the real port, which cannot even make a connection to anything else.
        if (!endpoint.startsWith('/')) throw new Error(`endpoint "${endpoint}" is not a unix socket`);
        const heard = (up: boolean): void => void (o.power.on && peers.has(peer) && changed(up));
        const peer: Peer = { socket: endpoint, power: o.power, changed: heard, health: null };
        peers.add(peer);
        o.clock.setTimeout(() => peer.changed(sockets.get(endpoint)?.down === false), CONNECT_MS);
        return connectionOf(self, { peer, peers, ...o });
      },
    }),
  };
  return self;
}

interface Line {
  peer: Peer;
  peers: Set<Peer>;
  clock: Clock;
  power: { on: boolean };
}

function connectionOf(self: SimDra, line: Line): DraConnection {
  const { peer, peers, clock } = line;
  return {
    async prepare([claim], call) {
      if (claim === undefined) return {};
      const { driver, fault } = await reached(self, line, { method: 'NodePrepareResources', uid: claim.uid, call });
      if (fault?.kind === 'error') return { [claim.uid]: { devices: [], error: fault.error } };
      driver.prepared.add(claim.uid);
      const answer: Prepared = { [claim.uid]: { devices: driver.devices(claim), error: '' } };
      return fault?.kind === 'answer' ? fault.answer(answer) : answer;
    },
    async unprepare([claim], call) {
      if (claim === undefined) return {};
      const { driver, fault } = await reached(self, line, { method: 'NodeUnprepareResources', uid: claim.uid, call });
      if (fault?.kind === 'error') return { [claim.uid]: { error: fault.error } };
      driver.prepared.delete(claim.uid);
      return { [claim.uid]: { error: '' } };
    },
    watchHealth(on) {
      const driver = self.sockets.get(peer.socket);
      const health = driver?.health ?? null;
      peer.health = on;
      clock.setTimeout(() => {
        if (peer.health !== on || !line.power.on) return;
        if (health === null) on.end('unknown service v1alpha1.DRAResourceHealth', true);
        else on.devices(health);
      }, CONNECT_MS);
      return () => {
        if (peer.health === on) peer.health = null;
      };
    },
    close: () => void peers.delete(peer),
  };
}

/** The driver, when its answer is due. Rejects at the deadline, with the signal, or with a fault; a dead daemon hears nothing. */
function reached(
  self: SimDra,
  { peer, clock, power }: Line,
  { method, uid, call }: { method: DraMethod; uid: string; call: DraCall },
): Promise<{ driver: SimDraDriver; fault: SimDraFault | undefined }> {
  const failed = (code: number, details: string) => new CsiError({ method, code, details });
  return new Promise((resolve, reject) => {
    let over = false;
    const end = (fn: () => void): void => {
      if (over) return;
      over = true;
      clock.clearTimeout(late);
      call.signal.removeEventListener('abort', cancel);
      if (power.on) fn();
    };
    const cancel = () => end(() => reject(failed(1, 'context canceled')));
    const late = clock.setTimeout(() => end(() => reject(failed(4, 'context deadline exceeded'))), call.timeoutMs);
    if (call.signal.aborted) return cancel();
    call.signal.addEventListener('abort', cancel, { once: true });
    const latencyMs = self.latencyMs(method);
    if (!Number.isFinite(latencyMs)) return;
    clock.setTimeout(() => {
      const driver = self.sockets.get(peer.socket);
      if (over || driver === undefined || driver.down) return end(() => reject(failed(UNAVAILABLE, 'connection error')));
      const seen = { driver: driver.name, method, uid };
      self.calls.push(seen);
      self.onCall(seen);
      const fault = self.fault(seen);
      if (fault?.kind === 'refuse') return end(() => reject(failed(2, fault.details)));
      if (fault?.kind !== 'lost') return end(() => resolve({ driver, fault }));
      // The answer does not come before the deadline, whether there was an effect or not.
      if (!fault.effect) return;
      if (method === 'NodePrepareResources') driver.prepared.add(uid);
      else driver.prepared.delete(uid);
    }, latencyMs);
  });
}
