/**
 * Programs that know credentials for registries, and the registry that takes what they give. One is asked about every image,
 * one about one of them. A password holds for a registry, an image or nothing that is there; some the registry refuses.
 */

import { type CredentialProvider, repositoryOf } from '@actorlet/kubelet/machines/runtime/imagePuller/credentialProviders.ts';
import type { Clock, CredentialPrograms } from '@actorlet/kubelet/ports/ports.ts';
import { SECRET } from '../identity/certificates.ts';
import type { SimRng } from '../rng.ts';
import { type FaultMode, type HelperCall, working } from './faultMode.ts';

export interface ProgramTuning {
  /** Longest ordinary time of a program. */
  latencyMs: number;
  /** Whether programs are told of the pod's service account. */
  tokens: 'none' | 'ServiceAccount' | 'Token';
}

/** A program as it was run. */
interface ProgramRun {
  provider: string;
  image: string;
  input: string;
  timeoutMs: number;
  /** Another program was asked the same by the same daemon, and had not answered. */
  twice: boolean;
  over: boolean;
}
/** A password that a program gave. */
interface GivenPassword {
  provider: string;
  image: string;
  /** The part of a registry that it is for. */
  key: string;
  /** The registry takes it. */
  good: boolean;
}

export interface SimPrograms {
  faultMode: FaultMode;
  readonly runs: readonly ProgramRun[];
  /** By password. */
  readonly given: ReadonlyMap<string, GivenPassword>;
  connect(o: { clock: Clock; power: { on: boolean } }): CredentialPrograms;
}

/** The registry of images without one in their names. */
const REGISTRY = 'docker.io';
const AUDIENCE = 'registry.sim';
/** The one image that the second program knows. */
const ONE_IMAGE = `${REGISTRY}/library/app-1`;
/** By name, which images a program is asked about. */
export const ASKED_ABOUT: Readonly<Record<string, string>> = { all: REGISTRY, one: ONE_IMAGE };
const SLOW_MS = 9_000;
/** How often an answer has a password that the registry refuses, and one for nothing that is there. */
const REFUSED = 0.15;
const ELSEWHERE = 0.2;

function providersOf(tuning: ProgramTuning): CredentialProvider[] {
  const apiVersion = 'credentialprovider.kubelet.k8s.io/v1';
  const ordinary = { defaultCacheMs: 8_000, apiVersion, args: [], env: [] };
  const told = {
    audience: AUDIENCE,
    requireServiceAccount: false,
    requiredAnnotations: [],
    optionalAnnotations: [],
  };
  return [
    { ...ordinary, name: 'all', matchImages: [REGISTRY] },
    {
      ...ordinary,
      name: 'one',
      matchImages: [ONE_IMAGE],
      ...(tuning.tokens === 'none' ? {} : { tokenAttributes: { ...told, cacheType: tuning.tokens } }),
    },
  ];
}

export function simPrograms(tuning: ProgramTuning, rng: SimRng): SimPrograms {
  const runs: ProgramRun[] = [];
  const given = new Map<string, GivenPassword>();
  const providers = providersOf(tuning);
  const passwordFor = (run: ProgramRun, key: string, good: boolean): string => {
    const password = `${SECRET}of-program-${given.size}`;
    given.set(password, { provider: run.provider, image: run.image, key, good });
    return password;
  };
  const answer = (provider: CredentialProvider, run: ProgramRun): string => {
    const at = repositoryOf(run.image);
    const good = !rng.chance(REFUSED);
    const key = rng.chance(ELSEWHERE) ? 'elsewhere.sim' : rng.chance(0.5) ? REGISTRY : (at?.repository ?? REGISTRY);
    const cacheDuration = rng.pick([undefined, '0s', '3s', '20s'] as const);
    return JSON.stringify({
      kind: 'CredentialProviderResponse',
      apiVersion: provider.apiVersion,
      cacheKeyType: rng.pick(['Image', 'Registry', 'Global'] as const),
      ...(cacheDuration === undefined ? {} : { cacheDuration }),
      auth: { [key]: { username: provider.name, password: passwordFor(run, key, good) } },
    });
  };
  /** Each with what must not be told. */
  const garbage = (provider: CredentialProvider, run: ProgramRun): string => {
    const password = passwordFor(run, 'nothing', false);
    const whole = { kind: 'CredentialProviderResponse', apiVersion: provider.apiVersion, cacheKeyType: 'Image' };
    const texts = [
      `password: ${password}`,
      JSON.stringify({ ...whole, apiVersion: 'v0', auth: { [REGISTRY]: { username: 'x', password } } }),
      JSON.stringify({ ...whole, cacheKeyType: password }),
      JSON.stringify({ ...whole, cacheDuration: password }),
      JSON.stringify({ ...whole, auth: { [REGISTRY]: { username: password } } }),
      JSON.stringify({ ...whole, auth: password }),
      '',
    ];
    return rng.pick(texts) ?? '';
  };
  const self: SimPrograms = {
    faultMode: 'well',
    runs,
    given,
    connect: ({ clock, power }) => {
      const mine: ProgramRun[] = [];
      return { providers, run };
      async function run(...[provider, input, { timeoutMs, signal }]: Parameters<CredentialPrograms['run']>): Promise<string> {
        signal.throwIfAborted();
        const { image } = JSON.parse(input) as { image: string };
        const twice = mine.some((r) => !r.over && r.provider === provider.name && r.input === input);
        const asked: ProgramRun = { provider: provider.name, image, input, timeoutMs, twice, over: false };
        runs.push(asked);
        mine.push(asked);
        const call: HelperCall = { clock, power, timeoutMs, signal };
        const { faultMode } = self;
        try {
          await working(faultMode === 'hangs' ? null : rng.between(0, faultMode === 'slow' ? SLOW_MS : tuning.latencyMs), call);
        } finally {
          asked.over = true;
        }
        if (faultMode === 'fails') throw new Error('exit status 1');
        return faultMode === 'garbage' ? garbage(provider, asked) : answer(provider, asked);
      }
    },
  };
  return self;
}
