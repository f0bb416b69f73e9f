/** The command line of `actorctl replay`. */

import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import type { Argv } from 'yargs';
import type { Common, Runner } from '../../asked.ts';

/** Runs of the node that cutting a recording down may take. */
const RUNS = 150;

export function addReplayCommand<T extends Common>(y: Argv<T>, { io, run }: Runner): Argv<T> {
  return y.command(
    'replay <path>',
    'runs a node again on what --actorlet-record-inputs recorded; 1 where it does something else now',
    (c) =>
      c
        .positional('path', { type: 'string', demandOption: true, describe: 'the folder, or one file of it' })
        .option('until', {
          type: 'string',
          describe: "stops where an actor enters a state, and prints it: 'pods/workers/web-1 state=syncing.settled'",
        })
        .option('minimize', {
          type: 'boolean',
          default: false,
          describe: 'cuts the recording down while the divergence, or with --pod the end of that pod, stays the same; replaces names',
        })
        .option('pod', { type: 'string', describe: 'with --minimize: NAMESPACE/NAME of the pod that matters' })
        .option('out', { type: 'string', describe: 'with --minimize: the file that is written' })
        .option('to-test', { type: 'string', describe: 'cuts it down and writes a test, *.test.ts in a checkout, that runs it' })
        .option('runs', { type: 'number', default: RUNS, describe: 'with --minimize: runs of the node at most' })
        .option('set', {
          type: 'string',
          array: true,
          default: [],
          describe: 'what if: a field of the configuration, or featureGates.NAME=true',
        })
        .option('drop', {
          type: 'string',
          array: true,
          default: [],
          describe: 'what if without: pod=NAMESPACE/NAME, events of port=NAME, or kind=killed',
        })
        .option('fault', { type: 'string', describe: 'what if: file of a fault scenario, injected at the start' })
        .option('ui', {
          type: 'boolean',
          default: false,
          describe: 'serves the inspection page on the replay, with a slider; begins at --until',
        })
        .option('port', { type: 'number', default: 0, describe: 'with --ui: the port of the page; 0: a free one' })
        .option('open', { type: 'boolean', default: false, describe: 'with --ui: opens a browser' })
        .option('inspect-brk', { type: 'string', describe: "with --until: opens Node's debugger there, at [HOST:]PORT; 0: a free one" })
        .example('$0 replay /var/log/actorlet/inputs', '')
        .example('$0 replay x.inputs.zst --set crashLoopBackOff.maxContainerRestartPeriod=5s', 'what becomes of each pod then')
        .example('$0 replay x.inputs.zst --to-test packages/replay/test/found/backOff.test.ts', ''),
    async (args) => {
      const json = args.json || args.output === 'json';
      const isKept = args.minimize || args.toTest !== undefined;
      const isWhatIf = args.set.length + args.drop.length > 0 || args.fault !== undefined;
      const wrong = wrongTogether({ ...args, isKept, isWhatIf });
      if (wrong !== null) return run(() => Promise.reject(new CtlError(EXIT.usage, wrong)))(args);
      if (args.ui) {
        const { runReplayUi } = await import('./ui.ts');
        const { path, until, port, open } = args;
        return run(() => runReplayUi(io, { path, until, port, open }))(args);
      }
      if (isKept) {
        const { runMinimize } = await import('./keep.ts');
        const { path, pod, out, toTest, runs } = args;
        return run(() => runMinimize(io, { path, json, pod, out, toTest, runs }))(args);
      }
      if (isWhatIf) {
        const { runWhatIf } = await import('./whatIf/whatIf.ts');
        const { path, set, drop, fault } = args;
        return run(() => runWhatIf(io, { path, json, set, drop, fault }))(args);
      }
      const { runReplay } = await import('./replay.ts');
      return run(() => runReplay(io, { path: args.path, json, until: args.until, inspectBrk: args.inspectBrk }))(args);
    },
  );
}

/** Options that would have no effect, in words; null: there are none. */
function wrongTogether(o: {
  isKept: boolean;
  isWhatIf: boolean;
  ui: boolean;
  port: number;
  open: boolean;
  until?: string | undefined;
  pod?: string | undefined;
  out?: string | undefined;
}): string | null {
  if (!o.isKept && o.pod !== undefined) return '--pod: say it with --minimize or --to-test.';
  if (!o.isKept && o.out !== undefined) return '--out: say it with --minimize or --to-test.';
  const isPlain = !o.isKept && !o.isWhatIf;
  if (!isPlain && o.until !== undefined) return '--until: say it without --minimize, --to-test, --set, --drop and --fault.';
  if (!o.ui && (o.port !== 0 || o.open)) return '--port, --open: say it with --ui.';
  const runs = [o.ui ? '--ui' : '', o.isKept ? '--minimize or --to-test' : '', o.isWhatIf ? '--set, --drop or --fault' : ''].filter(
    Boolean,
  );
  return runs.length > 1 ? `${runs.join(' and ')} do not go together: say one of them.` : null;
}
