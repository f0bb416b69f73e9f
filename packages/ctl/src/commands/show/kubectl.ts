/** Commands under the names that kubectl's users type first. */

import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { didYouMean } from '@actorlet/kubelet/machines/text/nearest.ts';
import { printable } from '@actorlet/kubelet/machines/text/table.ts';
import type { Argv } from 'yargs';
import type { Command, Common, Runner } from '../../asked.ts';
import { events, pods, why } from './show.ts';
import { top } from './top.ts';
import { watching } from './watch.ts';

const KINDS = {
  pod: ['pods', 'pod', 'po'],
  node: ['nodes', 'node', 'no'],
  event: ['events', 'event', 'ev'],
} as const;
type Kind = keyof typeof KINDS;

/** `pods`, `pod/web` and the like. @throws CtlError for a kind that a node does not have. */
export function kindOf(what: string): { kind: Kind; name: string } {
  const [word = '', ...rest] = what.split('/');
  const name = rest.join('/');
  const found = (Object.keys(KINDS) as Kind[]).find((kind) => (KINDS[kind] as readonly string[]).includes(word.toLowerCase()));
  if (found !== undefined) return { kind: found, name };
  const all = Object.values(KINDS).map(([plural]) => plural);
  throw new CtlError(
    EXIT.usage,
    `a node knows ${all.join(', ')}, and no ${printable(word)}${didYouMean(word, all)}; kubectl asks the API server.`,
  );
}

function getCommand(what: string, name: string): Command {
  const { kind, name: own } = kindOf(what);
  const of = own === '' ? name : own;
  switch (kind) {
    case 'pod':
      return pods({ name: of, objects: true });
    case 'event':
      return events({ pod: of, sinceMs: Number.POSITIVE_INFINITY });
    case 'node':
      return why('node');
  }
}

function describeCommand(what: string, name: string): Command {
  const { kind, name: own } = kindOf(what);
  if (kind === 'node') return why('node');
  const of = own === '' ? name : own;
  if (of === '') throw new CtlError(EXIT.usage, 'describe: say which pod, for example: actorctl describe pod web');
  return kind === 'event' ? events({ pod: of, sinceMs: Number.POSITIVE_INFINITY }) : why(of);
}

export function addKubectlCommands<T extends Common>(y: Argv<T>, { run }: Pick<Runner, 'run'>): Argv<T> {
  const name = { type: 'string', default: '', describe: 'name, namespace/name or UID' } as const;
  return y
    .command(
      'get <kind> [name]',
      'pods, events or the node, in the words of kubectl',
      (c) =>
        c
          .positional('kind', { type: 'string', demandOption: true, describe: 'pods, events or node' })
          .positional('name', name)
          .option('watch', { alias: 'w', type: 'boolean', default: false, describe: 'show it again every second' })
          .example('$0 get pods -A -l app=web', 'the same as: actorctl pods -l app=web'),
      (args) => {
        const command = getCommand(args.kind, args.name);
        return run(args.watch ? watching(command) : command)(args);
      },
    )
    .command(
      'describe <kind> [name]',
      'the same as why, in the words of kubectl',
      (c) =>
        c
          .positional('kind', { type: 'string', demandOption: true, describe: 'pod or node' })
          .positional('name', name)
          .example('$0 describe pod web', 'the same as: actorctl why web'),
      (args) => run(describeCommand(args.kind, args.name))(args),
    )
    .command(
      'top [kind]',
      'processor and memory that pods, or the node, use now',
      (c) =>
        c
          .positional('kind', { type: 'string', default: 'pods', describe: 'pods or node' })
          .option('containers', { type: 'boolean', default: false, describe: 'a line for each container' })
          .option('watch', { alias: 'w', type: 'boolean', default: false, describe: 'show it again every second' })
          .example('$0 top -w', 'who uses most, as it changes'),
      (args) => {
        const { kind } = kindOf(args.kind);
        const command = top({ of: kind === 'node' ? 'node' : 'pods', containers: args.containers });
        return run(args.watch ? watching(command) : command)(args);
      },
    );
}
