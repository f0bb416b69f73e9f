/**
 * CSI drivers of a simulated machine: they outlive daemons, keep what they have staged and published, and hold their caller
 * to the order that drivers rely on. What was done against it is noted as a violation.
 */

import type { CsiMethod, CsiRequest, CsiResponse, NodeCapability } from '@actorlet/kubelet/machines/wire/csi.ts';
import type { Clock, HostFs } from '@actorlet/kubelet/ports/ports.ts';
import { type Csi, type CsiCall, CsiError } from '@actorlet/kubelet/ports/sockets/csi.ts';
import type { SimMounts } from '../disk/mounts.ts';

export interface SimDriver {
  name: string;
  /** As it says of itself; absent: a driver of volumes. */
  type?: string;
  versions: string[];
  nodeId: string;
  volumesMax: number;
  topology: Record<string, string>;
  capabilities: Set<NodeCapability>;
  /** Where it says that it serves; '' = at the socket through which it registers. */
  endpoint: string;
  /** Nobody answers on its socket. */
  down: boolean;
  /** Handles by path. */
  staged: Map<string, string>;
  published: Map<string, string>;
  /** Target directories of its own making, which a power failure leaves behind. */
  made: Set<string>;
  /** Bytes that the file system of a volume uses, by handle, once it was grown. */
  grown: Map<string, number>;
}
export interface DriverCall {
  driver: string;
  method: CsiMethod;
  request: unknown;
}
/** What becomes of one call: refused without effect, or answered so although the effect comes. */
interface DriverFault {
  code: number;
  details: string;
  effect: boolean;
}

/** What drivers do with directories. */
export type DriverFs = Pick<HostFs, 'lstat' | 'mkdirp' | 'rmdir'>;

interface Connected {
  fs: DriverFs;
  mounts: SimMounts;
  clock: Clock;
  power: { on: boolean };
}

export class SimDrivers {
  /** By socket. */
  readonly sockets = new Map<string, SimDriver>();
  readonly calls: DriverCall[] = [];
  /** What plugins were told, in order: socket and error, '' = registered. */
  readonly told: { socket: string; error: string }[] = [];
  readonly violations: string[] = [];
  /** Until a call has its effect, and from then on until it is answered. */
  latencyMs: (method: string) => number = () => 1;
  answerMs: (method: string) => number = () => 0;
  fault: (driver: string, method: CsiMethod) => DriverFault | undefined = () => undefined;
  /** A call is about to have its effect. */
  onCall: (call: DriverCall) => void = () => {};
  /** Socket and volume of each call that has not had its effect yet. */
  readonly busy = new Set<string>();
  /** Counts the times that the machine lost its power. */
  life = 0;

  add(socket: string, o: Partial<SimDriver> & { name: string }): SimDriver {
    const driver: SimDriver = {
      versions: ['1.0.0'],
      nodeId: 'node-id',
      volumesMax: 0,
      topology: {},
      capabilities: new Set(['STAGE_UNSTAGE_VOLUME']),
      endpoint: '',
      down: false,
      staged: new Map(),
      published: new Map(),
      made: new Set(),
      grown: new Map(),
      ...o,
    };
    this.sockets.set(socket, driver);
    return driver;
  }

  /** The machine's power fails: nothing is mounted any more. */
  powerLoss(): void {
    this.life += 1;
    this.busy.clear();
    for (const driver of this.sockets.values()) {
      driver.staged.clear();
      driver.published.clear();
    }
  }

  /** `fs`, `clock`: of the machine; what a dead daemon asked for still happens. */
  connect(machine: Connected): Csi {
    return csiFor(this, machine);
  }

  at(socket: string, method: string): SimDriver {
    const driver = this.sockets.get(socket);
    if (driver === undefined || driver.down) throw failed(method, 14, `connection error: connect ECONNREFUSED ${socket}`);
    return driver;
  }

