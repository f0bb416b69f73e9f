/** Lower layers of which nobody is told. */
import { PeerCalls } from '../src/actors/foundation/client.ts';
import { createClock } from '../src/boot/dependencies/clock.ts';

export const NO_PEERS = { unregistered: () => '', calls: new PeerCalls({ clock: createClock(), publish: () => undefined }) };
