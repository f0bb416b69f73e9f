/** HTTP: what a handler is asked, and raw bytes on a connection. */
import { connect } from 'node:net';
import fc from 'fast-check';
import { createNet } from '../../src/boot/dependencies/net/net.ts';
import { accessAttributes, accessReviewSpec } from '../../src/machines/edge/https/attributes.ts';
import { readLogQuery } from '../../src/machines/edge/https/logs/logQuery.ts';
import { changedText, hostileText } from './hostile.ts';
import { must, type Target } from './target.ts';

const REQUESTS = [
  'GET /healthz HTTP/1.1\r\nHost: n\r\nConnection: close\r\n\r\n',
  'POST /run/default/web/main?cmd=ls HTTP/1.1\r\nHost: n\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc',
  'POST /exec/a/b/c HTTP/1.1\r\nHost: n\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\n\r\n',
  'PUT /x HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
];
/** A side that keeps its end open is ended by the client here: what is looked for is a server that stumbles. */
const ANSWER_MS = 5_000;

let server: { close(): Promise<void>; address: string } | null = null;
let asked = 0;
async function open(): Promise<void> {
  server = await createNet().serveHttp({ host: '127.0.0.1', port: 0 }, async (req) => {
    asked++;
    for (const name of ['a', ...req.query.keys()]) req.query.getAll(name);
    accessAttributes(req.method, req.path, { fineGrained: true });
    return { status: 200, body: req.path };
  });
}
/** What comes back until either side ends. */
function send(bytes: string): Promise<string> {
  const port = Number(server?.address.split(':').at(-1));
  return new Promise((resolve) => {
    let got = '';
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: false }, () => socket.end(bytes, 'latin1'));
    socket.setTimeout(ANSWER_MS, () => socket.destroy());
    socket.on('data', (chunk) => {
      got += chunk.toString('latin1');
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(got));
  });
}
const PLAIN = 'GET /plain HTTP/1.1\r\nHost: n\r\nConnection: close\r\n\r\n';

export const requestTargets: readonly Target[] = [
  {
    name: 'connection',
    share: 8,
    open,
    close: async () => {
      must(asked > 0, 'some requests were whole');
      await server?.close();
    },
    property: fc.asyncProperty(
      changedText(fc.constantFrom(...REQUESTS), [
        '\r\n',
        '\r\n\r\n',
        'Content-Length: 9\r\n',
        'Transfer-Encoding: chunked\r\n',
        '%',
        '%00',
        '%2e%2e/',
      ]),
      async (bytes) => {
        await send(bytes);
        must((await send(PLAIN)).endsWith('\r\n\r\n/plain') || (await send(PLAIN)).includes('/plain'), 'the next request is answered');
      },
    ),
  },
  {
    name: 'query',
    share: 4,
    property: fc.property(
      fc.array(fc.tuple(fc.constantFrom('query', 'sinceTime', 'untilTime', 'tailLines', 'boot', 'pattern'), hostileText), { maxLength: 6 }),
      fc.oneof(
        hostileText,
        hostileText.map((t) => `/containerLogs/${t}`),
      ),
      (list, path) => {
        readLogQuery(new URLSearchParams(list.map(([k, v]): [string, string] => [k, v])), { below: false });
        for (const attributes of accessAttributes('GET', path, { fineGrained: true }))
          accessReviewSpec({ name: path, uid: '', groups: [], extra: {} }, attributes, 'n1');
      },
    ),
  },
];
