/** `/record` of the admin socket: what is recorded now (GET), begin (POST) and end (DELETE). */
import { jsonOf, recordOf } from '../../../machines/shape/lenient.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { InputRecorder, RecordingWanted } from '../../../ports/machine/inputRecorder.ts';
import type { HttpReply, HttpRequest } from '../../../ports/sockets/net.ts';
import { isGet, json, METHOD_NOT_ALLOWED, text } from '../answers/answers.ts';

export async function recordRoute(recorder: InputRecorder | undefined, req: HttpRequest): Promise<HttpReply> {
  if (recorder === undefined) return text('501: this node cannot be recorded\n', 501);
  if (isGet(req)) return json({ recorded: recorder.now() });
  if (req.method !== 'POST' && req.method !== 'DELETE') return METHOD_NOT_ALLOWED;
  const asked = req.method === 'POST' ? parsed(req.body) : null;
  if (req.method === 'POST' && asked === null)
    return text('400: expected JSON {folder: /AN/ABSOLUTE/PATH, maxMib: at least 1, isPrivate?: true or false}\n', 400);
  try {
    if (asked === null) await recorder.stop();
    else await recorder.start(asked);
    return json({ recorded: recorder.now() });
  } catch (error) {
    return text(`409: ${messageOf(error)}\n`, 409);
  }
}

function parsed(body: Uint8Array): RecordingWanted | null {
  const { folder, maxMib, isPrivate = false } = recordOf(jsonOf(body));
  if (typeof folder !== 'string' || !folder.startsWith('/') || folder.includes('\0')) return null;
  if (typeof isPrivate !== 'boolean') return null;
  return Number.isSafeInteger(maxMib) && (maxMib as number) >= 1 ? { folder, maxMib: maxMib as number, isPrivate } : null;
}
