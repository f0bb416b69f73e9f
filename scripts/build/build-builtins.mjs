/**
 * Node's own modules without their ES module facade, for bundles. To import one, Node reads every property of it, also those
 * that load more on first use: `import 'node:http'` loads undici for `http.WebSocket`. That costs 13 MiB and 75 ms.
 * `process.getBuiltinModule` gives the same object and reads nothing.
 */
import { builtinModules } from 'node:module';

const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;
const NAMESPACE = 'builtin';

/** A module that exports each property of a builtin, read only where a bundle uses it. */
function facadeOf(name) {
  const names = Object.keys(process.getBuiltinModule(name)).filter((key) => IDENTIFIER.test(key) && key !== 'default');
  return [
    `const builtin = process.getBuiltinModule(${JSON.stringify(name)});`,
    'const get = (key) => builtin[key];',
    'export default builtin;',
    ...names.map((key, i) => `const export${i} = /* @__PURE__ */ get(${JSON.stringify(key)}); export { export${i} as ${key} };`),
  ].join('\n');
}

export const builtinsWithoutFacade = {
  name: 'builtins-without-facade',
  setup(build) {
    build.onResolve({ filter: /^[a-z]/ }, ({ path, kind }) => {
      const name = path.startsWith('node:') ? path.slice('node:'.length) : path;
      if (kind !== 'import-statement' || !builtinModules.includes(name)) return undefined;
      return { path: `node:${name}`, namespace: NAMESPACE, sideEffects: false };
    });
    build.onLoad({ filter: /.*/, namespace: NAMESPACE }, ({ path }) => ({ contents: facadeOf(path), loader: 'js' }));
  },
};
