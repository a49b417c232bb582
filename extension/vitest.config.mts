// Unit tests of what needs no editor: src/common and src/node.
import { defineConfig } from 'vitest/config';

export default defineConfig({ test: { root: import.meta.dirname, include: ['src/**/*.test.ts'] } });
