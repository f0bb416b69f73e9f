/**
 * Whether two pieces of plain data (parsed JSON or YAML) say the same, whatever order their fields were written in: what
 * `canonicalJson` of both would tell, without writing either. An absent field equals an undefined one; at the top and in
 * lists, where JSON has no other word for it, undefined equals null.
 */
export function sameData(a: unknown, b: unknown): boolean {
  const [x, y] = [a ?? null, b ?? null];
  if (x === y) return true;
  if (typeof x !== 'object' || typeof y !== 'object' || x === null || y === null) return false;
  if (Array.isArray(x) || Array.isArray(y)) {
    return Array.isArray(x) && Array.isArray(y) && x.length === y.length && x.every((item, i) => sameData(item, y[i]));
  }
  return sameFields(x as Readonly<Record<string, unknown>>, y as Readonly<Record<string, unknown>>);
}

function sameFields(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  let fields = 0;
  for (const key of Object.keys(a)) {
    const value = a[key];
    if (value === undefined) continue;
    fields += 1;
    // A field that is null is there; one that is absent is not.
    if (!Object.hasOwn(b, key) || b[key] === undefined || !sameData(value, b[key])) return false;
  }
  for (const key of Object.keys(b)) if (b[key] !== undefined) fields -= 1;
  return fields === 0;
}
