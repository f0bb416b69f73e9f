/** The command line of everything else: page, charts, faults, simulation, throw-away nodes. Their code is loaded when wanted. */

import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { socketPathFrom } from '@actorlet/admin/src/socketPath.ts';
import { printable } from '@actorlet/kubelet/machines/text/table.ts';
import { GIT_VERSION } from '@actorlet/kubelet/machines/version.ts';
import type { NodeFactsPage } from '@actorlet/shown/src/nodePage.ts';
import type { Argv } from 'yargs';
import { type Common, printData, type Runner } from '../asked.ts';
import { completionScript, SHELLS } from './completion.ts';
import { addInjectCommand } from './inject/injectArgs.ts';
import { addRecordCommand } from './replay/recordArgs.ts';
import { addReplayCommand } from './replay/replayArgs.ts';
import { CHART_FORMATS } from './show/chartFormats.ts';

export function addToolCommands<T extends Common>(y: Argv<T>, runner: Runner): Argv<T> {
  return addReplayCommand(
    addRecordCommand(
      addTryCommand(
        addSimCommand(addImageCommand(addNodeCommand(addAboutCommands(addInspectCommands(y, runner), runner), runner), runner), runner),
        runner,
      ),
      runner,
    ),
    runner,
  );
}

const DRAIN_TIMEOUT_S = 600;

function addImageCommand<T extends Common>(y: Argv<T>, { io, run }: Runner): Argv<T> {
  return y.command('image', 'images of embedded://oci', (c) =>
    c
      .command(
        'load <file>',
        'loads every image of an archive: of docker save, podman save or an OCI layout',
        (s) =>
          s
            .positional('file', { type: 'string', demandOption: true, describe: 'the archive' })
            .option('name', { type: 'string', default: '', describe: 'of its one image, instead of what the archive says' })
            .example('$0 image load app.tar', ''),
        async (args) => {
          const { loadImage } = await import('./image.ts');
          return run(loadImage({ ...args, adminSocket: socketPathFrom(args.socket, io) }))(args);
        },
      )
      .example('$0 image load app.tar', 'and a pod may name it')
      .demandCommand(1, 'image: say load.'),
  );
}

function addNodeCommand<T extends Common>(y: Argv<T>, { run }: Runner): Argv<T> {
  const load = () => import('./node.ts');
  return y.command('node', 'the Node object as the API server shows it, beside what its daemon knows; 1 where they differ', (c) =>
    c
      .option('kubeconfig', { type: 'string', default: '', describe: "default $KUBECONFIG, else the daemon's own" })
      .command(
        '$0',
        'shows both, with ! where they differ',
        (s) => s.example('$0 node', 'conditions, lease and pods of both sides'),
        async (args) => run((await load()).showNode(args))(args),
      )
      .command(
        'cordon',
        'no new pods for this node',
        (s) => s.example('$0 node cordon', ''),
        async (args) => run((await load()).cordon({ ...args, unschedulable: true }))(args),
      )
      .command(
        'uncordon',
        'new pods again',
        (s) => s.example('$0 node uncordon', ''),
        async (args) => run((await load()).cordon({ ...args, unschedulable: false }))(args),
      )
      .command(
        'drain',
        'cordons, then evicts every pod that a controller makes again elsewhere',
        (s) =>
          s
            .option('force', { type: 'boolean', default: false, describe: 'also pods without a controller' })
            .option('ignore-daemonsets', { type: 'boolean', default: false, describe: 'leave pods of DaemonSets where they are' })
            .option('delete-emptydir-data', { type: 'boolean', default: false, describe: 'also pods with an emptyDir' })
            .option('timeout', { type: 'number', default: DRAIN_TIMEOUT_S, describe: 'seconds for all of it' })
            .example('$0 node drain --ignore-daemonsets', 'before the machine is taken down'),
        async (args) => run((await load()).drain({ ...args, timeoutMs: args.timeout * 1000 }))(args),
      ),
  );
}

