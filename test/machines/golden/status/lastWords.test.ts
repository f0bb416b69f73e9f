/** What is said of the end of a container, and where its log is (pod lifecycle 5.7, 5.15, 5.16): a row for each line. */
import { logFileOf } from '@actorlet/kubelet/machines/edge/podLogs.ts';
import type { Container } from '../../../../src/machines/kube/podTable.ts';
import { pathName } from '../../../../src/machines/pod/pathName.ts';
import { containerLogLinkName, podFolder, restartCountFromLogNames } from '../../../../src/machines/pod/runtime/logNames.ts';
import { chooseTerminationMessage, headBytes, messageBytesMax } from '../../../../src/machines/pod/runtime/terminationMessage.ts';
import type { PodRecord } from '../../../../src/machines/pods/manager/messages.ts';
import { RUNNING } from '../../../lifeStates.ts';
import { container, pod, rc } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const last = (o: {
  file?: string | null;
  log?: string | null;
  policy?: string;
  exitCode?: number;
  reason?: string;
  message?: string;
  path?: string;
  state?: 'exited' | 'running';
}) =>
  chooseTerminationMessage(
    rc('web', o.state ?? 'exited', {
      exitCode: o.exitCode ?? 1,
      reason: o.reason ?? 'Error',
      message: o.message ?? '',
      terminationMessagePolicy: o.policy ?? 'File',
      terminationMessagePath: o.path ?? '/dev/termination-log',
    }),
    o.file === undefined ? null : o.file,
    async () => o.log ?? null,
  );
const FALLBACK = 'FallbackToLogsOnError';
const lines = (n: number) => Array.from({ length: n }, (_, i) => `2024-05-01T10:00:00Z stdout F line ${i}\n`).join('');
const logOf = (
  state: object,
  o: {
    restartCount?: number;
    previous?: boolean;
    lastState?: object;
    container?: string;
    containers?: Container[];
    containerID?: string;
  } = {},
) => {
  const p = pod({ containers: o.containers ?? [container('web')] });
  const record = { pod: p, source: 'api', state: RUNNING, seenAtMs: 0, worker: null } as PodRecord;
  const file = logFileOf({
    record,
    status: {
      phase: 'Running',
      containerStatuses: [
        {
          name: 'web',
          state,
          lastState: o.lastState ?? {},
          ready: false,
          restartCount: o.restartCount ?? 0,
          image: '',
          imageID: '',
          ...(o.containerID === undefined ? {} : { containerID: o.containerID }),
        },
      ],
    },
    container: o.container ?? 'web',
    previous: o.previous ?? false,
    podLogsDir: '/var/log/pods',
  });
  return file.ok ? file.path : file.reason;
};

goldenTable('last words and logs are as recorded', 'status/lastWords', {
  '5.15 the file': () => last({ file: 'bye' }),
  '5.15 the end of a long file': async () => (await last({ file: `${'a'.repeat(1_000)}${'b'.repeat(4_096)}` })).replaceAll('b', '').length,
  '5.15 no file': () => last({ log: 'never asked for' }),
  '5.15 no path': () => last({ path: '', file: 'bye', message: 'of the runtime' }),
  '5.15 no path, and the log was asked for': () => last({ policy: FALLBACK, path: '', file: 'never looked at', log: lines(1) }),
  '5.15 beside the words of the runtime': () => last({ file: 'bye', message: 'of the runtime' }),
  '5.15 log: not of a good end': () => last({ policy: FALLBACK, exitCode: 0, log: lines(1) }),
  '5.15 log: of a bad end': () => last({ policy: FALLBACK, log: lines(2) }),
  '5.15 log: not where there is a file': () => last({ policy: FALLBACK, file: 'bye', log: lines(1) }),
  '5.15 log: not of what could not run': () =>
    last({ policy: FALLBACK, reason: 'ContainerCannotRun', message: 'no such file', log: lines(1) }),
  '5.15 log: the last 80 lines': async () => {
    const text = await last({ policy: FALLBACK, log: lines(100) });
    return [text.split('\n').length - 1, text.split('\n')[0]];
  },
  '5.15 log: the last 2048 bytes': async () =>
    (await last({ policy: FALLBACK, log: `2024-05-01T10:00:00Z stdout F ${'x'.repeat(5_000)}\n` })).length,
  '5.15 log: parts of a line': () =>
    last({ policy: FALLBACK, log: '2024-05-01T10:00:00Z stdout P one \n2024-05-01T10:00:01Z stdout F line\n' }),
  '5.15 log: a last line that was not ended': () =>
    last({ policy: FALLBACK, log: '2024-05-01T10:00:00Z stdout F first\n2024-05-01T10:00:01Z stdout P DONE\n' }),
  '5.15 log: 100 lines, and a last one that was not ended': async () => {
    const text = await last({ policy: FALLBACK, log: `${lines(100)}2024-05-01T10:00:01Z stdout P DONE\n` });
    const all = text.split('\n');
    return [all.length, all[0], all.at(-1)];
  },
  '5.15 still runs': () => last({ state: 'running', file: 'bye' }),
  '5.15 all of a status': () => [
    messageBytesMax({ phase: 'Running' }),
    messageBytesMax({ containerStatuses: [1, 2, 3].map((n) => ({ name: `c${n}` }) as never) }),
    headBytes('aüb', 2),
  ],

  '5.16 log: runs': () => logOf({ running: { startedAt: '2024-05-01T10:00:00Z' } }, { restartCount: 3 }),
  '5.16 log: ended': () => logOf({ terminated: { exitCode: 1 } }, { restartCount: 3 }),
  '5.16 log: waits after an end': () =>
    logOf({ waiting: { reason: 'CrashLoopBackOff' } }, { restartCount: 3, lastState: { terminated: { exitCode: 1 } } }),
  '5.16 log: has not started': () => logOf({ waiting: { reason: 'ErrImagePull', message: 'no such image' } }),
  '5.16 log: previous': () => logOf({ running: { startedAt: '2024-05-01T10:00:00Z' } }, { restartCount: 3, previous: true }),
  '5.16 log: previous, waits after an end': () =>
    logOf({ waiting: { reason: 'CrashLoopBackOff' } }, { restartCount: 3, previous: true, lastState: { terminated: { exitCode: 1 } } }),
  '5.16 log: previous, waits after an end and its next instance is there': () =>
    logOf(
      { waiting: { reason: 'ContainerCreating' } },
      {
        restartCount: 4,
        previous: true,
        lastState: { terminated: { exitCode: 1, containerID: 'containerd://web-3' } },
        containerID: 'containerd://web-4',
      },
    ),
  '5.16 log: previous, has not started': () => logOf({ waiting: { reason: 'ErrImagePull' } }, { previous: true }),
  '5.16 log: previous, of the first': () => logOf({ running: { startedAt: '2024-05-01T10:00:00Z' } }, { previous: true }),
  '5.16 log: of several containers, none named': () => logOf({}, { container: '', containers: [container('web'), container('api')] }),
  '5.16 log: of a container that is not there': () => logOf({}, { container: 'nope' }),
  '5.7 restart count from the names of logs': () =>
    [[], ['0.log'], ['0.log', '10.log', '9.log.20240501-100000.gz', 'x.log']].map(restartCountFromLogNames),
  '5.7 link: no longer than a file name may be': () => [
    containerLogLinkName(podFolder({ uid: 'u', name: 'p', namespace: 'ns' }), pathName('web'), pathName('abcdef')),
    containerLogLinkName(podFolder({ uid: 'u', name: 'p'.repeat(253), namespace: 'ns' }), pathName('web'), pathName('abcdef')).length,
  ],
});
