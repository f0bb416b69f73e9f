/** Mounts and CSI plugins behind the border: what is mounted is read, and what the kubelet mounts is waited for. */
import type { CsiMethod, CsiRequest, CsiResponse } from '@actorlet/kubelet/machines/wire/csi.ts';
import type { Mounter } from '@actorlet/kubelet/ports/machine/mounter.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import { type Csi, type CsiCall, CsiError } from '@actorlet/kubelet/ports/sockets/csi.ts';
import type { Expectations } from '../expectations.ts';
import { CSI } from '../table.ts';
import { untilShown } from '../waiting.ts';
import type { Wanted } from '../wanted.ts';

export interface MountBorderOptions {
  clock: Clock;
  expectations: Expectations;
  /** Of the kubelet. */
  rootDir: string;
  podOf(uid: string): string;
  /** The kubelet has gone on to start this pod. */
  isStarted(uid: string): boolean;
}

const DEADLINE_EXCEEDED = 4;
const CANCELLED = 1;
const PERMISSION_DENIED = 7;

export function mounterBorder(mounter: Mounter, o: MountBorderOptions): Partial<Mounter> {
  const isThere = (path: string, call: Limit) => async () => ((await mounter.kindOf(path, call)) === 'absent' ? undefined : true);
  const wait = async (wanted: Wanted, call: Limit, look: () => Promise<true | undefined>): Promise<void> => {
    const end = await expected(o, wanted, call, look);
    if (end === 'late') throw coded('ETIMEDOUT', `the kubelet has not ${wanted.what} within ${call.timeoutMs} ms`);
    if (end === 'given up') throw coded('ECANCELED', 'the wait for the kubelet was given up');
  };
  const unmounted = (path: string, call: Limit) =>
    wait(unmount(o, path), call, async () => ((await mountsAt(mounter, path)) === 0 ? true : undefined));
  return {
    mount: ({ path }, call) => wait(mount(o, path), call, async () => ((await mountsAt(mounter, path)) > 0 ? true : undefined)),
    async bindSubPath({ target }, call) {
      await wait(mount(o, target), call, async () => ((await mountsAt(mounter, target)) > 0 ? true : undefined));
      return { kind: 'bound' };
    },
    unmount: (path, _, call) => unmounted(path, call),
    detach: (path, _, call) => unmounted(path, call),
    makeDir: (path, _, call) => wait({ kind: 'Folder', ...subject(o, path), what: `made the folder ${path}` }, call, isThere(path, call)),
    makeFile: (path, _, call) => wait({ kind: 'Folder', ...subject(o, path), what: `made the file ${path}` }, call, isThere(path, call)),
    // Owners of files are the kubelet's business, and not looked at.
    giveToGroup: async () => ({ left: '' }),
    growFileSystem: async () => undefined,
    chown: async () => undefined,
  };
}

export function csiBorder(csi: Csi, o: MountBorderOptions & { mounter: Mounter | undefined }): Partial<Csi> {
  const { mounter } = o;
  const whileMounted = async (method: CsiMethod, path: string, call: CsiCall, there: boolean): Promise<void> => {
    const wanted = there ? mount(o, path) : unmount(o, path);
    const look = async () => {
      const mounts = mounter === undefined ? 0 : await mountsAt(mounter, path);
      return mounts > 0 === there ? (true as const) : undefined;
    };
    const end = await expected(o, wanted, call, look);
    if (end === 'shown') return;
    const [code, details] =
      end === 'late' ? [DEADLINE_EXCEEDED, `the kubelet has not ${wanted.what}`] : [CANCELLED, 'the wait was given up'];
    throw new CsiError({ method, code, details });
  };
  return {
    // What became of a plugin's registration is for the kubelet to say.
    notify: async () => undefined,
    async call<M extends CsiMethod>(endpoint: string, method: M, request: CsiRequest<M>, call: CsiCall): Promise<CsiResponse<M>> {
      const verdict = CSI[method] as (typeof CSI)[CsiMethod] | undefined;
      if (verdict === 'read') return csi.call(endpoint, method, request, call);
      const {
        stagingTargetPath = '',
        targetPath = '',
        capacityRange,
      } = request as Partial<CsiRequest<'NodePublishVolume'>> & {
        capacityRange?: CsiRequest<'NodeExpandVolume'>['capacityRange'];
      };
      switch (verdict === undefined ? '' : (method as CsiMethod)) {
        case 'NodeStageVolume':
          // A driver may stage without a mount: what is published shows that it was staged.
          break;
        case 'NodePublishVolume':
          await whileMounted(method, targetPath, call, true);
          break;
        case 'NodeUnpublishVolume':
          await whileMounted(method, targetPath, call, false);
          break;
        case 'NodeUnstageVolume':
          await whileMounted(method, stagingTargetPath, call, false);
          break;
        case 'NodeExpandVolume':
          return { capacityBytes: capacityRange?.requiredBytes ?? '0' } as CsiResponse<M>;
        default:
          throw new CsiError({ method, code: PERMISSION_DENIED, details: 'this node is only observed: its kubelet is another program' });
      }
      return {} as CsiResponse<M>;
    },
  };
}

type Limit = { timeoutMs: number; signal: AbortSignal };

async function expected(
  o: MountBorderOptions,
  wanted: Wanted,
  call: Limit,
  look: () => Promise<true | undefined>,
): Promise<'shown' | 'late' | 'given up'> {
  const expectation = o.expectations.expect(wanted);
  try {
    const { kind } = await untilShown(o.clock, { look, timeoutMs: call.timeoutMs, signal: call.signal });
    if (kind === 'shown') expectation.came();
    else if (kind === 'late') expectation.unanswered();
    else expectation.withdrawn();
    return kind;
  } catch (error) {
    expectation.withdrawn();
    throw error;
  }
}

async function mountsAt(mounter: Mounter, path: string): Promise<number> {
  const parent = path.slice(0, path.lastIndexOf('/')) || '/';
  return (await mounter.list(parent, path)).filter((m) => m.path === path).length;
}

/** A driver may refuse it for as long as it likes: the kubelet waits then, as this tree does. It is late when it goes on without it. */
function mount(o: MountBorderOptions, path: string): Wanted {
  const { uid, pod } = subject(o, path);
  return { kind: 'Mount', uid, pod, what: `mounted ${named(o, path)}`, isJudged: () => uid === '' || o.isStarted(uid) };
}
function unmount(o: MountBorderOptions, path: string): Wanted {
  return { kind: 'Unmount', ...subject(o, path), what: `unmounted ${named(o, path)}` };
}

/** `volume NAME` for what is below the folder of a pod. */
function named({ rootDir }: MountBorderOptions, path: string): string {
  const [, folder, plugin, volume] = path.startsWith(`${rootDir}/pods/`) ? path.slice(rootDir.length + '/pods/'.length).split('/') : [];
  return folder === 'volumes' && plugin !== undefined && volume !== undefined ? `volume ${volume} (${plugin})` : path;
}

function subject(o: MountBorderOptions, path: string): { pod: string; uid: string } {
  const pods = `${o.rootDir}/pods/`;
  const uid = path.startsWith(pods) ? (path.slice(pods.length).split('/', 1)[0] ?? '') : '';
  return { uid, pod: uid === '' ? '' : o.podOf(uid) };
}

function coded(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
