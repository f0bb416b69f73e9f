/**
 * The faults in front of an API server: each is an actor for as long as it lasts.
 *
 * State held: when it began and ends, and the version that stale reads are answered with.
 * Lost on restart: all of it. A fault that crashed is healed and does not begin again.
 * Rebuilt from: nothing.
 */
import type { ActorSpec, DynamicSpec } from '@actorlet/kubelet/actors/supervision/types.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { provided } from '@actorlet/kubelet/machines/xstate/provide.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import { fromPromise } from 'xstate';
import { faultMachine } from './faultMachine.ts';
import type { FaultEvent } from './messages.ts';
import type { ApiTrouble } from './trouble.ts';

const FAULTS_MAX = 10_000;

export interface FaultsOptions {
  trouble: ApiTrouble;
  rng: SimRng;
  /** Of the API server, as it is now. */
  version(signal: AbortSignal): Promise<string>;
  onChange(change: { name: string; kind: 'begins' | 'ends' }): void;
}

export function faultsSpec(o: FaultsOptions): DynamicSpec<FaultEvent> {
  return {
    type: 'dynamic',
    id: 'faults',
    mailbox: { capacity: FAULTS_MAX },
    route: (e) => e.name,
    starts: (e) => e.type === 'fault.begin',
    // It has ended by itself.
    unknown: () => {},
    child: (name, first) => {
      if (first.type !== 'fault.begin') throw new Error(`the fault ${name} did not begin`);
      return faultSpec(first, o);
    },
    release: (e) => e.type === 'fault.begin',
  };
}

function faultSpec({ name, fault, replyTo }: Extract<FaultEvent, { type: 'fault.begin' }>, o: FaultsOptions): ActorSpec<FaultEvent> {
  const { trouble } = o;
  let asker = replyTo;
  return {
    type: 'actor',
    id: name,
    restart: 'temporary',
    start: ({ signal }) => {
      // However this life ends, its fault ends with it.
      signal.addEventListener('abort', () => trouble.heal(name), { once: true });
      return {
        logic: provided(faultMachine, {
          actors: {
            version: fromPromise(async () => {
              try {
                return await o.version(signal);
              } catch (error) {
                throw new Error(`the version of the API server is not known: ${messageOf(error)}`);
              }
            }),
          },
          actions: {
            begin: (_, of) => {
              trouble.begin(of.name, of.fault, { rng: o.rng.fork(of.name), version: of.version });
              o.onChange({ name, kind: 'begins' });
            },
            heal: () => {
              const was = trouble.isActive(name);
              trouble.heal(name);
              if (was) o.onChange({ name, kind: 'ends' });
            },
            answer: (_, { answer }) => {
              asker?.(answer);
              asker = undefined;
            },
          },
        }),
        input: { name, fault },
      };
    },
  };
}
