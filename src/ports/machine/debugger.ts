/** The port of the debugger. */

/** The debugger of this process, for the administrator. A client of it runs code as this process. */
export interface DebuggerPort {
  /** Listens, in place of one that listens already, until a minute after its last user has gone. */
  open(): Promise<DebuggerDoor>;
  close(): Promise<void>;
}
export interface DebuggerDoor {
  /** A unix socket that this user alone can reach; WebSocket, Chrome DevTools protocol. */
  socketPath: string;
  /** The path of its address. Cannot be guessed: a tool reaches the socket through a port that every user can connect to. */
  path: string;
}
