// Rules of the extension: TypeScript's own checks, and the layers of docs/editor.md as forbidden imports.
import tseslint from 'typescript-eslint';

const forbid = (...groups) => ['error', { patterns: groups.map(([group, message]) => ({ group, message })) }];
const noVscode = [['vscode'], 'this layer runs without the editor'];

export default tseslint.config(
  {
    ignores: ['**/dist/**', '**/generated/**', '**/node_modules/**', 'build*/**', 'extension/{docs,bin,share}/**'],
  },
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        project: './extension/tsconfig.json',
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      'max-len': [
        'error',
        {
          code: 127,
          ignoreStrings: true,
          ignoreTemplateLiterals: true,
          ignoreUrls: true,
        },
      ],
      'max-lines': ['error', 450],
      eqeqeq: 'error',
    },
  },
  {
    files: ['extension/src/common/**'],
    rules: {
      'no-restricted-imports': forbid(noVscode, [
        ['node:*', 'fs', 'path', '../node/*', '../vscode/*'],
        'common code is pure',
      ]),
    },
  },
  {
    files: ['extension/src/node/**'],
    rules: {
      'no-restricted-imports': forbid(noVscode, [['../vscode/*'], 'a layer below']),
    },
  },
  { files: ['**/*.mjs', '**/*.cjs'], ...tseslint.configs.disableTypeChecked },
  { files: ['**/*.cjs'], rules: { '@typescript-eslint/no-require-imports': 'off' } },
);
