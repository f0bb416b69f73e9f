/** Decisions about the node's certificates: what they must say, when they are renewed, and which request is ours. */
import { describe, expect, it } from 'vitest';
import { isDue } from '../../../src/machines/api/certificates/decide.ts';
import { requestedWith, signingRequest, submitProblem, verdictOf } from '../../../src/machines/api/certificates/signing.ts';
import {
  type CertificateFacts,
  clientTemplate,
  lacks,
  rotationDeadlineMs,
  SIGNERS,
  sameTemplate,
  servingTemplate,
} from '../../../src/machines/api/certificates/template.ts';
import type { KubeObject } from '../../../src/machines/kube/request.ts';
import { canonicalIp } from '../../../src/machines/text/addresses.ts';

const facts = (o: Partial<CertificateFacts> = {}): CertificateFacts => ({
  ...clientTemplate('n1'),
  fingerprint: 'a',
  notBeforeMs: 0,
  notAfterMs: 1_000,
  ...o,
});

describe('a template', () => {
  it('for serving takes names and addresses by their types, each once and sorted', () => {
    const addresses = [
      { type: 'Hostname', address: 'n1' },
      { type: 'Hostname', address: '192.0.2.9' },
      { type: 'InternalIP', address: '192.0.2.9' },
      { type: 'ExternalIP', address: '2001:DB8:0::1' },
      { type: 'InternalIP', address: 'not an address' },
      { type: 'InternalDNS', address: 'n1.internal' },
      { type: 'ExternalDNS', address: 'b.example' },
      { type: 'Shelf', address: '192.0.2.200' },
    ];
    expect(servingTemplate('n1', addresses, { dnsOnly: false })).toEqual({
      commonName: 'system:node:n1',
      organizations: ['system:nodes'],
      dnsNames: ['b.example', 'n1', 'n1.internal'],
      ips: ['192.0.2.9', '2001:db8::1'],
    });
  });
  it('for serving is there only with an address; a name alone does where the gate says so', () => {
    const named = [{ type: 'Hostname', address: 'n1' }];
    expect(servingTemplate('n1', [], { dnsOnly: true })).toBeNull();
    expect(servingTemplate('n1', named, { dnsOnly: false })).toBeNull();
    expect(servingTemplate('n1', named, { dnsOnly: true })?.dnsNames).toEqual(['n1']);
  });
  it.each([
    ['10.0.0.1', '10.0.0.1'],
    ['FE80::0:1', 'fe80::1'],
    ['::ffff:10.0.0.1', '::ffff:a00:1'],
    ['10.0.0.256', null],
    ['10.0.0', null],
    ['n1', null],
    ['::g', null],
    ['', null],
  ])('knows %s as the address %s', (text, ip) => expect(canonicalIp(text)).toBe(ip));
  it('is compared by contents, whatever else is with it', () => {
    expect(sameTemplate(clientTemplate('n1'), facts())).toBe(true);
    expect(sameTemplate(clientTemplate('n1'), clientTemplate('n2'))).toBe(false);
    expect(sameTemplate(null, clientTemplate('n1'))).toBe(false);
    expect(sameTemplate(null, null)).toBe(true);
  });
  it('is satisfied by a certificate that says more, and not by one that says less', () => {
    const wanted = { ...clientTemplate('n1'), dnsNames: ['n1'], ips: ['10.0.0.1'] };
    expect(lacks(facts({ dnsNames: ['n1', 'x'], ips: ['10.0.0.1'], organizations: ['a', 'system:nodes'] }), wanted)).toEqual([]);
    expect(lacks(facts({ commonName: 'x', organizations: [] }), wanted)).toEqual([
      'common name system:node:n1',
      'organization system:nodes',
      'name n1',
      'address 10.0.0.1',
    ]);
  });
});