function addInspectCommands<T extends Common>(y: Argv<T>, { io, run, setCode }: Runner): Argv<T> {
  return y
    .command(
      'ui',
      'where the inspection page is, with the right to act on it; of a recording, serves the page',
      (c) =>
        c
          .option('open', { type: 'boolean', default: false, describe: 'open it in a browser of this desktop' })
          .option('port', { type: 'number', default: 0, describe: 'of 127.0.0.1, for the page of a recording; 0: any' })
          .example('$0 ui --open', 'look at the running node')
          .example('$0 --recording FILE ui', 'look at a node that was, until Ctrl-C'),
      async (args) => {
        if (args.recording !== undefined) {
          const { runRecordedUi } = await import('./recording/recordingUi.ts');
          setCode(await runRecordedUi(io, { file: args.recording, at: args.at ?? '', port: args.port, open: args.open }));
          return;
        }
        const { runUi } = await import('./inspect.ts');
        await run((asked) => runUi(asked, { open: args.open }))(args);
      },
    )
    .command(
      'html',
      'the page of a recording as one file, for a bug report: any browser opens it without a server',
      (c) => c.example('$0 --recording FILE html > incident.html', 'with --at it opens at another moment than the end'),
      async (args) => {
        if (args.recording === undefined) throw new CtlError(EXIT.usage, 'html makes a page of a recording: give --recording FILE.');
        const { runHtml } = await import('./recording/html.ts');
        setCode(await runHtml(io, { file: args.recording, at: args.at ?? '' }));
      },
    )
    .command(
      'chart <actor>',
      "the statechart of an actor's machine, for other tools",
      (c) =>
        c
          .positional('actor', { type: 'string', demandOption: true, describe: 'actor path, e.g. pods/podManager' })
          .option('format', {
            choices: CHART_FORMATS,
            default: 'mermaid' as const,
            describe: "stately: a configuration that Stately's editor imports",
          })
          .example('$0 chart pods/podManager', 'a Mermaid diagram')
          .example('$0 chart runtime/cri --format stately > cri.ts', "for Stately's editor"),
      async (args) => {
        const { runChart } = await import('./inspect.ts');
        await run((asked) => runChart(asked, { actor: args.actor, format: args.format }))(args);
      },
    )
    .command(
      'debugger',
      "opens the daemon's debugger for a tool of this machine, until Ctrl-C",
      (c) => c.example('$0 debugger', 'prints the address for Chrome or an editor'),
      async (args) => {
        const { runDebugger } = await import('./debugger.ts');
        await run(runDebugger)(args);
      },
    )
    .command(
      'completion <shell>',
      'prints a script that completes commands and options',
      (c) =>
        c
          .positional('shell', { choices: SHELLS, demandOption: true, describe: 'bash, zsh or fish' })
          .example('source <($0 completion bash)', 'in ~/.bashrc'),
      (args) => io.out(completionScript(args.shell)),
    )
    .command('inject', 'causes faults on a node that was started with --actorlet-fault-injection', (c) =>
      addInjectCommand(c, async (request, args) => {
        const { runInject } = await import('./inject/inject.ts');
        await run((asked) => runInject(asked.io, asked.client, { request, json: asked.format === 'json' }))(args as Common);
      }),
    );
}

function addAboutCommands<T extends Common>(y: Argv<T>, { io, run, setCode }: Runner): Argv<T> {
  return y
    .command(
      'version',
      'versions of this program and of the daemon',
      (c) =>
        c
          .option('client', { type: 'boolean', default: false, describe: 'of this program alone' })
          .example('$0 version --client', 'without a daemon'),
      async (args) => {
        const asData = args.json || args.output === 'json' || args.output === 'yaml';
        if (!asData) io.out(`actorctl ${GIT_VERSION}\n`);
        if (args.client && !asData) return;
        await run(async (asked) => {
          const { version, name } = args.client ? { version: '', name: '' } : ((await asked.client.json('/node')) as NodeFactsPage);
          const daemon = args.client ? {} : { actorlet: version, node: name };
          if (asData) printData(asked, { actorctl: GIT_VERSION, ...daemon });
          else io.out(`actorlet ${printable(version || 'of no version')} (node ${printable(name)})\n`);
          return EXIT.ok;
        })(args);
      },
    )
    .command(
      'token',
      'the token of an observer that was started with --listen, for --token-file',
      (c) => c.example('$0 token > token', 'on the node, or by kubectl exec'),
      async (args) => {
        const { readToken } = await import('./token.ts');
        io.out(`${readToken(socketPathFrom(args.socket, io))}\n`);
      },
    )
    .command(
      'fleet',
      'many nodes on one machine: a command of actorlet',
      (c) => c.example('actorlet fleet --nodes 100 --api embedded', 'a hundred nodes without a cluster; --node NAME asks one of them'),
      () => {
        io.err('actorctl: fleet is a command of the daemon: actorlet fleet --help. actorctl --node NAME asks one of its nodes.\n');
        setCode(EXIT.usage);
      },
    );
}