  async carryOut(x: { socket: string; method: CsiMethod; request: unknown }, { fs, mounts }: Connected): Promise<object> {
    const { socket, method, request } = x;
    const driver = this.at(socket, method);
    const seen = { driver: driver.name, method, request };
    this.calls.push(seen);
    this.onCall(seen);
    const fault = this.fault(driver.name, method);
    if (fault?.effect === false) throw failed(method, fault.code, fault.details);
    const answer = await act({ driver, fs, mounts, wrong: (what) => void this.violations.push(what) }, method, request);
    if (fault !== undefined) throw failed(method, fault.code, fault.details);
    return answer;
  }
}

function failed(method: string, code: number, details: string): CsiError {
  return new CsiError({ method, code, details });
}

/** The calls of one daemon. */
function csiFor(drivers: SimDrivers, machine: Connected): Csi {
  const never = <T>() => new Promise<T>(() => {});
  const answered = <T>(method: string, call: CsiCall, work: () => Promise<T>): Promise<T> =>
    new Promise<T>((resolve, reject) => timed({ drivers, machine, method, call, work, resolve, reject }));
  /** One call at a time of each volume: who comes in between, since the caller before gave up, has to come again. */
  const oneByOne = <T>(socket: string, x: { method: string; request: unknown; call: CsiCall }, work: () => Promise<T>): Promise<T> => {
    const { method, request, call } = x;
    const { volumeId } = request as { volumeId?: string };
    if (volumeId === undefined || call.signal.aborted) return answered(method, call, work);
    const key = `${socket} ${volumeId}`;
    if (drivers.busy.has(key)) {
      const pending = () => Promise.reject(failed(method, 10, `an operation with volume ${volumeId} is pending`));
      return answered(method, call, pending);
    }
    drivers.busy.add(key);
    return answered(method, call, () => work().finally(() => drivers.busy.delete(key)));
  };
  return {
    getInfo: (socket, call) =>
      answered('GetInfo', call, async () => {
        const { name, versions, endpoint, type = 'CSIPlugin' } = drivers.at(socket, 'GetInfo');
        return { type, name, endpoint, supportedVersions: [...versions] };
      }),
    notify: (socket, { error }, call) =>
      answered('NotifyRegistrationStatus', call, async () => {
        drivers.at(socket, 'NotifyRegistrationStatus');
        drivers.told.push({ socket, error });
      }),
    call: <M extends CsiMethod>(socket: string, method: M, request: CsiRequest<M>, call: CsiCall) =>
      machine.power.on
        ? oneByOne(
            socket,
            { method, request, call },
            () => drivers.carryOut({ socket, method, request }, machine) as Promise<CsiResponse<M>>,
          )
        : never<CsiResponse<M>>(),
  };
}

interface Timed<T> {
  drivers: SimDrivers;
  machine: Connected;
  method: string;
  call: CsiCall;
  work(): Promise<T>;
  resolve(value: T): void;
  reject(error: unknown): void;
}

/** The answer, the deadline or the signal, whichever is first; the dead hear nothing. */
function timed<T>({ drivers, machine, method, call, work, resolve, reject }: Timed<T>): void {
  const { clock, power } = machine;
  let over = false;
  const end = (fn: () => void): void => {
    if (over) return;
    over = true;
    clock.clearTimeout(late);
    call.signal.removeEventListener('abort', cancel);
    if (power.on) fn();
  };
  const cancel = () => end(() => reject(failed(method, 1, 'context canceled')));
  const late = clock.setTimeout(() => end(() => reject(failed(method, 4, 'context deadline exceeded'))), call.timeoutMs);
  if (call.signal.aborted) {
    cancel();
    return;
  }
  call.signal.addEventListener('abort', cancel, { once: true });
  const [mine, answerMs] = [drivers.life, drivers.answerMs(method)];
  const answer = (fn: () => void): void => (answerMs === 0 ? end(fn) : void clock.setTimeout(() => end(fn), answerMs));
  clock.setTimeout(() => {
    if (drivers.life !== mine) return;
    work().then(
      (value) => answer(() => resolve(value)),
      (error: unknown) => answer(() => reject(error)),
    );
  }, drivers.latencyMs(method));
}

