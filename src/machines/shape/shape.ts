/**
 * Shapes of files that people write (manifests, KubeletConfiguration, scenarios): one table says which fields there are.
 * A table gives the TypeScript type (`Of`), is what a decoder walks, and becomes a JSON Schema for editors
 * (`scripts/schemas`). Decoders keep their own words for what is wrong. Plain data, so it costs the daemon little.
 */

/** The TypeScript type of a value; exists at compile time only. */
declare const TYPE: unique symbol;
export interface Typed<T> {
  readonly [TYPE]: T;
}
/** What a value of this shape is once it is decoded. */
export type Of<S> = S extends Typed<infer T> ? T : unknown;

/** Facts of a field. */
interface Facts {
  /** For people; editors show it. */
  readonly about?: string;
  /** The file must have it. */
  readonly required?: true;
  /** The file may leave it out; decoded it is always there. */
  readonly filled?: true;
  /** Where the file leaves it out. */
  readonly absent?: unknown;
  /** Its decoded name, where that differs: `delay` becomes `delayMs`. */
  readonly as?: string;
  /** A pointer in the Go type: explicit zero, false and '' are kept. Else they mean "unset". */
  readonly pointer?: true;
  /** Null means something else than absent. */
  readonly nullable?: true;
  /** Written even when empty. */
  readonly always?: true;
  /** A rule refuses numbers outside. */
  readonly within?: readonly [min: number, max: number];
}

export type Shape = Facts &
  (
    | { readonly t: 'any' | 'boolean' | 'intOrString' }
    /** A Kubernetes quantity, kept as written. */
    | { readonly t: 'quantity' }
    /** A Kubernetes quantity, decoded to whole bytes. */
    | { readonly t: 'bytes' }
    /** Go duration text, or a number of nanoseconds, decoded to ms. */
    | { readonly t: 'durationOrNs' }
    /** `words`: these values make sense. Decoders of text that is checked later do not look at them. */
    | { readonly t: 'string'; readonly words?: readonly string[]; readonly pattern?: string }
    | { readonly t: 'integer' | 'number'; readonly min: number; readonly max: number }
    /** A number, or one of the names of some. */
    | { readonly t: 'namedNumber'; readonly names: Readonly<Record<string, number>>; readonly min: number; readonly max: number }
    /** Go duration text, decoded to ms. */
    | { readonly t: 'duration'; readonly minMs?: number; readonly maxMs?: number }
    | { readonly t: 'list'; readonly of: Shape }
    /** One value or a list of them, decoded to a list. */
    | { readonly t: 'oneOrMore'; readonly of: Shape }
    /** `keys`: the only ones that make sense, where they are known. */
    | { readonly t: 'map'; readonly of: Shape; readonly keys?: readonly string[] }
    | { readonly t: 'object'; readonly fields: Fields }
  );
export type Fields = Readonly<Record<string, Shape>>;

type TypedShape = Shape & Typed<unknown>;
type Plain<T> = Shape & Typed<T>;

/** The decoded object: renamed fields under their decoded names, what may be absent optional. */
export type ObjectOf<F> = Flat<
  { -readonly [K in keyof F as F[K] extends Present ? NameOf<F[K], K> : never]: Of<F[K]> } & {
    -readonly [K in keyof F as F[K] extends Present ? never : NameOf<F[K], K>]?: Of<F[K]>;
  }
>;
type Present = { readonly required: true } | { readonly filled: true };
type NameOf<S, K> = S extends { readonly as: infer A extends string } ? A : K;
type Flat<T> = { [K in keyof T]: T[K] };

// The type is known to the compiler alone, so each of these builders says it with a cast.
function shape<T>(s: Shape): Plain<T> {
  return s as Plain<T>;
}

export const any = shape<unknown>({ t: 'any' });
export const bool = shape<boolean>({ t: 'boolean' });
export const string = shape<string>({ t: 'string' });
export const quantity = shape<string | number>({ t: 'quantity' });
export const bytes = shape<number>({ t: 'bytes' });
export const intOrString = shape<number | string>({ t: 'intOrString' });