function addSimCommand<T extends Common>(y: Argv<T>, { io, setCode }: Runner): Argv<T> {
  return y.command(
    'sim',
    'simulates whole nodes under faults; needs no daemon',
    (c) =>
      c
        .option('seed', { type: 'number', describe: 'first seed; default: a fresh one, printed' })
        .option('seeds', { type: 'number', default: 1, describe: 'how many seeds, counting up' })
        .option('minutes', { type: 'number', describe: "virtual minutes of faults a run; default: the scenario's, or 2" })
        .option('pods', { type: 'number', describe: "pods drawn per node; default: the scenario's, or 8" })
        .option('nodes', { type: 'number', describe: "nodes in one world; default: the scenario's, or 1, in some seeds 2" })
        .option('scenario', { type: 'string', describe: 'file with the faults, in place of drawn ones' })
        .option('jobs', { type: 'number', default: 1, describe: 'processes' })
        .option('shrink', { type: 'number', default: 80, describe: 'runs spent on making a failing schedule small' })
        .option('tail', { type: 'number', default: 40, describe: 'last lines of trace, log and recorder in a report' })
        .option('edges', {
          type: 'boolean',
          default: false,
          describe: 'count the edges of every statechart, and name those never taken; slower',
        })
        .option('record', {
          type: 'string',
          describe: 'folder: failing seeds, or the only one, are written as recordings for actorctl replay',
        })
        .option('lines', { type: 'boolean', default: false, hidden: true })
        .example('$0 sim --seeds 100 --jobs 2', 'a hundred nodes under drawn faults'),
    async (args) => {
      // Loaded only here: the other commands need nothing of a node.
      const { runSimCommand } = await import('./sim/sim.ts');
      const code = await runSimCommand(io, {
        ...args,
        seed: args.seed,
        minutes: args.minutes,
        pods: args.pods,
        nodes: args.nodes,
        scenario: args.scenario,
        record: args.record,
      });
      setCode(code);
    },
  );
}

function addTryCommand<T extends Common>(y: Argv<T>, { io, setCode }: Runner): Argv<T> {
  return y.command(
    'try',
    'runs manifests on a throw-away node and checks what becomes of them; needs no daemon',
    (c) =>
      c
        .option('file', { alias: 'f', type: 'string', array: true, default: [], describe: 'manifests: files or folders' })
        .option('expect', { alias: 'e', type: 'string', array: true, default: [], describe: 'what must come true; see below' })
        .option('inject', { type: 'string', describe: 'fault scenario, begun once every pod is ready or has succeeded' })
        .option('settle', { type: 'string', default: '60s', describe: 'how long that may take; 0s: inject at once' })
        .option('runtime', { type: 'string', default: 'process', describe: 'process, oci, hollow or containerd' })
        .option('endpoint', { type: 'string', describe: 'socket of a containerd that holds no pods' })
        .option('junit', { type: 'string', describe: 'file for the outcome as JUnit XML, which CI services read' })
        .option('keep', { type: 'boolean', default: false, describe: 'leave logs and configuration, and say where' })
        .example('$0 try -f web.yaml -e "web ready within 30s"', 'does it come up?')
        .epilogue(
          'Expectations: [POD] CONDITION [within TIME | for TIME]. CONDITION: phase=NAME[|NAME], ready, unready, gone, restarts=N (also >= <= > <), exit=CODE, reason=WORD, log~REGEXP. Without a pod: all of them. Without a time: within 30s; phase and restarts (but > and >=) must then also hold until the 30s are over. Times count from the beginning of the faults, else of the pods.\nExit codes: 0 all held, 1 one did not, 2 it could not be tried.',
        ),
    async (args) => {
      const { runTry } = await import('./try.ts');
      setCode(await runTry(io, args));
    },
  );
}
