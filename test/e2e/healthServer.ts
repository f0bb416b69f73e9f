/** `healthServer.ts PORT SERVICE`: grpc.health.v1 for tests. The lines `serving` and `notServing` on its input say what it answers. */
import { createInterface } from 'node:readline';
import { Server, ServerCredentials } from '@grpc/grpc-js';

const [port = '', service = ''] = process.argv.slice(2);
const STATUS: Record<string, number> = { serving: 1, notServing: 2 };
let status = 2;

const server = new Server();
const raw = (bytes: Buffer) => bytes;
server.addService(
  {
    check: {
      path: '/grpc.health.v1.Health/Check',
      requestStream: false,
      responseStream: false,
      requestSerialize: raw,
      requestDeserialize: raw,
      responseSerialize: raw,
      responseDeserialize: raw,
    },
  },
  {
    check(call: { request: Buffer }, done: (error: { code: number } | null, answer?: Buffer) => void) {
      // Field 1 of the request, a string: the name of the service.
      if (call.request.subarray(2).toString() !== service) done({ code: 5 });
      else done(null, Buffer.from([0x08, status]));
    },
  },
);
server.bindAsync(`0.0.0.0:${port}`, ServerCredentials.createInsecure(), (error) => {
  if (error !== null) throw error;
  process.stdout.write('listening\n');
});
createInterface({ input: process.stdin }).on('line', (line) => {
  status = STATUS[line] ?? status;
});
// Its parent has gone.
process.stdin.on('end', () => process.exit(0));
