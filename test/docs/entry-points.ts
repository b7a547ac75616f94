import { join } from 'node:path'
import ts from 'typescript'
import { read } from './markdown.ts'

/** The names a module exports, types included, those of modules it passes on whole as well. */
export function exportedNames(path: string): string[] {
  const { statements } = ts.createSourceFile(path, read(path), ts.ScriptTarget.ES2023, true)
  return statements.flatMap((statement) => namesIn(statement, path)).sort()
}

function namesIn(statement: ts.Statement, path: string): string[] {
  if (ts.isExportDeclaration(statement)) {
    const { exportClause, moduleSpecifier } = statement
    if (exportClause && ts.isNamedExports(exportClause)) return exportClause.elements.map(({ name }) => name.text)
    if (exportClause) return [exportClause.name.text]
    if (!moduleSpecifier || !ts.isStringLiteral(moduleSpecifier)) return []
    return exportedNames(join(path, '..', moduleSpecifier.text))
  }
  const isExported =
    ts.canHaveModifiers(statement) &&
    ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
  if (!isExported) return []
  if (ts.isVariableStatement(statement)) return statement.declarationList.declarations.map(({ name }) => name.getText())
  const { name } = statement as ts.DeclarationStatement
  return name ? [name.getText()] : []
}
