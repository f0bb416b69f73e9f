import type { Plugin } from 'esbuild';

export const builtinsWithoutFacade: Plugin;