interface Bench {
  driver: SimDriver;
  fs: DriverFs;
  mounts: SimMounts;
  wrong(what: string): void;
}

async function act(b: Bench, method: CsiMethod, request: unknown): Promise<object> {
  const { driver } = b;
  const fail = (code: number, details: string) => failed(method, code, details);
  const stages = driver.capabilities.has('STAGE_UNSTAGE_VOLUME');
  const mounted = (path: string) => b.mounts.table.some((m) => m.path === path);
  switch (method) {
    case 'NodeGetInfo':
      return {
        nodeId: driver.nodeId,
        maxVolumesPerNode: String(driver.volumesMax),
        accessibleTopology: Object.keys(driver.topology).length === 0 ? null : { segments: driver.topology },
      };
    case 'NodeGetCapabilities':
      return { capabilities: [...driver.capabilities].map((type) => ({ rpc: { type } })) };
    case 'NodeGetVolumeStats':
      // No driver of this world says that it can, and nobody asks one that does not.
      throw fail(12, 'this driver counts nothing');
    case 'NodeExpandVolume': {
      const { volumeId, volumePath: path, capacityRange } = request as CsiRequest<'NodeExpandVolume'>;
      if (!driver.capabilities.has('EXPAND_VOLUME')) b.wrong(`${driver.name}: volume ${volumeId} grown by a driver that does not`);
      if (driver.published.get(path) !== volumeId) {
        b.wrong(`${driver.name}: volume ${volumeId} grown at ${path}, where it is not published`);
        throw fail(5, `volume ${volumeId} is not published at ${path}`);
      }
      const bytes = Number(capacityRange.requiredBytes);
      driver.grown.set(volumeId, Math.max(bytes, driver.grown.get(volumeId) ?? 0));
      return { capacityBytes: capacityRange.requiredBytes };
    }
    case 'NodeStageVolume': {
      const { volumeId, stagingTargetPath: path } = request as CsiRequest<'NodeStageVolume'>;
      if (!stages) b.wrong(`${driver.name}: volume ${volumeId} staged by a driver that does not`);
      if (driver.staged.get(path) === volumeId) return {};
      driver.staged.set(path, volumeId);
      b.mounts.put({ path, type: 'csi', source: volumeId });
      return {};
    }
    case 'NodeUnstageVolume': {
      const { volumeId, stagingTargetPath: path } = request as CsiRequest<'NodeUnstageVolume'>;
      if ([...driver.published.values()].includes(volumeId)) b.wrong(`${driver.name}: volume ${volumeId} unstaged while it is published`);
      if (driver.staged.delete(path) && mounted(path)) b.mounts.take(path);
      return {};
    }
    case 'NodePublishVolume': {
      const { volumeId, targetPath: path, stagingTargetPath } = request as CsiRequest<'NodePublishVolume'>;
      if (driver.published.get(path) === volumeId) return {};
      if (stages && stagingTargetPath !== '' && driver.staged.get(stagingTargetPath) !== volumeId) {
        b.wrong(`${driver.name}: volume ${volumeId} published before it was staged`);
        throw fail(9, 'the volume is not staged');
      }
      // Not every driver minds its target being there; one that does makes it, and knows its own again: a publication that
      // was cut short has to be one that can be repeated.
      if (!driver.made.has(path) && (await isThere(b.fs, path))) throw fail(13, `mkdir ${path}: file exists`);
      await b.fs.mkdirp(path, 0o750);
      driver.made.add(path);
      driver.published.set(path, volumeId);
      b.mounts.put({ path, type: 'csi', source: volumeId });
      return {};
    }
    case 'NodeUnpublishVolume': {
      const { targetPath: path } = request as CsiRequest<'NodeUnpublishVolume'>;
      driver.published.delete(path);
      if (mounted(path)) b.mounts.take(path);
      if (driver.made.delete(path) && (await isThere(b.fs, path))) await b.fs.rmdir(path);
      return {};
    }
  }
}

async function isThere(fs: DriverFs, path: string): Promise<boolean> {
  try {
    await fs.lstat(path);
    return true;
  } catch {
    return false;
  }
}
