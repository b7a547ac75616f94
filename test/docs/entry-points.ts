import ts from 'typescript'
import { read } from './markdown.ts'

/** The names a module exports, types included. Entry points only name what they export: no `export *`. */
export function exportedNames(path: string): string[] {
  const source = ts.createSourceFile(path, read(path), ts.ScriptTarget.ES2023)
  return source.statements
    .flatMap((statement) => {
      if (!ts.isExportDeclaration(statement)) return []
      if (!statement.exportClause || !ts.isNamedExports(statement.exportClause)) {
        throw new Error(`${path} must name what it exports, not pass a whole module on`)
      }
      return statement.exportClause.elements.map((element) => element.name.text)
    })
    .sort()
}
