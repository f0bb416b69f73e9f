/** Messages of the servers of this node. */
import { address, type Message } from '../supervision/address.ts';

export const serverAddr = { https: address<ServerEvent>('node/edge/https') } as const;

/** `server.refresh`: its certificate was replaced; other servers have none. */
export type ServerEvent = Message & { type: 'server.close' | 'server.refresh' };

/** `meta.reason` of the state in which a server waits for its address. */
export const CANNOT_LISTEN = 'CannotListen';
