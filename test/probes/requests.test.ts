/** What is asked of a container, and how an answer is judged: ports, headers, hosts, redirects, statuses. */
import { describe, expect, it } from 'vitest';
import {
  execCommand,
  grpcProbe,
  httpProbe,
  judgeGrpc,
  judgeHttp,
  redirectOf,
  resolvePort,
  tcpProbe,
  timeoutSeconds,
} from '../../src/machines/pod/probes/netRequests.ts';
import { EXEC, target } from './fixtures.ts';

const ports = [{ name: 'web', containerPort: 8080 }, { containerPort: 9090 }];
const http = (more: object = {}, at: object = {}) => httpProbe(target({ httpGet: { port: 80, path: '/', scheme: 'HTTP', ...more } }, at));
const asked = (more: object = {}, at: object = {}) => {
  const wanted = http(more, at);
  if (!wanted.ok) throw new Error(wanted.message);
  return wanted.value;
};

describe('ports', () => {
  it.each<[number | string, number | string]>([
    [80, 80],
    ['web', 8080],
    ['8081', 8081],
    ['nope', 'couldn\'t find port: "nope" is no port of this container'],
    [0, 'invalid port number: 0'],
    [65_536, 'invalid port number: 65536'],
    ['70000', 'invalid port number: 70000'],
  ])('%s is %s', (port, expected) => {
    const wanted = resolvePort(port, ports);
    expect(wanted.ok ? wanted.value : wanted.message).toBe(expected);
  });
});

describe('an HTTP probe', () => {
  it.each<[string, object, object, string]>([
    ['asks the address of the pod', {}, {}, 'http://10.1.2.3/'],
    ['asks another host', { host: 'example.test', port: 8080 }, {}, 'http://example.test:8080/'],
    ['keeps the query', { path: '/health?full=1&x=a%20b' }, {}, 'http://10.1.2.3/health?full=1&x=a%20b'],
    ['writes a scheme in small letters', { scheme: 'HTTPS', port: 8443 }, {}, 'https://10.1.2.3:8443/'],
    ['brackets an IPv6 address', { port: 8080 }, { podIP: 'fd00::1' }, 'http://[fd00::1]:8080/'],
    ['adds the slash that is missing', { path: 'ready' }, {}, 'http://10.1.2.3/ready'],
    ['cannot be led to another host by its path', { path: '//evil.test/x', port: 81 }, {}, 'http://10.1.2.3:81//evil.test/x'],
  ])('%s', (_, more, at, url) => {
    expect(asked(more, at).url).toBe(url);
  });

  it('says what it is and takes anything, unless the pod says otherwise', () => {
    expect(asked().headers).toEqual({ 'User-Agent': ['kube-probe/1.36'], Accept: ['*/*'] });
    const own = [
      { name: 'user-agent', value: 'me' },
      { name: 'ACCEPT', value: 'text/plain' },
      { name: 'x-twice', value: '1' },
      { name: 'X-Twice', value: '2' },
    ];
    expect(asked({ httpHeaders: own }).headers).toEqual({ 'User-Agent': ['me'], Accept: ['text/plain'], 'X-Twice': ['1', '2'] });
  });

  it('leaves out Accept when it is given and empty (trap 44)', () => {
    expect(asked({ httpHeaders: [{ name: 'Accept', value: '' }] }).headers).toEqual({ 'User-Agent': ['kube-probe/1.36'] });
  });

  it('sends a Host header of its own as the host of the request', () => {
    const { host, headers } = asked({ httpHeaders: [{ name: 'host', value: 'shop.example' }] });
    expect(host).toBe('shop.example');
    expect(headers).not.toHaveProperty('Host');
  });

  it('without an address or a port is an error, not a failure', () => {
    expect(http({}, { podIP: '' })).toEqual({ ok: false, message: 'the pod has no address yet' });
    expect(http({ port: 'nope' }).ok).toBe(false);
  });

  it.each([
    [200, 'success'],
    [299, 'success'],
    [300, 'warning'],
    [399, 'warning'],
    [199, 'failure'],
    [400, 'failure'],
    [503, 'failure'],
  ])('takes %i for %s', (status, kind) => {
    expect(judgeHttp(status, 'x').kind).toBe(kind);
  });
  it('says which status it was', () => {
    expect(judgeHttp(503, 'x').output).toBe('HTTP probe failed with statuscode: 503');
  });
});

