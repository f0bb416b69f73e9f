/**
 * What a state does about a type of event, xstate remembers for each type that it ever saw. Types of a child's end carry its id, and ids
 * carry names of pods and containers: one machine for all pods would remember each that ever was. Here it remembers what a state names.
 */
import { StateNode } from 'xstate';

/** As of the state that it is called for; no part of xstate's types. */
type Next = (this: StateNode, snapshot: unknown, event: { type: string }) => unknown;

const WILDCARD = '*';
const wild = new WeakMap<StateNode, boolean>();

/** Whether some transition of the state is for types that it does not name in full. */
function isWild(state: StateNode): boolean {
  let known = wild.get(state);
  if (known === undefined) {
    known = [...state.transitions.keys()].some((descriptor) => descriptor.endsWith(WILDCARD));
    wild.set(state, known);
  }
  return known;
}

let isInstalled = false;

/** For all machines of this process. Throws where xstate is another than this was written for. */
export function rememberNamedEventsAlone(): void {
  if (isInstalled) return;
  isInstalled = true;
  const prototype = StateNode.prototype as unknown as { next?: Next };
  const { next } = prototype;
  if (next === undefined)
    throw new Error('this version of xstate has no StateNode.next; what it remembers of events would grow without end');
  prototype.next = function (snapshot, event) {
    if (this.transitions.has(event.type)) return next.call(this, snapshot, event);
    // What it remembers hangs on the object that it is called for: here on one that goes.
    return isWild(this) ? next.call(Object.create(this) as StateNode, snapshot, event) : undefined;
  };
}
