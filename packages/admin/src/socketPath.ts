/** Which daemon is meant. */
/** Where `npm start` keeps the daemon's state. */
const LOCAL_STATE = '.actorlet';
export const LOCAL_SOCKET = `${LOCAL_STATE}/actorlet.sock`;
/** Where `actorlet fleet` listens. */
export const FLEET_SOCKET = `${LOCAL_STATE}/fleet.sock`;
/** The kubelet's default root directory. */
export const HOST_SOCKET = '/var/lib/kubelet/actorlet.sock';

/** Of the process that asks. */
interface Asked {
  env: Readonly<Record<string, string | undefined>>;
  exists(path: string): boolean;
}

/**
 * `--socket`, else ACTORLET_SOCKET, else for a `node` that of the fleet, else the one of `npm start` in this directory, else the host's,
 * else that of the fleet here, which asks for the node.
 */
export function socketPathFrom(flag: string | undefined, io: Asked, node = ''): string {
  if (flag !== undefined && flag !== '') return flag;
  const fromEnv = io.env.ACTORLET_SOCKET;
  if (fromEnv !== undefined && fromEnv !== '') return fromEnv;
  if (node !== '') return FLEET_SOCKET;
  if (io.exists(LOCAL_SOCKET)) return LOCAL_SOCKET;
  if (!io.exists(HOST_SOCKET) && io.exists(FLEET_SOCKET)) return FLEET_SOCKET;
  // Nobody runs: the one that was last started here is meant.
  return !io.exists(HOST_SOCKET) && io.exists(LOCAL_STATE) ? LOCAL_SOCKET : HOST_SOCKET;
}
