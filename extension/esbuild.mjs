// Bundles the extension into dist/extension.js.  usage: node esbuild.mjs [--minify] [--watch]
import * as esbuild from 'esbuild';

const options = {
  entryPoints: ['src/vscode/extension.ts'],
  outfile: 'dist/extension.js',
  bundle: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  external: ['vscode'],
  // When the bundle began to load, for the time of activation in the log.
  banner: { js: 'const kernelwrightLoadStart = performance.now();' },
  sourcemap: !process.argv.includes('--minify'),
  minify: process.argv.includes('--minify'),
  logLevel: 'warning',
};
if (process.argv.includes('--watch')) {
  await (await esbuild.context(options)).watch();
} else {
  await esbuild.build(options);
}
