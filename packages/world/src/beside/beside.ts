/** What is beside the daemon on a simulated machine, besides its runtime and its drivers: programs that it runs, and logs that grow. */

import type { KubeletConfiguration } from '@actorlet/kubelet/machines/config/config.ts';
import type { Clock, HostFs, Ports } from '@actorlet/kubelet/ports/ports.ts';
import type { SimDisk } from '../disk/types.ts';
import { SECRET } from '../identity/certificates.ts';
import type { SimRng } from '../rng.ts';
import type { SimRuntime } from '../runtime/types.ts';
import { type SimJournal, simJournal } from './journal.ts';
import { type LogTuning, type SimLogs, simGzip, simLogs } from './logs.ts';
import { type ProgramTuning, type SimPrograms, simPrograms } from './programs.ts';
import { type SimUsage, simUsage } from './usage.ts';

export interface BesideTuning {
  /** Programs that know credentials for registries; null: none are configured. */
  programs: ProgramTuning | null;
  /** What volumes hold is counted. */
  usage: boolean;
  /** The machine keeps a journal, and the node's API may be asked for it. */
  journal: boolean;
  /** Logs of containers grow; null: the runtime writes none. */
  logs: LogTuning | null;
}
export const NOTHING_BESIDE: BesideTuning = { programs: null, usage: false, journal: false, logs: null };

export interface SimBeside {
  readonly programs: SimPrograms | undefined;
  readonly usage: SimUsage | undefined;
  readonly journal: SimJournal | undefined;
  readonly logs: SimLogs | undefined;
  readonly config: Partial<KubeletConfiguration>;
  /** Connects one daemon. */
  connect(daemon: {
    clock: Clock;
    power: { on: boolean };
    fs: HostFs;
  }): Pick<Ports, 'credentialPrograms' | 'diskUsage' | 'journal' | 'gzip'>;
}

/** What a kernel says of itself, without which there is no summary of what pods use. */
const PROC: Readonly<Record<string, string>> = {
  stat: 'cpu  100 0 100 1000 0 0 0 0 0 0\nbtime 1767225600\n',
  meminfo: 'MemTotal: 8388608 kB\nMemFree: 4194304 kB\nMemAvailable: 4194304 kB\n',
  vmstat: 'pgfault 10\npgmajfault 1\n',
  'net/dev': 'Inter-|   Receive |  Transmit\n face |bytes packets|bytes packets\n',
  loadavg: '0.00 0.00 0.00 1/500 1000\n',
  'sys/kernel/pid_max': '32768\n',
};
/** What somebody may have put where logs are. */
export const HOST_LOG = '/var/log/audit.log';
export const LOG_LINK = '/var/log/key.log';
const KEY = '/etc/ssh/host.key';

export function besideNode(tuning: BesideTuning, o: { disk: SimDisk; runtime: SimRuntime; clock: Clock; rng: SimRng }): SimBeside {
  const { disk, rng, runtime } = o;
  const programs = tuning.programs === null ? undefined : simPrograms(tuning.programs, rng.fork('programs'));
  const usage = tuning.usage ? simUsage({ disk, rng: rng.fork('usage') }) : undefined;
  const journal = tuning.journal ? simJournal({ rng: rng.fork('journal') }) : undefined;
  const logs = tuning.logs === null ? undefined : simLogs(tuning.logs, { ...o, rng: rng.fork('logs') });
  if (programs !== undefined)
    runtime.refusesPull = (password) => (programs.given.get(password)?.good === false ? '401 Unauthorized' : undefined);
  if (usage !== undefined) for (const [path, text] of Object.entries(PROC)) disk.put(`/proc/${path}`, text);
  if (journal !== undefined) {
    disk.put(HOST_LOG, 'somebody logged in\n');
    disk.put(KEY, `KEY ${SECRET}of-the-machine\n`);
    disk.putLink(LOG_LINK, KEY);
  }
  return {
    programs,
    usage,
    journal,
    logs,
    config: {
      ...(tuning.logs === null
        ? {}
        : {
            containerLogMaxSize: String(tuning.logs.maxBytes),
            containerLogMaxFiles: tuning.logs.filesMax,
            containerLogMaxWorkers: tuning.logs.workers,
            containerLogMonitorInterval: tuning.logs.everyMs,
          }),
      ...(tuning.journal ? { enableSystemLogQuery: true, featureGates: { NodeLogQuery: true } } : {}),
      ...(tuning.usage ? { volumeStatsAggPeriod: USAGE_PERIOD_MS } : {}),
    },
    connect: ({ fs, ...daemon }) => ({
      ...(programs === undefined ? {} : { credentialPrograms: programs.connect(daemon) }),
      ...(usage === undefined ? {} : { diskUsage: usage.connect(daemon) }),
      ...(journal === undefined ? {} : { journal: journal.connect(daemon) }),
      ...(logs === undefined ? {} : { gzip: simGzip(fs) }),
    }),
  };
}
const USAGE_PERIOD_MS = 5_000;
