/** The thread that decodes documents: it says when it is ready; then one message is one document, its answer what came of it. */
import { parentPort } from 'node:worker_threads';
import { decodeDocument } from '../../../actors/pods/sources/document.ts';
import { createEntropy } from '../clock.ts';
import type { Question, Told } from './documents.ts';

const entropy = createEntropy();
// The YAML parser makes an error object for each of hundreds of faults, of which one message is used.
Error.stackTraceLimit = 0;
parentPort?.on('message', ({ bytes, source }: Question) => {
  parentPort?.postMessage({ decoded: decodeDocument(bytes, source, entropy) } satisfies Told);
});
parentPort?.postMessage({ decoded: null } satisfies Told);
