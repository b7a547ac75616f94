import { defineConfig } from 'eslint/config'
import tseslint from 'typescript-eslint'

// Biome formats and lints. ESLint is here for the three rules that need types and that a queue lives or dies by.
export default defineConfig(
  {
    ignores: [
      '**',
      '!{src,test,bench,scenario,scripts,examples}/**',
      // A project with packages and rules of its own; its test builds it.
      'examples/nestjs/**',
      // Written by scripts/build-lua.ts.
      '**/*.generated.ts',
      // Plain Node, outside of the project that types are read from.
      '**/*.{js,mjs,cjs}',
    ],
  },
  {
    files: ['**/*.ts'],
    languageOptions: {
      parser: tseslint.parser,
      parserOptions: { project: './tsconfig.json', tsconfigRootDir: import.meta.dirname },
    },
    plugins: { '@typescript-eslint': tseslint.plugin },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
    },
  },
)
