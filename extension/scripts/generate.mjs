// Generates src/generated/ from the contracts in proto/: messages, and a client for grpc-js. Needs protoc (Debian:
// protobuf-compiler). What is there and newer than the contracts is kept.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const top = path.resolve(import.meta.dirname, '../..');
const out = path.join(top, 'extension/src/generated');
const stamp = path.join(out, '.stamp');
const folder = path.join(top, 'proto/kernelwright/v1');
const wanted = readdirSync(folder).filter((name) => name.endsWith('.proto'));
const newest = Math.max(
  ...readdirSync(folder).map((name) => statSync(path.join(folder, name)).mtimeMs),
  statSync(import.meta.filename).mtimeMs,
);
if (!existsSync(stamp) || statSync(stamp).mtimeMs < newest) {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const require = createRequire(import.meta.url);
  const plugin = path.join(path.dirname(require.resolve('ts-proto/package.json')), 'protoc-gen-ts_proto');
  const options = [
    'outputServices=grpc-js',
    'forceLong=number',
    'esModuleInterop=true',
    'oneof=unions',
    'env=node',
    'outputJsonMethods=false',
    'importSuffix=',
    'useMapType=false',
    'useExactTypes=false',
  ];
  // The plug-in is a script for whatever node is first on the PATH: that is the one which runs this.
  const env = { ...process.env, PATH: `${path.dirname(process.execPath)}:${process.env.PATH}` };
  execFileSync(
    'protoc',
    [
      `--plugin=protoc-gen-ts_proto=${plugin}`,
      `--ts_proto_out=${out}`,
      ...options.map((option) => `--ts_proto_opt=${option}`),
      `-I${path.join(top, 'proto')}`,
      ...wanted.map((name) => path.join(folder, name)),
    ],
    { stdio: 'inherit', env },
  );
  writeFileSync(stamp, '');
}