/** A string out of this list. */
export function words<const W extends string>(...list: readonly W[]): Plain<W> {
  return shape({ t: 'string', words: list });
}
/** Any text, of which these make sense: a rule of its own refuses the others, in its own words. */
export function text(...list: readonly string[]): Plain<string> {
  return shape({ t: 'string', words: list });
}
/** Text of a form that editors can check. */
export function matching(pattern: string): Plain<string> {
  return shape({ t: 'string', pattern });
}
/** Whole numbers beyond 2^53 cannot be held exactly; no field has a use for them. */
export function integer(min: number = Number.MIN_SAFE_INTEGER, max: number = Number.MAX_SAFE_INTEGER): Plain<number> {
  return shape({ t: 'integer', min, max });
}
export function number(min: number, max: number): Plain<number> {
  return shape({ t: 'number', min, max });
}
export function namedNumber(names: Readonly<Record<string, number>>, min: number, max: number): Plain<number> {
  return shape({ t: 'namedNumber', names, min, max });
}
export function duration(limits: { minMs?: number; maxMs?: number } = {}): Plain<number> {
  return shape({ t: 'duration', ...limits });
}
export const durationOrNs = shape<number>({ t: 'durationOrNs' });

export function list<S extends TypedShape>(of: S): Plain<Of<S>[]> {
  return shape({ t: 'list', of });
}
/** A list that nobody changes once it is decoded. */
export function readonlyList<S extends TypedShape>(of: S): Plain<readonly Of<S>[]> {
  return shape({ t: 'list', of });
}
export function oneOrMore<S extends TypedShape>(of: S): Plain<readonly Of<S>[]> {
  return shape({ t: 'oneOrMore', of });
}
export function map<S extends TypedShape>(of: S): Plain<Record<string, Of<S>>> {
  return shape({ t: 'map', of });
}
export function readonlyMap<S extends TypedShape>(of: S): Plain<Readonly<Record<string, Of<S>>>> {
  return shape({ t: 'map', of });
}

/** A map that makes sense with these keys only; a rule of its own refuses the others. */
export function keyed<S extends TypedShape>(keys: readonly string[], s: S): S {
  return { ...s, keys };
}

/** The shape of a type that is declared by hand. */
export function declared<T>(s: Shape): Plain<T> {
  return shape(s);
}

/** An object, with what the compiler knows of its fields. */
export type ObjectShape<F> = { readonly t: 'object'; readonly fields: F } & Typed<ObjectOf<F>>;
export function object<const F extends Readonly<Record<string, TypedShape>>>(fields: F): ObjectShape<F> {
  return { t: 'object', fields } as unknown as ObjectShape<F>;
}

export function about<S extends TypedShape>(text: string, s: S): S {
  return { ...s, about: text };
}
/** The file must have it. */
export function required<S extends TypedShape>(s: S): S & { readonly required: true } {
  return { ...s, required: true };
}
/** The file must have it. Its type stays as it is: what this node makes itself may lack it. */
export function demanded<S extends TypedShape>(s: S): S {
  return { ...s, required: true };
}
/** The file may leave it out; then it is `absent`, or what the decoder makes of it. */
export function filled<S extends TypedShape>(s: S, absent?: Of<S>): S & { readonly filled: true; readonly absent?: unknown } {
  return absent === undefined ? { ...s, filled: true } : { ...s, filled: true, absent };
}
/** A number that a rule refuses outside of these. */
export function within<S extends TypedShape>(min: number, max: number, s: S): S {
  return { ...s, within: [min, max] };
}
export function named<S extends TypedShape, const A extends string>(as: A, s: S): S & { readonly as: A } {
  return { ...s, as };
}
/** Null where it is unset, which has a meaning of its own. */
export function nullable<S extends TypedShape>(s: S): Plain<Of<S> | null> {
  return shape({ ...s, nullable: true });
}
