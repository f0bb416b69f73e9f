/** What a request to the kubelet's API asks for (boot-and-node 7.4), a row for each line of the table there, with and without the gate. */
import { accessAttributes } from '../../../../src/machines/edge/https/attributes.ts';
import { goldenTable } from '../table.ts';

const asked = (method: string, path: string, fineGrained: boolean) =>
  accessAttributes(method, path, { fineGrained }).map((a) => `${a.verb} ${a.subresource}`);
const row = (method: string, path: string): [string, () => unknown] => [
  `${method} ${path}`,
  () => ({ fine: asked(method, path, true), coarse: asked(method, path, false) }),
];
const PATHS = [
  '/stats',
  '/stats/',
  '/stats/summary',
  '/metrics',
  '/metrics/cadvisor',
  '/metrics/resource',
  '/logs',
  '/logs/syslog',
  '/spec/',
  '/checkpoint/ns/pod/main',
  '/pods',
  '/pods/x',
  '/runningpods/',
  '/healthz',
  '/healthz/ping',
  '/configz',
  '/statusz',
  '/flagz',
  '/exec/ns/pod/main',
  '/run/ns/pod/main',
  '/attach/ns/pod/main',
  '/portForward/ns/pod',
  '/containerLogs/ns/pod/main',
  '/debug/pprof/profile',
  '/debug/flags/v',
  '/cri/exec/token',
  '/statez',
  '/recorder',
  '/',
  // Only at a border of the path (trap 25).
  '/statsx',
  '/metricsx/resource',
  '/podsx',
  '/x/stats',
];
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'CONNECT', 'get'];

goldenTable('what is asked for before a page is given is as recorded', 'edge/access', {
  ...Object.fromEntries(PATHS.map((path) => row('GET', path))),
  ...Object.fromEntries(METHODS.map((method) => row(method, '/stats/summary'))),
  ...Object.fromEntries(METHODS.map((method) => row(method, '/exec/ns/pod/main'))),
});
