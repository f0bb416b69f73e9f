/** Calls of the image service that are followed one by one: what each is about, and which secrets it carries. Pure. */
import type { PeerCall } from '../../pod/peers/peers.ts';
import { isRecord } from '../../shape/conform.ts';
import type { CriMethod } from '../../wire/criCalls.ts';

const PEER = 'image service';

/** Null: a call that is not followed. */
export function imageCall(method: CriMethod, request: unknown): { of: PeerCall; secrets: readonly string[] } | null {
  const asked = isRecord(request) ? request : {};
  switch (method) {
    case 'ListImages':
    case 'ImageFsInfo':
      return { of: { peer: PEER, name: '', call: method }, secrets: [] };
    case 'ImageStatus':
    case 'RemoveImage':
    case 'PullImage': {
      const image = textAt(asked.image, 'image');
      const secrets = isRecord(asked.auth) ? SECRET_FIELDS.map((field) => textAt(asked.auth, field)) : [];
      const sandbox = isRecord(asked.sandboxConfig) ? asked.sandboxConfig.metadata : undefined;
      const uid = textAt(sandbox, 'uid');
      return { of: { peer: PEER, name: image, call: method, about: image, ...(uid === '' ? {} : { uid }) }, secrets };
    }
    default:
      return null;
  }
}
const SECRET_FIELDS = ['username', 'password', 'auth', 'identityToken', 'registryToken'] as const;

function textAt(value: unknown, field: string): string {
  const text = isRecord(value) ? value[field] : undefined;
  return typeof text === 'string' ? text : '';
}
