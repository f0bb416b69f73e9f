/** Arguments of `actorctl record`. */
import type { Argv } from 'yargs';
import type { Common, Runner } from '../../asked.ts';

/** MiB; as --actorlet-record-inputs-max-mib. */
const RECORD_MAX_MIB = 256;

export function addRecordCommand<T extends Common>(y: Argv<T>, { run }: Runner): Argv<T> {
  const record = (what: 'start' | 'stop' | 'show', o = { folder: '', maxMib: 0, private: false }) =>
    run(async (asked) => (await import('./record.ts')).runRecord(asked, what, o));
  return y.command('record', 'the recording of inputs of a running daemon, for actorctl replay', (c) =>
    c
      .command('$0', 'shows what is recorded now', (s) => s.example('$0 record', ''), record('show'))
      .command(
        'start <folder>',
        'records from now on, also over restarts; the daemon starts anew for it, containers run on',
        (s) =>
          s
            .positional('folder', { type: 'string', demandOption: true, describe: 'on the machine of the daemon' })
            .option('max-mib', { type: 'number', default: RECORD_MAX_MIB, describe: 'MiB of the folder; the oldest files go first' })
            .option('private', { type: 'boolean', default: false, describe: 'leave out labels, annotations, ConfigMaps and logs, too' })
            .example('$0 record start /var/log/actorlet/inputs', ''),
        (args) => record('start', args)(args),
      )
      .command('stop', 'ends the recording; the daemon goes on', (s) => s.example('$0 record stop', ''), record('stop')),
  );
}
