/** Keys of pods' certificates, and the empty PKCS #10 request that proves each. Imported only when one is made. */
import { createPublicKey, generateKeyPair, type KeyObject, sign } from 'node:crypto';
import { promisify } from 'node:util';
import { Attributes, CertificationRequest, CertificationRequestInfo } from '@peculiar/asn1-csr';
import { AsnConvert } from '@peculiar/asn1-schema';
import { AlgorithmIdentifier, Name, SubjectPublicKeyInfo } from '@peculiar/asn1-x509';
import { AtOnce } from '../../../ports/turns.ts';

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
  algorithm: new AlgorithmIdentifier({ algorithm: '1.2.840.113549.1.1.11', parameters: DER_NULL }),
  digest: 'sha256',
});
const ecdsa = (namedCurve: string, digest: 'sha256' | 'sha384' | 'sha512', algorithm: string): KeyKind => ({
  make: async () => (await generate('ec', { namedCurve })).privateKey,
  algorithm: new AlgorithmIdentifier({ algorithm }),
  digest,
});
/** By `keyType` of a projected volume. */
const KINDS = new Map<string, KeyKind>([
  ['RSA3072', rsa(3072)],
  ['RSA4096', rsa(4096)],
  ['ECDSAP256', ecdsa('P-256', 'sha256', '1.2.840.10045.4.3.2')],
  ['ECDSAP384', ecdsa('P-384', 'sha384', '1.2.840.10045.4.3.3')],
  ['ECDSAP521', ecdsa('P-521', 'sha512', '1.2.840.10045.4.3.4')],
  [
    'ED25519',
    {
      make: async () => (await generate('ed25519')).privateKey,
      algorithm: new AlgorithmIdentifier({ algorithm: '1.3.101.112' }),
      digest: null,
    },
  ],
]);

export async function podKey(keyType: string): Promise<{ key: string; stub: string }> {
  const kind = KINDS.get(keyType);
  if (kind === undefined) throw new Error(`unknown key type ${JSON.stringify(keyType)}`);
  const key = await kind.make();
  const info = new CertificationRequestInfo({
    version: 0,
    subject: new Name([]),
    subjectPKInfo: AsnConvert.parse(createPublicKey(key).export({ type: 'spki', format: 'der' }), SubjectPublicKeyInfo),
    attributes: new Attributes([]),
  });
  const request = new CertificationRequest({
    certificationRequestInfo: info,
    signatureAlgorithm: kind.algorithm,
    signature: new Uint8Array(sign(kind.digest, Buffer.from(AsnConvert.serialize(info)), key)).buffer,
  });
  return {
    key: String(key.export({ type: 'pkcs8', format: 'pem' })),
    stub: Buffer.from(AsnConvert.serialize(request)).toString('base64'),
  };
}
