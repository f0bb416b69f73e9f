/** A connection to a D-Bus message bus, and the reason of its end. */
import { createClient, type Message, type MessageBus } from 'dbus-native';

/** Properties, announcements and answers are some hundred bytes. */
const MESSAGE_BYTES_MAX = 1 << 20;

export interface BusConnection {
  readonly bus: MessageBus;
  /** Resolved once, with the reason. */
  readonly ended: PromiseWithResolvers<Error>;
}

export function connectBus({ socket, callMs }: { socket: string; callMs: number }, heard: (message: Message) => void): BusConnection {
  const ended = Promise.withResolvers<Error>();
  const bus = createClient({
    // The client's own greeting throws out of a timer when the bus does not answer it.
    ...{ socket, direct: true, timeout: callMs },
    ...{ authMethods: ['EXTERNAL'], fdTransport: false, maxMessageSize: MESSAGE_BYTES_MAX },
  });
  const { connection } = bus;
  connection.on('error', (error) => ended.resolve(error));
  connection.on('close', (cause) => ended.resolve(cause ?? new Error('the connection was closed')));
  connection.on('message', heard);
  return { bus, ended };
}
