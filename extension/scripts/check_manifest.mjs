// What a linter does not see of package.json: only finalised API, and contributions that the code knows.
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';

const here = path.resolve(import.meta.dirname, '..');
const manifest = JSON.parse(readFileSync(path.join(here, 'package.json'), 'utf8'));
const read = (folder) =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const full = path.join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === 'generated' ? [] : read(full);
    return entry.name.endsWith('.ts') && !entry.name.endsWith('.test.ts') ? [readFileSync(full, 'utf8')] : [];
  });
const source = read(path.join(here, 'src')).join('\n');
const problems = [];
const { contributes } = manifest;

// The types of the oldest editor hold no newer and no proposed call.
if (manifest.enabledApiProposals) problems.push('enabledApiProposals: only finalised API is used');
if (manifest.engines.vscode !== `^${manifest.devDependencies['@types/vscode']}`) {
  problems.push('@types/vscode must be the version of engines.vscode');
}

const commands = contributes.commands.map(({ command }) => command);
for (const command of commands) {
  if (!source.includes(`command('${command}'`)) problems.push(`${command} is contributed and not registered`);
}
const used = new Set(
  JSON.stringify(contributes)
    .match(/"command": ?"(kernelwright[.\w]+)"/g)
    ?.map((text) => text.split('"')[3]),
);
for (const command of used)
  if (!commands.includes(command)) problems.push(`${command} is used in a menu or key and not contributed`);
for (const [, command] of source.matchAll(/app\.command\('([.\w]+)'/g)) {
  if (!commands.includes(command)) problems.push(`${command} is registered and not contributed: nobody can find it`);
}

const settings = Object.keys(contributes.configuration.properties);
for (const [, , name] of source.matchAll(/setting(<[^>]*>)?\('([.\w]+)'/g)) {
  if (!settings.includes(`kernelwright.${name}`)) problems.push(`kernelwright.${name} is read and not contributed`);
}
for (const name of settings) {
  if (!source.includes(`'${name.slice('kernelwright.'.length)}'`)) problems.push(`${name} is contributed and not read`);
}
const views = Object.values(contributes.views)
  .flat()
  .map(({ id }) => id);
for (const view of views) if (!source.includes(`'${view}'`)) problems.push(`the view ${view} has no data`);
for (const color of contributes.colors) {
  for (const theme of ['dark', 'light', 'highContrast', 'highContrastLight']) {
    if (!color.defaults[theme]) problems.push(`${color.id} has no colour for ${theme}`);
  }
}
for (const step of contributes.walkthroughs.flatMap((walkthrough) => walkthrough.steps))
  readFileSync(path.join(here, step.media.markdown));

if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exit(1);
}
