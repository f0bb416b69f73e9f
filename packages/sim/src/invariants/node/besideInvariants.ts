/** Invariants about what a node runs beside itself: programs for credentials, counts of what volumes hold, readings of the journal. */

import { repositoryOf } from '@actorlet/kubelet/machines/runtime/imagePuller/credentialProviders.ts';
import { locationMatches } from '@actorlet/kubelet/machines/runtime/imagePuller/keyring.ts';
import { JOURNAL_UNITS } from '@actorlet/world/src/beside/journal.ts';
import { ASKED_ABOUT } from '@actorlet/world/src/beside/programs.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { ROOT_DIR } from '@actorlet/world/src/paths.ts';
import { SERVERS } from '../../nemesis/draws/node/network.ts';
import { REFUSED_QUERIES } from '../../nemesis/workload/logQueries.ts';
import { volumeOf } from '../../nemesis/workload/objectBodies.ts';
import type { Checker, Scene } from '../checker.ts';

/** Longest that a program may keep its pull waiting. */
const PROGRAM_MS = 60_000;
const COUNT_MS = 30_000;
const COUNTS_AT_ONCE = 4;
const QUERY_MS = 30_000;

/** What was added to a list of a node since the last look. */
function news<T>(listOf: (node: SimNode) => readonly T[] | undefined): (s: Scene) => readonly T[] {
  const seen = new Map<string, number>();
  return ({ node }) => {
    const list = listOf(node) ?? [];
    const from = seen.get(node.name) ?? 0;
    seen.set(node.name, list.length);
    return list.slice(from);
  };
}

/** A program is asked about its images alone, once at a time, and never for longer than a pull may be kept waiting. */
export function programsAreAskedOfTheirs(): Checker {
  const runs = news((node) => node.beside.programs?.runs);
  return {
    name: 'programs-are-asked-of-theirs',
    beat(s) {
      for (const { provider, image, timeoutMs, twice } of runs(s)) {
        const what = `${s.node.name}: program ${provider} is asked about ${image}`;
        if (!locationMatches(ASKED_ABOUT[provider] ?? '', repositoryOf(image)?.repository ?? '')) return `${what}, which is not its own`;
        if (twice) return `${what} a second time, while it answers`;
        if (timeoutMs > PROGRAM_MS) return `${what} for up to ${timeoutMs} ms`;
      }
      return undefined;
    },
  };
}

/** Where volumes lie that are counted: of these plugins, and of no other what is behind it. */
const COUNTED = new RegExp(
  `^${ROOT_DIR}/pods/[^/]+/volumes/kubernetes\\.io~(?:empty-dir|configmap|secret|downward-api|projected|local-volume|nfs|csi)/[^/]+$`,
);

/** Only volumes of this node's own making are counted, a few at a time, and what is told of one was counted of that one. */
export function onlyVolumesAreCounted(): Checker {
  const measured = news((node) => node.beside.usage?.measured);
  return {
    name: 'only-volumes-are-counted',
    beat(s) {
      for (const { path, tree, timeoutMs, atOnce } of measured(s)) {
        const what = `${s.node.name}: what ${path} holds is counted`;
        if (!COUNTED.test(path)) return `${what}, which is no volume of a pod`;
        if (tree && /~(?:local-volume|nfs)\//.test(path)) return `${what} file by file, although it is somebody else's`;
        if (timeoutMs > COUNT_MS) return `${what} for up to ${timeoutMs} ms`;
        // On the disks of the node, and on each server.
        const places = s.node.tuning.network === null ? 1 : 1 + SERVERS.length;
        if (atOnce > COUNTS_AT_ONCE * places) return `${what} while ${atOnce - 1} others are`;
      }
      return undefined;
    },
    answered({ node }, { path, answer }) {
      const { usage } = node.beside;
      if (usage === undefined || path !== '/stats/summary' || answer.kind !== 'reply' || answer.status !== 200) return undefined;
      for (const { podRef, volume = [] } of (JSON.parse(answer.body) as Summary).pods ?? []) {
        for (const { name, usedBytes, pvcRef } of volume) {
          const onDisk = pvcRef === undefined ? name : volumeOf(pvcRef.name);
          const of = usage.measured.filter((m) => m.path.startsWith(`${ROOT_DIR}/pods/${podRef.uid}/`) && m.path.endsWith(`/${onDisk}`));
          if (!of.some((m) => m.bytesUsed === usedBytes))
            return `${node.name}: volume ${name} of pod ${podRef.uid} is said to hold ${usedBytes}, which was never counted there`;
        }
      }
      return undefined;
    },
  };
}
interface Summary {
  pods?: { podRef: { uid: string }; volume?: { name: string; usedBytes: number; pvcRef?: { name: string } }[] }[];
}

/** What each argument that journalctl is given has to be. */
const ARGUMENTS = [
  /^--(utc|no-pager|pager-end)$/,
  /^--output=short-precise$/,
  /^--(since|until)=[-0-9: ]+ UTC$/,
  /^--lines=\d+$/,
  /^--unit=[\w@.:-]+$/,
  /^--grep=/,
  /^--boot=-?\d+$/,
];

/** No word of a caller is another option of the program that reads the journal, and nobody gets lines of another service than was asked for. */
export function journalIsReadInBounds(): Checker {
  const reads = news((node) => node.beside.journal?.reads);
  return {
    name: 'journal-is-read-in-bounds',
    beat(s) {
      for (const { args, timeoutMs } of reads(s)) {
        if (timeoutMs > QUERY_MS) return `${s.node.name}: the journal is read for up to ${timeoutMs} ms`;
        if (args[0] === '--field') continue;
        const odd = args.find((arg) => !ARGUMENTS.some((known) => known.test(arg)));
        if (odd !== undefined) return `${s.node.name}: the journal is read with ${odd}`;
      }
      return undefined;
    },
    answered({ node }, { query, answer }) {
      const asked = query?.query;
      if (asked === undefined || answer.kind !== 'reply' || answer.status !== 200) return undefined;
      if (REFUSED_QUERIES.some((refused) => refused === asked)) return `${node.name}: logs of ${JSON.stringify(asked)} were given`;
      const other = JOURNAL_UNITS.find((unit) => unit !== asked && unit !== `${asked}.service` && answer.body.includes(unit));
      return other === undefined ? undefined : `${node.name}: who asked for logs of ${asked} was given those of ${other}`;
    },
  };
}
