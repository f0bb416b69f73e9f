/** The command line of what shows the node and its pods; loaded with every command, so it defines and does nothing else. */
import type { Argv } from 'yargs';
import { type Common, type Runner, sinceMs } from '../../asked.ts';
import { exec, logs } from '../containers.ts';
import { death, deaths } from './deaths.ts';
import { disagreements } from './disagreements.ts';
import { addKubectlCommands } from './kubectl.ts';
import { events, healthz, pods, recorder, timeline, tree, why } from './show.ts';
import { watching } from './watch.ts';

const WATCH = { alias: 'w', type: 'boolean', default: false, describe: 'show it again every second, until Ctrl-C' } as const;
const SINCE = { type: 'string', describe: 'only what happened in the last 90s, 10m, 1h30m, ...' } as const;
const POD = { type: 'string', demandOption: true, describe: 'name, namespace/name or UID' } as const;

export function addShowCommands<T extends Common>(y: Argv<T>, { run }: Runner): Argv<T> {
  return y
    .command(
      'tree',
      'the supervision tree: state, age, mailbox, restarts, reason; pods by their names',
      (c) =>
        c
          .option('watch', WATCH)
          .option('pod', { type: 'string', default: '', describe: 'only the actors of this pod' })
          .example('$0 tree', 'every actor of the node')
          .example('$0 tree -w --pod web', 'the actors of one pod, as they change'),
      (args) => run(args.watch ? watching(tree({ pod: args.pod })) : tree({ pod: args.pod }))(args),
    )
    .command(
      'healthz',
      'every actor, and whether it is well; 1 when one is down, or the runtime or the API server does not answer',
      (c) => c.option('watch', WATCH).example('$0 healthz', 'and what is lost, by name'),
      (args) => run(args.watch ? watching(healthz()) : healthz())(args),
    )
    .command(
      'disagreements',
      'where the kubelet that is observed does something else than this tree would; 1 when one stands that is not known',
      (c) =>
        c
          .option('all', { type: 'boolean', default: false, describe: 'also settled ones, and known differences' })
          .example('$0 disagreements -o json', 'with what was judged, for programs'),
      (args) => run(disagreements({ all: args.all }))(args),
    )
    .command(
      'recorder [path]',
      'the flight recorder: what happened last, of one actor or of all',
      (c) =>
        c
          .positional('path', { type: 'string', describe: 'actor path, e.g. node/pods' })
          .option('limit', { type: 'number', default: 200, describe: 'newest entries' })
          .option('follow', { alias: 'f', type: 'boolean', default: false, describe: 'go on printing, until Ctrl-C' })
          .option('since', SINCE)
          .example('$0 recorder node/runtime -f', 'what the runtime layer does')
          .example('$0 --recording FILE recorder --since 10s', 'the last ten seconds of a daemon that was killed'),
      (args) => run(recorder({ path: args.path, limit: args.limit, sinceMs: sinceMs(args.since), follow: args.follow }))(args),
    );
}

export function addPodCommands<T extends Common>(y: Argv<T>, { run }: Runner): Argv<T> {
  return addKubectlCommands(addDeathCommands(addContainerCommands(y, { run }), { run }), { run })
    .command(
      'pods [name]',
      'the pods of this node, or one of them',
      (c) =>
        c
          .positional('name', { ...POD, demandOption: false, default: '' })
          .option('watch', WATCH)
          .example('$0 pods -n shop -o wide', 'those of one namespace, with address and source'),
      (args) => {
        const command = args.name === '' ? pods() : pods({ name: args.name, objects: true });
        return run(args.watch ? watching(command) : command)(args);
      },
    )
    .command(
      'why <pod>',
      'why a pod, or the node, is as it is',
      (c) =>
        c
          .positional('pod', { ...POD, describe: 'name, namespace/name, UID, manifest file, or node' })
          .example('$0 why web', 'what it waits for, and the chain of causes')
          .example('$0 why node', 'what the node itself lacks')
          .example('$0 why manifests/web.yaml', 'what became of a manifest'),
      (args) => run(why(args.pod))(args),
    )
    .command(
      'timeline <pod>',
      'what a pod went through and how long each part took',
      (c) => c.positional('pod', POD).example('$0 timeline shop/web', 'from seen to Ready'),
      (args) => run(timeline(args.pod))(args),
    )
    .command(
      'events [pod]',
      'recent events of a pod, or of all',
      (c) =>
        c
          .positional('pod', { type: 'string', describe: 'name, namespace/name or UID' })
          .option('for', { type: 'string', describe: 'the same, in the words of kubectl: pod/NAME' })
          .option('since', SINCE)
          .option('watch', WATCH)
          .example('$0 events --since 10m', 'those of the last ten minutes'),
      (args) => {
        const command = events({ pod: args.for ?? args.pod, sinceMs: sinceMs(args.since) });
        return run(args.watch ? watching(command) : command)(args);
      },
    );
}

