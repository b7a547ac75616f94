// The layers of src, lowest first. A folder may import from its own layer's folder and from the layers below it; two
// folders of one layer do not know each other. `testing` is none of them: users and tests of all layers use it.
const layers = [
  ['errors', 'clock', 'assert', 'defined-only'],
  ['store'],
  ['limits'],
  ['engine'],
  ['bulk', 'simulate'],
  ['sluice'],
  ['observe'],
  ['http', 'nestjs'],
  ['config'],
  ['index'],
  ['cli'],
]

/** Tests may reach up: they use `testing`, which stands on the whole engine. */
const tests = '\\.test\\.ts$'

/** @param {string[]} names */
const folders = (names) => `^src/(${names.join('|')})(/|\\.ts$)`

const layerRules = layers.flatMap((layer, height) =>
  layer.map((name) => ({
    name: `${name}-knows-only-what-is-below`,
    comment: `src/${name} may import from itself and from ${layers.slice(0, height).flat().join(', ') || 'nothing else'}`,
    severity: 'error',
    from: { path: folders([name]), pathNot: tests },
    to: {
      path: '^src/',
      // The lowest layer is single files that may share each other.
      // The demo of the CLI needs an upstream, and `testing` has one.
      pathNot: folders([
        ...(height === 0 ? layer : [name]),
        ...layers.slice(0, height).flat(),
        ...(name === 'cli' ? ['testing/upstream', 'testing/go-first'] : []),
      ]),
    },
  })),
)

module.exports = {
  forbidden: [
    ...layerRules,
    {
      name: 'testing-is-below-http',
      comment: 'sluice/testing serves users of the library: it must not pull in a server, a framework or the CLI',
      severity: 'error',
      from: { path: '^src/testing/' },
      to: { path: folders(['http', 'nestjs', 'cli']) },
    },
    {
      name: 'every-folder-is-a-layer',
      comment: 'what is not in the list of layers would be held by no rule, and could use even what is made for tests',
      severity: 'error',
      from: { path: '^src/', pathNot: [folders(layers.flat()), '^src/testing/', tests] },
      to: {},
    },
    {
      name: 'only-store-knows-redis',
      comment: 'src/store is the one folder that knows the Redis client; src/testing starts servers to test against',
      severity: 'error',
      from: { path: '^src/', pathNot: ['^src/(store|testing)/', tests] },
      to: { path: 'node_modules/ioredis' },
    },
    {
      name: 'source-stands-alone',
      comment: 'what is published must not reach into what is not',
      severity: 'error',
      from: { path: '^src/', pathNot: tests },
      to: { path: '^(test|bench|scenario|scripts|examples)/' },
    },
    {
      name: 'scenarios-run-without-vitest',
      comment: 'a scenario is a program; what it shares with tests must work outside of them',
      severity: 'error',
      from: { path: '^scenario/', pathNot: tests },
      to: { path: 'node_modules/vitest', reachable: true },
    },
    {
      name: 'no-dev-dependency-in-source',
      comment: 'whoever installs the package does not get them',
      severity: 'error',
      from: { path: '^src/', pathNot: tests },
      // What is a peer as well is installed by whoever uses it.
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only', 'npm-peer'] },
    },
    {
      name: 'only-nestjs-knows-nestjs',
      comment: 'NestJS is an optional peer: without it all other entry points must work',
      severity: 'error',
      from: { path: '^src/', pathNot: ['^src/nestjs/', tests] },
      to: { path: '(node_modules/@nestjs|^src/nestjs)/' },
    },
    {
      name: 'no-cycles',
      comment: 'a cycle in which one side needs only the types of the other is none when the program runs',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'resolvable',
      comment: 'an import that leads nowhere is held by none of these rules',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    // A project with packages of its own; its test builds it.
    exclude: { path: '^examples/nestjs/' },
    tsConfig: { fileName: 'tsconfig.json' },
    // Types count as imports too: a layer that names a type of the one above it depends on it.
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'types', 'default'] },
  },
}
