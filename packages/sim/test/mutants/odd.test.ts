/** The other mutants: see even.test.ts. */
import { describe } from 'vitest';
import { mutantsFrom } from './suite.ts';

describe('the checkers notice', () => mutantsFrom(1));
