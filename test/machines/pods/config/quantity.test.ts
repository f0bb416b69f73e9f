/** Quantities and quality-of-service classes. */
import { describe, expect, it } from 'vitest';
import type { ResourceRequirements } from '../../../../src/machines/kube/podTable.ts';
import {
  addQuantities,
  canonicalQuantity,
  compareQuantity,
  parseQuantity,
  quantityToInteger,
  quantityToMilli,
} from '../../../../src/machines/kube/quantity.ts';
import { qosClass } from '../../../../src/machines/pod/resources/qos.ts';
import { container, pod } from '../fixtures.ts';

describe('quantities', () => {
  it.each([
    ['100m', 100],
    ['0.1', 100],
    ['2', 2000],
    ['1.0005', 1001],
    ['1e1', 10_000],
    ['1n', 1],
    [0.25, 250],
  ])('%s is %d thousandths, rounded up', (text, milli) => expect(quantityToMilli(text)).toBe(milli));

  it.each([
    ['64Mi', 67_108_864],
    ['1.5Gi', 1_610_612_736],
    ['1k', 1000],
    ['100m', 1],
    ['2E', 2e18],
    ['12E3', 12_000],
  ])('%s is %d units, rounded up', (text, units) => expect(quantityToInteger(text)).toBe(units));

  it.each(['', 'abc', '1.2.3', '1 Gi', '--1', '1KiB', '1e999'])('"%s" is no quantity', (text) =>
    expect(parseQuantity(text)).toBeUndefined(),
  );

  it.each([
    ['1000m', '1'],
    ['0.5', '500m'],
    ['1024Ki', '1Mi'],
    ['512', '512'],
    ['2000', '2k'],
    ['1.5Gi', '1536Mi'],
    ['500Mi', '500Mi'],
    ['0', '0'],
    ['1500m', '1500m'],
    ['1e3', '1e3'],
    [2, '2'],
  ])('%s is written %s', (text, canonical) => expect(canonicalQuantity(text)).toBe(canonical));

  it('adds and compares exactly', () => {
    expect(addQuantities(['100m', '0.9'])).toBe('1');
    expect(Math.sign(compareQuantity('1Gi', '1G'))).toBe(1);
    expect(compareQuantity('1', '1000m')).toBe(0);
  });
});

describe('QoS class', () => {
  const of = (...resources: ResourceRequirements[]) =>
    qosClass(pod({ containers: resources.map((r, i) => container(`c${i}`, { resources: r })) }));
  it('is BestEffort without, Guaranteed with equal, Burstable with other requests and limits', () => {
    const full = { cpu: '1', memory: '1Gi' };
    expect(of({}, { limits: { cpu: '0' } })).toBe('BestEffort');
    expect(of({ limits: full, requests: { cpu: '1000m', memory: '1024Mi' } })).toBe('Guaranteed');
    expect(of({ limits: full, requests: full }, {})).toBe('Burstable');
    expect(of({ limits: full, requests: { ...full, cpu: '500m' } })).toBe('Burstable');
    expect(of({ requests: { 'ephemeral-storage': '1Gi' } })).toBe('BestEffort');
  });
});
