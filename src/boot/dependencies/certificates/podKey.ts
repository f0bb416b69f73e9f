/** Keys of pods' certificates, and the empty PKCS #10 request that proves each. Imported only when one is made. */
import { generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { AsnConvert } from '@peculiar/asn1-schema';
import { AlgorithmIdentifier, Name } from '@peculiar/asn1-x509';
import { AtOnce } from '../../../ports/turns.ts';
import { signedRequest } from './request.ts';
import { OID } from './x509.ts';

const generate = promisify(generateKeyPair);
const DER_NULL = new Uint8Array([5, 0]).buffer;

interface KeyKind {
  make(): Promise<KeyObject>;
  /** Algorithm of the signature. */
  algorithm: AlgorithmIdentifier;
  /** Null: the key's own. */
  digest: 'sha256' | 'sha384' | 'sha512' | null;
}
/** A key takes seconds of one of four threads, and all calls of files need those. */
const rsaTurns = new AtOnce(1);
const rsa = (modulusLength: number): KeyKind => ({
  make: () => rsaTurns.run('', async () => (await generate('rsa', { modulusLength })).privateKey),
  algorithm: new AlgorithmIdentifier({ algorithm: OID.sha256WithRSA, parameters: DER_NULL }),
  digest: 'sha256',
});
const ecdsa = (namedCurve: string, digest: 'sha256' | 'sha384' | 'sha512', algorithm: string): KeyKind => ({
  make: async () => (await generate('ec', { namedCurve })).privateKey,
  algorithm: new AlgorithmIdentifier({ algorithm }),
  digest,
});
const ed25519: KeyKind = {
  make: async () => (await generate('ed25519')).privateKey,
  algorithm: new AlgorithmIdentifier({ algorithm: '1.3.101.112' }),
  digest: null,
};
/** By `keyType` of a projected volume. */
const KINDS = new Map<string, KeyKind>([
  ['RSA3072', rsa(3072)],
  ['RSA4096', rsa(4096)],
  ['ECDSAP256', ecdsa('P-256', 'sha256', OID.ecdsaWithSha256)],
  ['ECDSAP384', ecdsa('P-384', 'sha384', '1.2.840.10045.4.3.3')],
  ['ECDSAP521', ecdsa('P-521', 'sha512', '1.2.840.10045.4.3.4')],
  ['ED25519', ed25519],
]);

export async function podKey(keyType: string): Promise<{ key: string; stub: string }> {
  const kind = KINDS.get(keyType);
  if (kind === undefined) throw new Error(`unknown key type ${JSON.stringify(keyType)}`);
  const key = await kind.make();
  const request = signedRequest(key, { ...kind, subject: new Name([]), attributes: [] });
  return {
    key: String(key.export({ type: 'pkcs8', format: 'pem' })),
    stub: Buffer.from(AsnConvert.serialize(request)).toString('base64'),
  };
}
