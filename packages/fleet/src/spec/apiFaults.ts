/** The table of faults that a client of the API server meets, and their decoder. */
import type { MapReader } from '@actorlet/faults/src/read/reader.ts';
import {
  about,
  duration,
  filled,
  integer,
  named,
  number,
  oneOrMore,
  required,
  string,
  words,
} from '@actorlet/kubelet/machines/shape/shape.ts';
import { API_VERBS, type ApiVerb } from '../proxy/request.ts';
import type { ApiSelection } from '../proxy/selection.ts';
import { fieldsIn } from './fields.ts';

const DAY_MS = 86_400_000;
const MOMENT = { minMs: 0, maxMs: DAY_MS };
const TEXTS = oneOrMore(string);

const WRITES = ['create', 'update', 'patch', 'delete'] as const;

/** What each is, which verbs it is about by default, which others it may be about, and how long it lasts by default. */
export const API_FAULTS = {
  'stale-reads': {
    text: 'Lists and gets are answered with what there was `age` before. Watches that run are ended when it takes effect; those that begin get nothing before its end.',
    verbs: ['get', 'list', 'watch'],
    forMs: 10_000,
  },
  'watch-lag': { text: 'Events of watches come `delay` later, in their order. At its end they catch up.', verbs: ['watch'], forMs: 10_000 },
  'watch-close': {
    text: 'Watches that run are ended, and so are those that begin while it lasts. Default of `for`: 0s.',
    verbs: ['watch'],
    forMs: 0,
  },
  'watch-expired': {
    text: 'Watches that run are ended by 410 Gone. So are those that begin while it lasts, from a version that the client has read. Default of `for`: 1s.',
    verbs: ['watch'],
    forMs: 1_000,
  },
  conflict: {
    text: 'The write is not done. The answer is 409 Conflict. With `verbs` also of patches and deletions.',
    verbs: ['update'],
    also: ['patch', 'delete'],
    forMs: 10_000,
  },
  throttle: { text: 'The request is not done. The answer is 429 with Retry-After.', verbs: API_VERBS, forMs: 10_000 },
  unavailable: { text: 'The request is not done. The answer is 503.', verbs: API_VERBS, forMs: 10_000 },
  slow: { text: 'The request is done `delay` later.', verbs: API_VERBS, forMs: 10_000 },
  'lost-answer': { text: 'The write is done, and the connection breaks in place of the answer.', verbs: WRITES, forMs: 10_000 },
} as const satisfies Record<string, { text: string; verbs: readonly ApiVerb[]; also?: readonly ApiVerb[]; forMs: number }>;
export type ApiFaultName = keyof typeof API_FAULTS;
export const API_FAULT_NAMES = Object.keys(API_FAULTS) as readonly ApiFaultName[];

/** Which requests. */
export const API_SELECT = {
  userAgents: about(
    'Clients by user agent: `website` is a program of that name in any version, `*` in a text any text. Default: all clients of the proxy.',
    TEXTS,
  ),
  users: about('Clients by user: system:serviceaccount:NAMESPACE:NAME, or the name in a client certificate; `*` is any text.', TEXTS),
  verbs: about('Requests. Default: those that the fault is made for.', oneOrMore(words(...API_VERBS))),
  resources: about('Resources in plural: pods, pods/status, deployments.apps; `*` is any text.', TEXTS),
  namespaces: about('Namespaces; `*` is any text.', TEXTS),
  names: about('Names of objects; `*` is any text.', TEXTS),
} as const;
export const API_FAULT = {
  fault: about('What happens.', required(words(...API_FAULT_NAMES))),
  for: about('How long. Default 10s, unless the fault says another.', named('forMs', duration(MOMENT))),
  times: about('Requests that it hits at most. Default: no limit.', integer(1, 1_000_000)),
  probability: about('Of each request, drawn by the seed. Default 1.', filled(number(0, 1), 1)),
  age: about('Of stale-reads: how far back. Default 5s.', named('ageMs', duration(MOMENT))),
  delay: about('Of slow and watch-lag: how much later. Default 2s.', named('delayMs', duration(MOMENT))),
  as: about(
    'Of watch-expired: how 410 is said to a watch that begins: as the answer, as an event of type ERROR, or as one of the two, drawn by the seed. Default either. One that runs gets the event.',
    words('answer', 'event', 'either'),
  ),
  retryAfter: about('Of throttle: seconds in Retry-After. Default 1.', integer(0, 3_600)),
} as const;

export interface ApiFault {
  fault: ApiFaultName;
  select: ApiSelection;
  forMs: number;
  times: number;
  probability: number;
  ageMs: number;
  delayMs: number;
  as: 'answer' | 'event' | 'either';
  retryAfter: number;
}

/** Fields that belong to one fault alone. */
const OWN: Readonly<Record<'age' | 'delay' | 'as' | 'retryAfter', readonly ApiFaultName[]>> = {
  age: ['stale-reads'],
  delay: ['slow', 'watch-lag'],
  as: ['watch-expired'],
  retryAfter: ['throttle'],
};
const PLAIN = { times: Number.POSITIVE_INFINITY, probability: 1, ageMs: 5_000, delayMs: 2_000, as: 'either', retryAfter: 1 } as const;

/** Null: what is wrong with it was told. */
export function decodeApiFault(map: MapReader): ApiFault | null {
  const { fault, ...own } = fieldsIn(map, API_FAULT);
  const select = fieldsIn(map, API_SELECT);
  map.finish();
  if (fault === undefined) return null;
  for (const [field, faults] of Object.entries(OWN)) {
    if (map.has(field) && !faults.includes(fault)) map.wrong(field, `belongs to ${faults.join(', ')}`);
  }
  const { verbs, also = [] }: { verbs: readonly ApiVerb[]; also?: readonly ApiVerb[] } = API_FAULTS[fault];
  const known = [...verbs, ...also];
  const strange = select.verbs?.find((verb) => !known.includes(verb));
  if (strange !== undefined) map.wrong('verbs', `${fault} is about ${known.join(', ')}, not about ${strange}`);
  return apiFault(fault, { ...own, select });
}

/** With its defaults. */
export function apiFault(fault: ApiFaultName, o: Partial<Omit<ApiFault, 'fault'>> = {}): ApiFault {
  const { verbs, forMs } = API_FAULTS[fault];
  return { fault, forMs, ...PLAIN, ...o, select: { verbs, ...o.select } };
}
