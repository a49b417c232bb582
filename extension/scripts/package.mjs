// Makes kernelwright-VERSION-linux-x64.vsix: the extension with daemon, worker, chip data and documentation inside.
// usage: node scripts/package.mjs [--binary FILE] [--output FILE]
//   --binary   a binary to put in; else one is built in build-package/, which looks for its libraries beside itself
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import yazl from 'yazl';
import { librariesOf, looksBesideItself, tooNew } from './binary.mjs';

const here = path.resolve(import.meta.dirname, '..');
const top = path.resolve(here, '..');
const manifest = JSON.parse(readFileSync(path.join(here, 'package.json'), 'utf8'));
const { values } = parseArgs({ options: { binary: { type: 'string' }, output: { type: 'string' } } });
const run = (command, ...args) => execFileSync(command, args, { cwd: here, stdio: ['ignore', 'inherit', 'inherit'] });

function build() {
  const folder = path.join(top, 'build-package');
  const options = [
    '-DCMAKE_BUILD_TYPE=RelWithDebInfo',
    `-DCMAKE_PROJECT_INCLUDE=${path.join(here, 'scripts/shipped.cmake')}`,
  ];
  mkdirSync(folder, { recursive: true });
  execFileSync('cmake', ['-S', top, '-B', folder, '-G', 'Ninja', ...options], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  execFileSync('ninja', ['-C', folder, '--quiet', 'kernelwright'], { stdio: ['ignore', 'inherit', 'inherit'] });
  return path.join(folder, 'kernelwright');
}

const binary = values.binary ? path.resolve(values.binary) : build();
const libraries = librariesOf(binary);
const problems = [binary, ...libraries.map(([, file]) => file)].flatMap(tooNew);
if (libraries.length > 0 && !looksBesideItself(binary))
  problems.push(`${binary} does not look for its libraries beside itself`);
if (problems.length > 0) {
  console.error(`cannot be shipped:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
  process.exit(1);
}

run('npm', 'run', '--silent', 'generate');
run(process.execPath, 'esbuild.mjs', '--minify');

// Everything is collected in a folder first, in the layout that the binary expects: bin/ beside share/kernelwright/.
const stage = mkdtempSync(path.join(tmpdir(), 'kernelwright-vsix-'));
const put = (from, to) =>
  cpSync(from, path.join(stage, to), {
    recursive: true,
    filter: (source) =>
      !/(^|\/)(__pycache__|tests|\.mypy_cache|\.ruff_cache|\.pytest_cache)$|\.pyc$|\.map$/.test(source),
  });
try {
  for (const name of ['package.json', 'README.md', 'dist/extension.js', 'media', 'walkthrough'])
    put(path.join(here, name), name);
  for (const name of ['LICENSE', 'NOTICE', 'docs/diagnostics', 'docs/check.md', 'examples/matmul_blocks128.py'])
    put(path.join(top, name), name);
  put(path.join(top, 'agents'), 'share/kernelwright/agents');
  const python = [path.join(path.dirname(binary), 'python'), path.join(top, 'build/python')].find(existsSync);
  if (!python) throw new Error('the Python contracts are missing: run scripts/build');
  put(python, 'share/kernelwright/python');
  mkdirSync(path.join(stage, 'bin'));
  execFileSync('strip', ['-o', path.join(stage, 'bin/kernelwright'), binary]);
  for (const [name, file] of libraries) put(file, `lib/${name}`);

  const output = path.resolve(values.output ?? path.join(here, `${manifest.name}-${manifest.version}-linux-x64.vsix`));
  rmSync(output, { force: true });
  await write(output);
  console.log(`${output}: ${(statSync(output).size / 2 ** 20).toFixed(1)} MiB`);
} finally {
  rmSync(stage, { recursive: true, force: true });
}

async function write(output) {
  const zip = new yazl.ZipFile();
  // One date for all, so that the same tree gives the same file.
  const mtime = new Date('2000-01-01T00:00:00Z');
  zip.addBuffer(Buffer.from(vsixManifest()), 'extension.vsixmanifest', { mtime });
  zip.addBuffer(Buffer.from(contentTypes()), '[Content_Types].xml', { mtime });
  const walk = (folder) =>
    readdirSync(folder, { withFileTypes: true })
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .flatMap((entry) => {
        const full = path.join(folder, entry.name);
        return entry.isDirectory() ? walk(full) : [full];
      });
  for (const file of walk(stage)) {
    const name = path.relative(stage, file);
    zip.addFile(file, `extension/${name}`, { mtime, mode: /^(bin|lib)\//.test(name) ? 0o100755 : 0o100644 });
  }
  zip.end();
  await pipeline(zip.outputStream, createWriteStream(output));
}

function contentTypes() {
  const types = {
    js: 'application/javascript',
    json: 'application/json',
    md: 'text/markdown',
    png: 'image/png',
    svg: 'image/svg+xml',
    py: 'text/x-python',
    txt: 'text/plain',
    pyi: 'text/x-python',
    toml: 'text/plain',
    vsixmanifest: 'text/xml',
  };
  const rows = Object.entries(types).map(
    ([extension, type]) => `<Default Extension=".${extension}" ContentType="${type}"/>`,
  );
  return `<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">${rows.join('')}</Types>
`;
}

function vsixManifest() {
  const { name, version, publisher, displayName, description, engines, categories, keywords, extensionKind } = manifest;
  const text = (value) => value.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const property = (id, value) => `<Property Id="Microsoft.VisualStudio.${id}" Value="${text(value)}"/>`;
  const asset = (type, file) =>
    `<Asset Type="Microsoft.VisualStudio.${type}" Path="extension/${file}" Addressable="true"/>`;
  return `<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id="${name}" Version="${version}" Publisher="${publisher}" TargetPlatform="linux-x64"/>
    <DisplayName>${text(displayName)}</DisplayName>
    <Description xml:space="preserve">${text(description)}</Description>
    <Tags>${text(keywords.join(','))}</Tags>
    <Categories>${text(categories.join(','))}</Categories>
    <Properties>
      ${property('Code.Engine', engines.vscode)}
      ${property('Code.ExtensionKind', extensionKind.join(','))}
      ${property('Code.ExecutesCode', 'true')}
    </Properties>
    <License>extension/LICENSE</License>
    <Icon>extension/media/icon.png</Icon>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
    ${asset('Code.Manifest', 'package.json')}
    ${asset('Services.Content.Details', 'README.md')}
    ${asset('Services.Content.License', 'LICENSE')}
    ${asset('Services.Icons.Default', 'media/icon.png')}
  </Assets>
</PackageManifest>
`;
}