describe('redirects (trap 43)', () => {
  const present = { url: 'http://10.1.2.3:8080/a', headers: {}, host: 'shop.example' };
  const next = (status: number, location: string | null) => redirectOf({ first: present.url, present }, { status, location });
  it.each<[string, number, string | null, object | null]>([
    ['to a path is followed, with the Host header', 302, '/b', { url: 'http://10.1.2.3:8080/b', host: 'shop.example' }],
    [
      'to the same host at another port or scheme is followed',
      307,
      'https://10.1.2.3:8443/b',
      { url: 'https://10.1.2.3:8443/b', host: null },
    ],
    ['to another host is not', 302, 'http://other.test/b', null],
    ['to another host in short form is not', 302, '//other.test/b', null],
    ['to something else than HTTP is not', 301, 'file:///etc/passwd', null],
    ['without a location is an answer', 302, null, null],
    ['304 is an answer', 304, '/b', null],
    ['200 is an answer', 200, '/b', null],
  ])('%s', (_, status, location, expected) => {
    expect(next(status, location)).toEqual(expected === null ? null : { headers: {}, ...expected });
  });
});

describe('others', () => {
  it('TCP asks the port of the host or of the pod', () => {
    expect(tcpProbe(target({ tcpSocket: { port: 'web' } }, { spec: { ports } }))).toEqual({
      ok: true,
      value: { host: '10.1.2.3', port: 8080 },
    });
    expect(tcpProbe(target({ tcpSocket: { port: 1, host: 'h' } }))).toEqual({ ok: true, value: { host: 'h', port: 1 } });
  });
  it('gRPC asks the pod, by number', () => {
    expect(grpcProbe(target({ grpc: { port: 5, service: 's' } }))).toEqual({
      ok: true,
      value: { host: '10.1.2.3', port: 5, service: 's' },
    });
    expect(grpcProbe(target({ grpc: { port: 5 } }, { podIP: '' })).ok).toBe(false);
  });
  it.each([
    [{ ok: true as const, status: 1 }, 'success', 'service healthy'],
    [{ ok: true as const, status: 2 }, 'failure', 'service unhealthy (responded with "NOT_SERVING")'],
    [{ ok: true as const, status: 0 }, 'failure', 'service unhealthy (responded with "UNKNOWN")'],
    [{ ok: false as const, code: 4, details: '' }, 'failure', 'timeout: health rpc did not complete within 3s'],
    [{ ok: false as const, code: 14, details: 'refused' }, 'failure', 'health rpc failed: refused'],
    [
      { ok: false as const, code: 12, details: 'no such method' },
      'failure',
      'this server does not implement the grpc health protocol (grpc.health.v1.Health): no such method',
    ],
  ])('gRPC: %j is a %s', (answer, kind, output) => {
    expect(judgeGrpc(answer, { timeoutSeconds: 3 })).toEqual({ kind, output });
  });
  it('a command is expanded with the values that the definition spells out, and with nothing else', () => {
    const env = [
      { name: 'A', value: 'x' },
      { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
    ];
    expect(execCommand({ env }, ['$(A)', '$(IP)', '$(B)', '$$(A)'])).toEqual({ ok: true, value: ['x', '$(IP)', '$(B)', '$(A)'] });
  });
  it('a time-out is 1 s unless it is given', () => {
    expect([timeoutSeconds({ probe: EXEC }), timeoutSeconds({ probe: { ...EXEC, timeoutSeconds: 7 } })]).toEqual([1, 7]);
  });
});
