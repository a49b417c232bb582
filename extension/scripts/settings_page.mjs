// Writes docs/editor-settings.md from package.json, so that the page and the settings cannot differ.
// usage: node scripts/settings_page.mjs [--check]
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const here = path.resolve(import.meta.dirname, '..');
const page = path.join(here, '../docs/editor-settings.md');
const { contributes } = JSON.parse(readFileSync(path.join(here, 'package.json'), 'utf8'));
const settings = Object.entries(contributes.configuration.properties).sort((a, b) => a[1].order - b[1].order);
if (settings.length > 25) throw new Error(`${settings.length} settings, at most 25 are wanted`);

const cell = (text) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
const values = (setting) => {
  const of = setting.items ?? setting;
  if (of.enum)
    return of.enum
      .map((value, i) => `\`${value}\`${of.enumDescriptions ? ` (${of.enumDescriptions[i]})` : ''}`)
      .join(', ');
  return setting.type;
};
const rows = settings.map(
  ([name, setting]) =>
    `| \`${name}\` | ${cell(setting.markdownDescription)} | ${cell(values(setting))} | \`${JSON.stringify(setting.default)}\` |`,
);
const commands = contributes.commands.map(({ command, title }) => {
  const key = contributes.keybindings.find((binding) => binding.command === command)?.key;
  return `| ${cell(title)} | \`${command}\` | ${key ? `\`${key}\`` : ''} |`;
});
const text = `# Settings and commands of the VS Code extension

Made from extension/package.json by extension/scripts/settings_page.mjs.

## Settings
| setting | what | values | default |
|---|---|---|---|
${rows.join('\n')}

## Commands
| title | command | key |
|---|---|---|
${commands.join('\n')}
`;
if (process.argv.includes('--check')) {
  let now = '';
  try {
    now = readFileSync(page, 'utf8');
  } catch {
    /* missing is different */
  }
  if (now !== text) {
    console.error(
      'docs/editor-settings.md is not what package.json says: run node extension/scripts/settings_page.mjs',
    );
    process.exit(1);
  }
} else {
  writeFileSync(page, text);
}
