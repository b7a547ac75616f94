import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { read, root } from './markdown.ts'

/**
 * Option → its default, or undefined when it has none or only one that takes words to say. Options inside options have
 * dots.
 */
export type OptionTable = ReadonlyMap<string, Value | undefined>

type Value = string | number | boolean
type Entry = [name: string, value: Value | undefined]

/** The value that a piece of code stands for: `15_000`, `'wait'`, `2 * day`. Undefined when it is words. */
export function literalValue(code: string): Value | undefined {
  const file = ts.createSourceFile('default.ts', `(${code})`, ts.ScriptTarget.ES2023, true)
  const [statement] = file.statements
  return statement && ts.isExpressionStatement(statement) ? evaluate(statement.expression, new Map()) : undefined
}

function evaluate(expression: ts.Expression, constants: ReadonlyMap<string, ts.Expression>): Value | undefined {
  if (ts.isParenthesizedExpression(expression)) return evaluate(expression.expression, constants)
  if (ts.isNumericLiteral(expression)) return Number(expression.text)
  if (ts.isStringLiteral(expression)) return expression.text
  if (expression.kind === ts.SyntaxKind.TrueKeyword) return true
  if (expression.kind === ts.SyntaxKind.FalseKeyword) return false
  if (ts.isIdentifier(expression)) {
    const constant = constants.get(expression.text)
    return constant && evaluate(constant, constants)
  }
  if (ts.isBinaryExpression(expression) && expression.operatorToken.kind === ts.SyntaxKind.AsteriskToken) {
    return Number(evaluate(expression.left, constants)) * Number(evaluate(expression.right, constants))
  }
  return undefined
}

function sourceFiles(): ts.SourceFile[] {
  return (
    readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
      // What commands of the CLI take is theirs, and may have the same names.
      .filter((path) => path.endsWith('.ts') && !/\.(test|generated)\.ts$/.test(path) && !path.startsWith('cli/'))
      .map((path) => ts.createSourceFile(path, read(`src/${path}`), ts.ScriptTarget.ES2023, true))
  )
}

/** What the source says about options: `interface QueueOptions`, and the rules that check them, `const queueRules`. */
export class OptionSources {
  readonly #interfaces = new Map<string, ts.InterfaceDeclaration>()
  readonly #constants = new Map<string, ts.Expression>()

  constructor() {
    for (const statement of sourceFiles().flatMap((file) => [...file.statements])) {
      if (ts.isInterfaceDeclaration(statement)) this.#interfaces.set(statement.name.text, statement)
      if (!ts.isVariableStatement(statement)) continue
      for (const { name, initializer } of statement.declarationList.declarations) {
        if (ts.isIdentifier(name) && initializer) this.#constants.set(name.text, bare(initializer))
      }
    }
  }

  /** The interfaces that are checked by a table of rules: `RedisOptions` for `redisRules`. */
  checkedInterfaces(): string[] {
    return [...this.#constants.keys()]
      .filter((name) => name.endsWith('Rules'))
      .map((name) => `${name.charAt(0).toUpperCase()}${name.slice(1, -'Rules'.length)}Options`)
      .filter((name) => this.#interfaces.has(name))
      .sort()
  }

  /** As the comments say: `@default` of every member, those of extended interfaces included. */
  documented(interfaceName: string): OptionTable {
    const declaration = this.#interfaces.get(interfaceName)
    if (declaration === undefined) throw new Error(`there is no interface ${interfaceName} in src`)
    const inherited = (declaration.heritageClauses ?? [])
      .flatMap((clause) => [...clause.types])
      .flatMap((type) => [...this.documented(type.expression.getText())])
    return new Map([...inherited, ...membersOf(declaration.members, '')])
  }

  /** As the rules say: `default` of every rule, those of spread tables included. */
  checked(interfaceName: string): OptionTable {
    const name = `${interfaceName.charAt(0).toLowerCase()}${interfaceName.slice(1, -'Options'.length)}Rules`
    const rules = this.#constants.get(name)
    if (rules === undefined) throw new Error(`there is no ${name} in src`)
    return new Map(this.#rulesOf(rules, ''))
  }

  #rulesOf(rules: ts.Expression, prefix: string): Entry[] {
    if (ts.isIdentifier(rules)) {
      const table = this.#constants.get(rules.text)
      return table === undefined ? [] : this.#rulesOf(table, prefix)
    }
    if (!ts.isObjectLiteralExpression(rules)) return []
    return rules.properties.flatMap((property): Entry[] => {
      if (ts.isSpreadAssignment(property)) return this.#rulesOf(property.expression, prefix)
      if (!ts.isPropertyAssignment(property)) return []
      const path = prefix + property.name.getText()
      const [rule] = callsNamed('group', property.initializer)
      const inside = rule?.arguments[0]
      if (inside) return this.#rulesOf(inside, `${path}.`)
      return [[path, this.#defaultOf(property.initializer)]]
    })
  }

  #defaultOf(rule: ts.Expression): Value | undefined {
    if (!ts.isCallExpression(rule)) return undefined
    const defaults = rule.arguments
      .filter(ts.isObjectLiteralExpression)
      .flatMap((argument) => argument.properties.filter(ts.isPropertyAssignment))
      .filter((property) => property.name.getText() === 'default')
    return defaults[0] && evaluate(defaults[0].initializer, this.#constants)
  }
}

function membersOf(members: ts.NodeArray<ts.TypeElement>, prefix: string): Entry[] {
  return members.flatMap((member): Entry[] => {
    if (!member.name) return []
    const path = prefix + member.name.getText()
    const inside = ts.isPropertySignature(member) ? member.type : undefined
    if (inside && ts.isTypeLiteralNode(inside)) return membersOf(inside.members, `${path}.`)
    const tag = ts.getJSDocTags(member).find(({ tagName }) => tagName.text === 'default')
    return [[path, literalValue(ts.getTextOfJSDocComment(tag?.comment) ?? '')]]
  })
}

function callsNamed(name: string, expression: ts.Expression): ts.CallExpression[] {
  if (!ts.isCallExpression(expression)) return []
  if (expression.expression.getText() === name) return [expression]
  return expression.arguments.flatMap((argument) => callsNamed(name, argument))
}

/** Without `as const` and `satisfies`. */
function bare(expression: ts.Expression): ts.Expression {
  return ts.isAsExpression(expression) || ts.isSatisfiesExpression(expression)
    ? bare(expression.expression)
    : expression
}
