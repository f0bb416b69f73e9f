/** What a query of /logs/ asks for, or why it is refused (boot-and-node 8.10), and what journalctl is run with. */
import { journalArguments, readLogQuery } from '../../../../src/machines/edge/https/logs/logQuery.ts';
import { goldenTable } from '../table.ts';

const of =
  (query: string, below = false) =>
  () => {
    const asked = readLogQuery(new URLSearchParams(query), { below });
    return asked.kind === 'services' ? { services: asked.services, runs: journalArguments(asked.services, asked.options) } : asked;
  };
const QUERIES = [
  ...['', 'other=x', 'query=', 'query=%20', 'query=kubelet', 'query=kubelet&query=containerd', 'query=kubelet&query='],
  ...['query=a&query=b&query=c&query=d', 'query=a&query=b&query=c&query=d&query=e'],
  ...['query=getty%40tty1.service', 'query=my_unit%3Ax', 'query=--file', 'query=a%20b', 'query=%24(id)', 'query=a%3Bb', 'query=..'],
  ...['query=%2Fsyslog', 'query=pods%2Fx.log', 'query=a%5Cb.log', 'query=%2Fa&query=%2Fb', 'query=%2Fa&query=kubelet'],
  ...['query=..%2F..%2Fetc%2Fpasswd', 'query=%2F.%2Fx', 'query=%2Fa&tailLines=1', 'query=%2Fa&pattern=x', 'query=%2F'],
  ...['query=u&sinceTime=2026-01-02T03:04:05Z', 'query=u&untilTime=2026-01-02T03:04:05%2B02:00', 'query=u&sinceTime=yesterday'],
  ...['query=u&sinceTime=2026-01-02T03:04:05Z&untilTime=2026-01-01T03:04:05Z', 'query=u&untilTime=2026-13-02T03:04:05Z'],
  ...['query=u&tailLines=0', 'query=u&tailLines=100000', 'query=u&tailLines=100001', 'query=u&tailLines=-1', 'query=u&tailLines=many'],
  ...['query=u&boot=0', 'query=u&boot=-1', 'query=u&boot=1', 'query=u&boot=first'],
  ...['query=u&pattern=--help', 'query=u&pattern=(%3Fi)error.*%24', 'query=u&pattern=', 'query=u&pattern=a%00b'],
  ...['tailLines=1', 'pattern=x', 'boot=x&tailLines=x'],
];

goldenTable('what a query of the logs comes to is as recorded', 'edge/logQuery', {
  ...Object.fromEntries(QUERIES.map((query) => [`/logs/?${query}`, of(query)])),
  '/logs/syslog?query=kubelet': of('query=kubelet', true),
  'a name that is too long': of(`query=${'x'.repeat(257)}`),
  'a pattern that is too long': of(`query=u&pattern=${'x'.repeat(1_025)}`),
});