describe('the time to renew', () => {
  it('is drawn between 70 and 90 % of the life', () => {
    const life = { notBeforeMs: 1_000, notAfterMs: 11_000 };
    expect(rotationDeadlineMs(life, 0)).toBe(8_000);
    expect(rotationDeadlineMs(life, 0.5)).toBe(9_000);
    expect(rotationDeadlineMs(life, 1)).toBe(10_000);
    expect(rotationDeadlineMs({ notBeforeMs: 5, notAfterMs: 4 }, 0.5)).toBe(5);
  });
  const base = {
    facts: facts(),
    rotate: true,
    renewNow: false,
    template: clientTemplate('n1'),
    deadlineMs: 800,
  };
  it.each([
    ['before its time', 500, {}, false],
    ['at its time', 800, {}, true],
    ['at its time, where it is not renewed', 800, { rotate: false }, false],
    ['at its end, where it is not renewed', 1_000, { rotate: false }, true],
    ['without one', 500, { facts: null }, true],
    ['without one and without a template', 500, { facts: null, template: null }, false],
    ['when told to', 500, { renewNow: true }, true],
    ['when it says too little', 500, { template: clientTemplate('n2') }, true],
    ['when it says too little, where it is not renewed', 500, { template: clientTemplate('n2'), rotate: false }, false],
  ])('%s', (_, wallMs, over, due) => expect(isDue({ ...base, ...over }, wallMs)).toBe(due));
});

describe('a certificate request object', () => {
  const signer = SIGNERS.client;
  const made = signingRequest({ pem: 'PEM', signer, name: 'a', version: 'v1' }) as KubeObject;
  it('is named or lets the server name it, and is recognised by what it asks for', () => {
    expect(made).toMatchObject({ metadata: { name: 'a' }, spec: { request: btoa('PEM'), signerName: signer.signerName } });
    expect(signingRequest({ pem: 'PEM', signer, name: null, version: 'v1beta1' })).toMatchObject({
      apiVersion: 'certificates.k8s.io/v1beta1',
      metadata: { generateName: 'csr-' },
    });
    expect(requestedWith(made, signer)).toBe('PEM');
    expect(requestedWith(made, SIGNERS.serving)).toBeNull();
    expect(requestedWith({ ...made, spec: { ...(made.spec as object), usages: ['client auth'] } }, signer)).toBeNull();
    expect(requestedWith({ ...made, spec: { ...(made.spec as object), request: '%' } }, signer)).toBeNull();
  });

  const csr = (status: object | undefined, uid = 'u'): object => ({
    metadata: { name: 'a', uid },
    ...(status === undefined ? {} : { status }),
  });
  const condition = (type: string, more: object = {}) => ({ conditions: [{ type, status: 'True', ...more }] });
  it.each([
    ['unanswered', csr(undefined), { kind: 'pending' }],
    ['approved and not signed', csr(condition('Approved')), { kind: 'pending' }],
    ['signed and not approved', csr({ certificate: btoa('C') }), { kind: 'pending' }],
    ['approved and signed', csr({ ...condition('Approved'), certificate: btoa('C') }), { kind: 'issued', pem: 'C' }],
    [
      'denied',
      csr(condition('Denied', { reason: 'R', message: 'm' })),
      { kind: 'refused', why: 'the certificate request a was denied (R: m)' },
    ],
    [
      'failed',
      csr({ ...condition('Failed'), certificate: btoa('C') }),
      { kind: 'refused', why: 'the certificate request a failed to be signed' },
    ],
    ['removed', undefined, { kind: 'gone', why: 'the certificate request a was removed before it was answered' }],
    [
      'replaced',
      csr({ ...condition('Approved'), certificate: btoa('C') }, 'v'),
      { kind: 'gone', why: expect.stringContaining('replaced') },
    ],
    [
      'answered with rubbish',
      csr({ ...condition('Approved'), certificate: '%%' }),
      { kind: 'refused', why: expect.stringContaining('not base64') },
    ],
  ])('%s', (_, object, verdict) => expect(verdictOf(object, { name: 'a', uid: 'u' })).toEqual(verdict));

  it('that is not taken says what is missing', () => {
    const failure = (code: number) => ({ code, reason: 'R', message: 'm', outcome: 'failed' as const });
    expect(submitProblem(failure(401), { bootstrapping: true })).toContain('--bootstrap-kubeconfig');
    expect(submitProblem(failure(401), { bootstrapping: false })).not.toContain('--bootstrap-kubeconfig');
    expect(submitProblem(failure(403), { bootstrapping: true })).toContain('the bootstrap user needs the right');
    expect(submitProblem({ ...failure(0), reason: 'ECONNREFUSED' }, { bootstrapping: true })).toContain('ECONNREFUSED: m');
  });
});
