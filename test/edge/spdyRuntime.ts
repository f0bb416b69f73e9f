/** A CRI runtime's streaming server of tests: it speaks SPDY/3.1 and the remote command protocol of Kubernetes (v4). */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { constants, inflateSync } from 'node:zlib';
import { data, FRAME, spdyReader } from '@actorlet/process/src/spdy.ts';

/** The other end of one command. */
export interface Command {
  /** Stream ids by name, in the order in which they were opened. */
  streams: Map<string, number>;
  input: string;
  inputEnded: boolean;
  sizes: { Width: number; Height: number }[];
  pongs: string[];
  write(stream: string, bytes: string | Buffer): void;
  end(status: object): void;
  socket: Duplex;
  gone: boolean;
}
export const failure = (code: number) => ({
  ...{ metadata: {}, status: 'Failure', message: `command terminated with non-zero exit code: ${code}`, reason: 'NonZeroExitCode' },
  details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
});
/** RST_STREAM, as runtimes end streams. */
export const RESET = (streamId: number) => Buffer.from(`80030003000000080000000${streamId}00000005`, 'hex');
export const success = { metadata: {}, status: 'Success' };

function command(socket: Duplex): Command {
  const blocks: Buffer[] = [];
  const at = (name: string): number => self.streams.get(name) ?? 0;
  const self: Command = {
    ...{ streams: new Map(), input: '', inputEnded: false, sizes: [], pongs: [], socket, gone: false },
    write: (stream, bytes) => void socket.write(data(at(stream), Buffer.from(bytes))),
    end(status) {
      self.write('error', JSON.stringify(status));
      for (const name of ['error', 'stdout', 'stderr']) if (at(name) > 0) socket.write(data(at(name), Buffer.alloc(0), true));
      socket.end();
    },
  };
  const read = spdyReader({
    data(id, part) {
      if (id === at('stdin')) self.input += part.toString();
      else if (id === at('resize'))
        for (const line of part.toString().trim().split('\n')) self.sizes.push(JSON.parse(line) as Command['sizes'][0]);
    },
    end(id) {
      if (id === at('stdin')) self.inputEnded = true;
    },
    control(type, payload) {
      if (type === FRAME.ping) self.pongs.push(payload.toString('hex'));
      if (type !== FRAME.synStream) return;
      // One zlib stream over all blocks, as a server reads it.
      blocks.push(Buffer.from(payload.subarray(10)));
      const plain = inflateSync(Buffer.concat(blocks), { finishFlush: constants.Z_SYNC_FLUSH }).toString('latin1');
      const name = plain.slice(plain.lastIndexOf('streamtype') + 'streamtype'.length + 4);
      self.streams.set(name, payload.readUInt32BE(0));
    },
  });
  socket.on('data', read);
  socket.on('error', () => undefined);
  for (const event of ['end', 'close'])
    socket.on(event, () => {
      self.gone = true;
    });
  return self;
}

/** `serve` is called once a client has opened as many streams as its flags ask for. */
export async function spdyRuntime(o: {
  streams: number;
  serve(c: Command): void;
  /** Told how to end it. */
  enders: (() => void)[];
}): Promise<{ url: string; commands: Command[]; server: Server }> {
  const commands: Command[] = [];
  const server = createServer((_req, res) => res.writeHead(404).end('cannot find token\n'));
  server.on('upgrade', (req, socket: Duplex) => {
    if (req.headers.upgrade !== 'SPDY/3.1' || req.headers['x-stream-protocol-version'] !== 'v4.channel.k8s.io' || req.url !== '/exec/tok') {
      return void socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 8\r\n\r\nnot you\n');
    }
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n',
    );
    const c = command(socket);
    commands.push(c);
    const look = () => {
      if (c.streams.size < o.streams) return;
      socket.off('data', look);
      o.serve(c);
    };
    socket.on('data', look);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  o.enders.push(() => {
    for (const c of commands) c.socket.destroy();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/exec/tok`, commands, server };
}