function addDeathCommands<T extends Common>(y: Argv<T>, { run }: Pick<Runner, 'run'>): Argv<T> {
  return y
    .command(
      'deaths [pod]',
      'containers and pods that ended badly, were refused, or got stuck; kept across restarts',
      (c) =>
        c
          .positional('pod', { type: 'string', default: '', describe: 'only of this pod: name, namespace/name or UID' })
          .option('since', SINCE)
          .option('watch', WATCH)
          .example('$0 deaths', 'all that are kept, the newest first')
          .example('$0 deaths shop/web --since 1h', 'those of one pod in the last hour'),
      (args) => {
        const command = deaths({ pod: args.pod, sinceMs: sinceMs(args.since) });
        return run(args.watch ? watching(command) : command)(args);
      },
    )
    .command(
      'death <which>',
      'all that is kept of one death: why, log, memory, kernel, events, what to do',
      (c) =>
        c
          .positional('which', { type: 'string', demandOption: true, describe: 'ID, a part of it, or a pod: its newest' })
          // Beside what every command takes.
          .choices('output', ['html'])
          .option('private', { type: 'boolean', default: false, describe: 'without what the container wrote' })
          .example('$0 death web', 'the newest death of pod web')
          .example('$0 death 20261129-081530-3f2a9c -o html > web.html', 'one page with a picture, for a ticket'),
      (args) => run(death({ which: args.which, isPrivate: args.private, html: (args.output as string | undefined) === 'html' }))(args),
    );
}

function addContainerCommands<T extends Common>(y: Argv<T>, { run }: Pick<Runner, 'run'>): Argv<T> {
  const container = { alias: 'c', type: 'string', default: '', describe: 'needed when the pod has several' } as const;
  return y
    .command(
      'logs [pod]',
      'what a container wrote',
      (c) =>
        c
          .positional('pod', { ...POD, demandOption: false, default: '' })
          .option('container', container)
          .option('all-containers', { type: 'boolean', default: false, describe: 'of every container of it' })
          .option('prefix', { type: 'boolean', default: false, describe: 'pod and container before each line' })
          .option('since', SINCE)
          .option('follow', { alias: 'f', type: 'boolean', default: false, describe: 'go on printing, across restarts' })
          .option('previous', { alias: 'p', type: 'boolean', default: false, describe: 'the run before the present one' })
          .option('tail', { type: 'number', describe: 'only the last so many lines' })
          .option('timestamps', { type: 'boolean', default: false, describe: 'the time of each line' })
          .example('$0 logs web -f --tail 20', 'the last lines, and those that come')
          .example('$0 logs -l app=web --all-containers --prefix --since 5m', 'several at once'),
      (args) => run(logs({ ...args, allContainers: args['all-containers'], sinceMs: sinceMs(args.since) }))(args),
    )
    .command(
      'exec <pod>',
      'runs a command in a container: exec POD -- COMMAND ARG...',
      (c) =>
        c
          .positional('pod', POD)
          .option('container', container)
          .option('stdin', { alias: 'i', type: 'boolean', default: false, describe: 'pass stdin on' })
          .option('tty', { alias: 't', type: 'boolean', default: false, describe: 'give the command a terminal' })
          .example('$0 exec -it web -- sh', 'a shell; Ctrl-C goes to it')
          .example('$0 exec web -- ls /', 'one command')
          .example('cat FILE | $0 exec -i web -- tar x', 'with input'),
      (args) => run(exec({ ...args, command: (args as { '--'?: (string | number)[] })['--']?.map(String) ?? [] }))(args),
    );
}
